"""The sealed prediction on other data: its networks, variants and scores, the seal, and how it is
judged.
"""

import json
import math
from itertools import permutations

import nads_book as nb
import numpy as np
import pytest
import torch
from convergence import normal, random_nads
from nads_book.analysis.statistics import rank_correlation
from nads_book.experiments import load_registered, run_study
from nads_book.studies import pair_statistics as judged
from nads_book.studies import pairs as other_data
from torch.testing import assert_close

SHAPE = {"small": (3, 16)}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small design on generated images, with files of its own."""
    for name, value in {
        "SHAPES": SHAPE,
        "NUM_TRAIN": {"small": 200},
        "NUM_TEST": {"small": 100},
        "NUM_NETWORKS": 32,
        "VARIANTS": ("as is", "shuffled", "random phases"),
        "SEEDS": (0,),
        "scratch": lambda: tmp_path,
        "IMAGES": {name: other_data.IMAGES[name] for name in ("lenet", "mlp")},
        "load_images": _generated,
    }.items():
        monkeypatch.setattr(other_data, name, value)
    other_data.upright.cache_clear()
    yield other_data
    other_data.upright.cache_clear()


def _generated(data, **options):
    return nb.load_images("generated", **options)


# --- Networks and variants ---


def test_the_networks_of_mnist1d_have_as_many_parameters_as_published():
    counts = {name: other_data.num_parameters("mnist1d", name) for name in other_data.SERIES}
    assert counts == {"linear": 410, "mlp": 15_210, "cnn": 5_210, "gru": 5_134}


@pytest.mark.parametrize("data", ["cifar10", "fashion-mnist", "imagenette"])
def test_all_networks_take_all_images(data):
    channels, side = other_data.SHAPES[data]
    for name in (*other_data.IMAGES, "logreg"):
        assert other_data.build(data, name).eval()(torch.zeros(2, channels, side, side)).shape == (
            2,
            10,
        ), name
    assert other_data.build(data, "vit").learned.shape[0] == 64  # tokens at each size


def test_variants_keep_lengths_and_angles(monkeypatch):
    nads = random_nads(1, 16, 16)
    monkeypatch.setattr(other_data, "flipping_nads", lambda side: nads)
    images = normal(5, 3, 16, 16)
    products = images.flatten(1) @ images.flatten(1).T
    for variant in other_data.VARIANTS:
        flat = other_data.changed(images, variant).flatten(1)
        assert_close(flat @ flat.T, products, atol=1e-2, rtol=1e-4)
        assert (variant == "as is") == torch.equal(flat, images.flatten(1))


def test_shuffling_moves_all_channels_alike_and_phases_keep_the_spectrum():
    images = torch.randn(2, 3, 16, 16)
    images[:, 1] = images[:, 0]
    shuffled = other_data.changed(images, "shuffled")
    assert torch.equal(shuffled[:, 1], shuffled[:, 0])
    assert torch.equal(shuffled.flatten(2).sort().values, images.flatten(2).sort().values)
    phases = other_data.changed(images, "random phases")
    assert_close(torch.fft.fft2(phases).abs(), torch.fft.fft2(images).abs(), atol=1e-3, rtol=1e-3)
    moved = other_data.changed(images.roll((3, 5), (2, 3)), "random phases")
    assert_close(moved, phases.roll((3, 5), (2, 3)), atol=1e-4, rtol=1e-4)
    assert other_data.smoothness(phases) == pytest.approx(other_data.smoothness(images), rel=1e-3)


def test_smoothness_of_a_slow_and_of_a_fast_wave():
    angles = 2 * torch.pi * torch.arange(16) / 16
    waves = torch.stack(
        [torch.cos(angles), torch.cos(5 * angles)]
    )  # 1/16 and 5/16 cycles per sample
    inputs = torch.stack([waves[0], -waves[0], 2 * waves[1], -2 * waves[1]])[:, None]
    assert other_data.smoothness(inputs[:2]) == pytest.approx(1)
    assert other_data.smoothness(inputs) == pytest.approx(0.2)


# --- Scores ---


def _labelled(count=2_000, signal=0.6, noise=(1.0, 1.0), seed=0):
    """Two channels of 8 numbers; class k differs in number k mod 8 of channel k // 8."""
    labels = torch.arange(count) % 10
    inputs = normal(count, 2, 8, seed=seed) * torch.tensor(noise)[:, None]
    inputs[torch.arange(count), labels // 8, labels % 8] += signal
    return inputs, labels


def test_covariance_between_classes_has_no_bias():
    values = []
    for seed in range(20):
        inputs, labels = _labelled(200, seed=seed)
        values.append(other_data.Moments.of(inputs, labels).between(torch.eye(8)))
    # Ten means, orthogonal, of squared length .36: their covariance has trace 10 (.36 - .036) / 9.
    expected = 0.36
    assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / 20**0.5)
    inputs, labels = _labelled(200)
    moments = other_data.Moments.of(inputs, labels)
    whole = [moments.between(torch.eye(8), part) for part in range(other_data.PARTS)]
    assert np.mean(whole) == pytest.approx(moments.between(torch.eye(8)), abs=0.05)


def test_ridge_is_the_primal_one_and_ignores_permutations_without_a_preference():
    inputs, labels = _labelled(400)
    (found,) = other_data.ridge_accuracies(torch.eye(8), inputs, labels, [0.5])
    flat = inputs.flatten(1)
    right = 0
    halves = torch.arange(400) // 10 % 2  # every class in both
    for half in (0, 1):
        fit = flat[halves != half]
        test = flat[halves == half]
        fit, test = fit - fit.mean(0), test - fit.mean(0)
        targets = torch.nn.functional.one_hot(labels[halves != half]).float()
        penalty = 0.5 * fit.square().sum(1).mean()
        weights = torch.linalg.solve(
            fit.T @ fit + penalty * torch.eye(16), fit.T @ (targets - targets.mean(0))
        )
        right += int(((test @ weights + targets.mean(0)).argmax(1) == labels[halves == half]).sum())
    assert found == pytest.approx(right / 400, abs=1 / 400)
    shuffled = inputs[..., torch.randperm(8)]
    assert other_data.ridge_accuracies(torch.eye(8), shuffled, labels, [0.5]) == pytest.approx(
        [found], abs=1 / 400
    )


def test_a_preference_for_the_signal_raises_all_scores_and_one_for_noise_lowers_them():
    labels = torch.arange(2_000) % 10
    inputs = normal(2_000, 1, 40)
    inputs[torch.arange(2_000), 0, labels] += 1.0
    own = torch.arange(40) < 10
    metrics = {"signal": torch.where(own, 1.0, 0.01), "noise": torch.where(own, 0.01, 1.0)}
    metrics["equal"] = torch.ones(40)
    scores = {}
    for name, diagonal in metrics.items():
        groups = torch.diag(diagonal).expand(2, 40, 40)
        scores[name] = other_data.scores_of(groups, other_data.priors(groups), inputs, labels)
    for name in ("nearest mean", "first step", "ratio", "lift"):
        values = [scores[which][name][0] for which in ("noise", "equal", "signal")]
        assert values == sorted(values) and values[2] > 1.05 * values[0], name
    assert scores["noise"]["ridge"][0] < scores["signal"]["ridge"][0] - 0.02
    assert scores["equal"]["lift"][0] == pytest.approx(1)
    for name, (_, error, _) in scores["signal"].items():
        assert 0 < error < 0.2 * scores["signal"][name][0], name


def test_priors_have_no_negative_eigenvalues():
    noise = torch.randn(4, 12, 12)
    groups = torch.eye(12) / 10 + (noise + noise.mT) / 2
    full, half = other_data.priors(groups)
    assert torch.linalg.eigvalsh(groups.mean(0)).min() < -0.1
    assert min(torch.linalg.eigvalsh(full).min(), torch.linalg.eigvalsh(half).min()) > -1e-5


def test_thresholds_find_classes_in_the_middle_of_a_line():
    """Of ten classes on a line, a step without thresholds finds the two at the ends."""
    labels = torch.arange(1_000) % 10
    inputs = (labels + 0.1 * normal(1_000))[:, None, None]
    shares = {
        name: float(right.float().mean())
        for name, right in other_data.votes(torch.eye(1), inputs, labels).items()
    }
    assert shares["nearest mean"] > 0.99 and shares["first step"] < 0.25


# --- The seal ---


def test_trainings_wait_for_the_seal(small, tmp_path, monkeypatch):
    def seal(value):
        monkeypatch.setattr(small, "load_registered", lambda name: {"sealed": {"scores": value}})

    monkeypatch.setattr(small, "load_study", lambda name: json.loads((tmp_path / name).read_text()))
    options = {"executor": "sequential", "device": "cpu", "progress": False}
    scores = tmp_path / small.PairScores.file

    def train():
        return run_study(small.PairTrainings(), out=tmp_path / "x.json", count=1, **options)

    seal("")
    run_study(small.PairScores(), out=scores, count=5, **options)
    with pytest.raises(ValueError, match="1 of 6 units of other-data-scores"):
        train()
    rows = run_study(small.PairScores(), out=scores, **options).rows
    mlp = [row["scores"] for row in rows if row["architecture"] == "mlp"]
    for name in ("ridge", "nearest mean", "ratio", "lift"):
        assert [row[name][0] for row in mlp] == pytest.approx([mlp[0][name][0]] * 3, rel=0.02), name
    found = small.fingerprint_of(rows)
    with pytest.raises(ValueError, match=f"{found}, but '' is sealed"):
        train()
    seal(found)
    trained = train()
    assert trained.facts["scores"] == found and len(trained.rows) == 1


def test_the_sealed_scores_are_the_stored_ones():
    assert len(other_data.sealed_scores()["rows"]) == len(other_data.PairScores().units())


# --- The judgement ---

NAMES = ["lenet", "cnn", "mlp", "vit", "mixer"]
DATA = ("one", "two", "three")
VARIANTS = ("as is", "shuffled", "flipped", "random phases")


def _files(score, accuracy, seeds=(0, 1), noise=0.0):
    """Return both results files, where functions of (data, variant, architecture), as numbers, give
    the values.
    """
    rng = np.random.default_rng(0)
    places = [(d, v, a) for d in range(3) for v in range(4) for a in range(5)]
    rows = []
    trained = []
    for d, v, a in places:
        place = {"data": DATA[d], "variant": VARIANTS[v], "architecture": NAMES[a]}
        facts = {"parameters": [4, 1, 3, 2, 5][a], "smoothness": [0.9, 0.3, 0.1, 0.9][v]}
        rows.append(place | facts | {"scores": {"ridge": [score(d, v, a), 0.01, 0.0]}})
        for seed in seeds:
            found = accuracy(d, v, a) + noise * rng.normal()
            trained.append(place | {"seed": seed, "test_accuracy": found})
    for row in rows[::5]:
        trained.append(_place(row) | {"architecture": "logreg", "seed": 0, "test_accuracy": 0.3})
    return {"names": ["ridge"], "rows": rows}, trained


def _place(row):
    return {key: row[key] for key in ("data", "variant", "architecture")}


def _truth(d, v, a):
    """Architectures differ, and lose differently; the MLP, the third, loses nothing."""
    loss = [0.0, 0.1, 0.2, 0.05][v] * [1.0, 1.6, 0.7, 0.5, 1.3][(a + d) % 5]
    return round(0.4 + 0.05 * d + [0.12, 0.15, 0.0, 0.05, 0.08][a] - (0 if a == 2 else loss), 6)


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(judged, "NUM_DRAWS", 40)


@pytest.mark.parametrize(("sign", "supported"), [(1, True), (-1, False)])
def test_a_perfect_score_is_supported_and_a_reversed_one_falsified(few_draws, sign, supported):
    scores, trained = _files(lambda *place: sign * _truth(*place), _truth, noise=1e-4)
    same = {"linear": 0.3, "mlp": 0.3}
    scores["rows"] += _series(same | {"cnn": 0.5, "gru": 0.4}, same | {"cnn": 0.2, "gru": 0.3})
    evidence = judged.judge(scores, trained)
    found = {name: evidence.estimates[f"all six, {name}"] for name in judged.ARRANGED}
    assert all(sign * one["ridge"][0] > 0.9 for one in found.values())
    assert found["costs"]["textbook"][0] > 0.3
    assert evidence.estimates["without mlp, costs"]["textbook"] == (0, 0, 0)
    shares = evidence.estimates[judged.EXCHANGES]
    assert shares["all six, cells"][0] == pytest.approx(1 / 120 if supported else 1)
    met = evidence.met
    parts = [name for name in met if name.startswith(("which architecture", "NADs rank"))]
    assert [met[name] for name in parts] == [supported] * 3
    assert met["MNIST-1D: the CNN's score falls"] is True
    with pytest.raises(ValueError, match="units of other-data are missing"):
        other_data.PairTrainings().score(trained)


def test_a_part_is_open_unless_its_interval_and_its_lead_decide():
    assert judged.verdict(0.5, (0.4, 0.1, 0.6), (0.1, 0.05, 0.2)) is True
    assert judged.verdict(0.5, (0.4, 0.1, 0.6), (0.1, -0.05, 0.2)) is None
    assert judged.verdict(0.5, (0.2, 0.1, 0.4), (0.1, 0.05, 0.2)) is False


@pytest.mark.parametrize(
    ("statistic", "without"), [("cells", ()), ("costs", ("mlp",)), ("all", ())]
)
def test_all_exchanges_of_architectures_are_counted(statistic, without):
    """As a loop over permutations counts them; a perfect score has no equal but itself."""
    rng = np.random.default_rng(0)
    noise = dict(zip(np.ndindex(3, 4, 5), rng.normal(0, 0.1, 60), strict=True))
    table = judged.Table.of(*_files(lambda *place: _truth(*place) + noise[place], _truth))
    used = [place for place, name in enumerate(NAMES) if name not in without]
    scores = table.predictors["ridge"]
    means = table.means()

    def reached(order):
        values = scores[..., order]
        truth = means[..., used]
        if statistic == "costs":
            values, truth = (each[:, :1] - each[:, 1:] for each in (values, truth))
        shape = (1, -1) if statistic == "all" else (-1, len(used))
        pairs = zip(values.reshape(shape), truth.reshape(shape), strict=True)
        return np.mean([rank_correlation(*pair, min_size=2) for pair in pairs])

    expected = [reached(order) >= reached(used) - 1e-9 for order in map(list, permutations(used))]
    share = judged.exchanged_share(table, "ridge", statistic, without)
    assert share == pytest.approx(np.mean(expected)) and 0 < share < 1
    perfect = judged.Table.of(*_files(_truth, _truth))
    count = math.factorial(len(used))
    assert judged.exchanged_share(perfect, "ridge", statistic, without) == pytest.approx(1 / count)


def test_variance_between_seeds_widens_intervals(few_draws, monkeypatch):
    table = judged.Table.of(*_files(_truth, _truth, noise=0.03))
    assert table.seed_deviation().mean() == pytest.approx(0.03 / 2**0.5, rel=0.2)
    with_seeds = judged.compare(table)
    monkeypatch.setattr(judged.Table, "seed_deviation", lambda self: 0.0)
    units_alone = judged.compare(table)
    widths = [
        [found[key][2] - found[key][1] for key in units_alone]
        for found in (with_seeds, units_alone)
    ]
    assert np.mean(widths[0]) > 1.05 * np.mean(widths[1])


def _series(as_is, shuffled):
    return [
        {"data": "mnist1d", "variant": variant, "architecture": name}
        | {"scores": {"ridge": [value, 0.01, value]}}
        for variant, values in (("as is", as_is), ("shuffled", shuffled))
        for name, value in values.items()
    ]


def test_what_is_registered_fits_what_is_judged():
    registered = load_registered("other_data")
    published = registered["mnist1d"]
    known = {
        (variant, name): accuracy
        for variant in ("as is", "shuffled")
        for name, accuracy in published[variant.replace(" ", "_")].items()
    }
    assert {name for _, name in known} == set(other_data.SERIES)
    fall = _series(
        {"linear": 0.3, "mlp": 0.3, "cnn": 0.5, "gru": 0.45},
        {"linear": 0.3, "mlp": 0.3, "cnn": 0.2, "gru": 0.2},
    )
    tests = judged.series_tests(fall, known)
    assert tests.keys() == published["expected"].keys()
    # The scores of the MLP and of the linear model are equal.
    assert [*tests.values()] == [True] * 6 + [False]
    flat = judged.series_tests(_series(*[dict.fromkeys(other_data.SERIES, 0.3)] * 2), known)
    stay = "the MLP's and the linear model's scores stay"
    assert [name for name, holds in flat.items() if holds] == [stay]
    for ranges in registered["predicted"].values():
        assert ranges.keys() <= set(judged.ARRANGED)
        assert all(low < high for of in ranges.values() for low, high in of.values())
