"""The report on one network: numbers against independent loops, silence, and the command."""

import itertools
import json
import math
import re
import types
from dataclasses import replace
from functools import partial

import nads_book as nb
import numpy as np
import pytest
import torch
from convergence import normal
from nads_book.cli import main, report

import nads_core as nc

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib.axes", reason="reports are not installed: pip install -e .[report]")
from nads_book.network_report.classes import PARTS, class_pairs  # noqa: E402
from nads_book.network_report.frequencies import frequencies  # noqa: E402
from nads_book.network_report.inputs import input_shape  # noqa: E402
from nads_book.network_report.preferences import listed, preferences  # noqa: E402
from nads_book.network_report.sample import Sample  # noqa: E402

SIZE = 8
NETS = """
import torch
from torch import nn


def small():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(54, 4)
    )


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = small()

    def forward(self, images):
        return {"logits": self.body(images), "images": images}


def sound():
    pooled = nn.AdaptiveAvgPool1d(4)
    return nn.Sequential(nn.Conv1d(1, 4, 9, 2), nn.ReLU(), pooled, nn.Flatten(), nn.Linear(16, 1))


def row():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def random():
    network = small()
    network.register_forward_hook(lambda module, args, out: out + torch.rand(()))
    return network
"""


exec(NETS, networks := {})  # noqa: S102  # as the command imports them
small = networks["small"]


def second_moment():
    estimator = nc.SmoothedGradient(num_inputs=8, readouts=2)
    return nc.second_moment(small, (3, SIZE, SIZE), 64, estimator=estimator, progress=False)


@pytest.fixture(scope="module")
def moment():
    """The second moment of small networks."""
    return second_moment()


@pytest.fixture(scope="module")
def images():
    pixels = normal(3 * 40, 3, SIZE, SIZE)
    labels = torch.arange(3).repeat(40)
    pixels[labels == 1] += 2
    pixels[labels == 2] += 2 * (-1) ** torch.arange(SIZE)  # stripes, as fine as possible
    return nc.ImageSet(pixels, labels, ("dark", "bright", "stripes"), "images in a test")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with networks and 40 photos of 8 x 8 pixels."""
    (tmp_path / "report_nets.py").write_text(NETS)
    generator = np.random.default_rng(0)
    for name, level in (("dark", 40), ("bright", 200)):
        place = tmp_path / "photos" / name
        place.mkdir(parents=True)
        for number in range(20):
            pixels = np.clip(level + generator.normal(0, 20, (SIZE, SIZE, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers_of(text):
    return json.loads(re.search(r'id="numbers">(.*?)</script>', text, re.DOTALL)[1])


def test_energies_equal_quadratic_forms_of_the_groups(moment):
    spectra, shares = Sample.of_moment(moment).spectra(), 8 * moment.shares()
    axis = torch.arange(SIZE, dtype=torch.float64)
    for group, (ky, kx) in itertools.product((0, 5), ((0, 0), (1, 0), (2, 7), (4, 4))):
        angle = 2 * math.pi * (ky * axis[:, None] + kx * axis) / SIZE
        total = 0.0
        for channel, wave in itertools.product(range(3), (angle.cos(), angle.sin())):
            image = torch.zeros(3, SIZE, SIZE, dtype=torch.float64)
            image[channel] = wave / SIZE
            total += float(image.flatten() @ shares[group] @ image.flatten())
        assert spectra[group, ky, kx] == pytest.approx(total, abs=1e-5 * spectra[group].max())
    trace = float(moment.shares().sum(0).trace())
    assert spectra.sum((1, 2)).mean() == pytest.approx(trace, rel=1e-5)


def test_large_inputs_have_the_energies_of_their_vectors(moment, monkeypatch):
    """The same networks, as vectors and as matrices."""
    one = Sample.of_moment(moment)
    monkeypatch.setattr(nc.directions.moments, "DENSE_LIMIT", 100)
    other = Sample.of_moment(second_moment())
    assert one.x.shape == (8, 192, 192) and other.x.shape == (8, 16, 192)
    scale = one.spectra().max()
    np.testing.assert_allclose(other.spectra(), one.spectra(), atol=1e-5 * scale)


def test_class_pairs_equal_a_loop_over_parts(moment, images):
    overall, pairs, _ = class_pairs(images, Sample.of_moment(moment))
    second = moment.shares().sum(0)
    trace = float(second.trace())

    def parts(label):
        rows = images.images[images.labels == label].flatten(1).double()
        return [rows[part::PARTS].mean(0) for part in range(PARTS)]

    energies = []
    lengths = []
    for pair in pairs:
        differences = [a - b for a, b in zip(*map(parts, pair.classes), strict=True)]
        energy = length = 0.0
        for p, q in itertools.permutations(range(PARTS), 2):
            energy += float(differences[p] @ second @ differences[q])
            length += float(differences[p] @ differences[q])
        assert pair.energy.value == pytest.approx(energy / length / (trace / 192), rel=1e-4)
        assert pair.known
        energies, lengths = [*energies, energy], [*lengths, length]
    assert overall.value == pytest.approx(sum(energies) / sum(lengths) / (trace / 192), rel=1e-4)
    assert pairs == sorted(pairs, key=lambda pair: pair.energy.value)


def test_errors_of_class_pairs_are_those_of_fresh_inputs_and_networks(images):
    """Linear networks of white gradients, and inputs of unit variance: errors have a closed
    form.
    """
    count = 400
    gradients = normal(8, count // 8, 3 * SIZE**2, seed=2)
    sample = Sample(gradients / (count // 8), gradients, (3, SIZE, SIZE))
    _, pairs, _ = class_pairs(images, sample)
    for pair in pairs:
        assert pair.energy.interval[0] < 1 < pair.energy.interval[1]
        assert pair.energy.error == pytest.approx(math.sqrt(2 / count), rel=0.8)


def test_the_network_is_deaf_to_fine_stripes_alone(moment, images):
    overall, pairs, _ = class_pairs(images, Sample.of_moment(moment))
    # Dark and stripes; the bright class differs from both in its mean
    assert [pair.classes for pair in pairs if pair.energy.interval[1] < 1] == [(0, 2)]
    made = nb.report_on(moment, images)
    assert "dark – stripes" in " ".join(made.sections[2].sentences)
    assert made.sections[2].figures[0].caption.startswith("energy 0")
    numbers = made.numbers["What your classes ask for"]
    assert numbers["pairs"][0]["sensitivity"] == pytest.approx([*pairs[0].energy], rel=1e-4)
    assert [*nb.class_energy(images, moment)] == [*overall]


def test_nothing_is_said_where_nothing_is_preferred(images):
    """Gradients without a preference, and labels without a meaning."""
    gradients = normal(8, 50, 3 * SIZE**2, seed=1)
    sample = Sample(gradients / 50, gradients, (3, SIZE, SIZE))
    section = frequencies(sample, "linear")
    assert section.sentences == [] and section.numbers["rings"]
    noise = normal(*images.images.shape, seed=2)
    _, pairs, _ = class_pairs(replace(images, images=noise), sample)
    assert not any(pair.known for pair in pairs)


@pytest.mark.parametrize(("number", "share"), [(8, 0), (9, 1)])
def test_fine_waves_are_shorter_than_four_pixels(number, share):
    wave = torch.cos(2 * math.pi * number * torch.arange(32) / 32).expand(32, 1, 32)
    section = frequencies(Sample(wave, wave, (1, 32)), "wave")
    assert section.numbers["fine"].value == pytest.approx(share, abs=1e-6)


def test_few_networks_decide_nothing():
    coarse = normal(8, 5, 256).cumsum(2)
    assert frequencies(Sample(coarse, coarse, (1, 256)), "smooth").sentences
    few = Sample(coarse, coarse, (1, 256), num_networks=15)
    assert frequencies(few, "smooth").sentences == []
    coarse[:2] *= 100  # which hold nearly all of the energy
    assert frequencies(Sample(coarse, coarse, (1, 256)), "smooth").sentences == []


SLOW = partial(pytest.param, marks=pytest.mark.slow)
ROW = ["report", "report_nets:row", "--image-shape", "6"]


def command(*arguments):
    fixed = ["--minutes", "0.01", "--out", "page/report.html"]
    return main(["report", arguments[0], *fixed, *arguments[1:]])


@pytest.mark.parametrize(
    "arguments",
    [
        ("report_nets:small", "--images", "photos"),
        SLOW(("report_nets:Heads", "--image-shape", "3", "8", "8", "--output", "logits.1")),
        SLOW(("report_nets:sound", "--image-shape", "1", "64")),
        ("report_nets:row", "--image-shape", "6"),
    ],
    ids=["photos", "dictionary", "sequence", "table"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_command_writes_one_page(folder, arguments):
    assert command(*arguments) == 0
    path = folder / "page" / "report.html"
    text = path.read_text("utf8")
    numbers = numbers_of(text)
    assert len(text) < 300_000
    assert not re.search(r"(src|href)=.?(?!data:)[\w/.]", text)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
    assert numbers["What was drawn"]["num_networks"] >= 16
    if "photos" in arguments:
        assert numbers["What was drawn"]["image_shape"] == [3, 8, 8]
        assert numbers["What your classes ask for"]["pairs"][0]["classes"] == ["bright", "dark"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("report_nets:random", "--image-shape", "3", "8", "8"), "random"),
        (("report_nets:small", "--image-shape", "3", "9", "7", "--images", "photos"), "--images"),
        (("report_nets:row",), "--image-shape"),
        (("report_nets:row", "--image-shape", "6", "--minutes", "nan"), "minutes"),
        (("report_nets:small", "--images", "absent"), "absent"),
    ],
)
def test_a_model_that_cannot_be_treated_gives_a_message_and_no_report(
    folder, capsys, arguments, named
):
    assert command(*arguments) == 2
    assert named in capsys.readouterr().err
    assert not list(folder.glob("page/*.html"))


@pytest.mark.parametrize("seconds", [42, 300])
@pytest.mark.parametrize("per_network", [0.01, 0.5])
def test_the_time_is_kept(folder, monkeypatch, seconds, per_network):
    """On a clock of its own, with pages of 15 seconds, and inputs that are just not large."""
    clock, counts = [0.0], [0]

    def compute(model, shape, count, **options):
        clock[0] += per_network * (count - counts[-1])
        counts.append(count)
        return types.SimpleNamespace(is_large=False)

    def written(*_, **__):
        clock[0] += 15
        return types.SimpleNamespace(save=lambda _: None)

    monkeypatch.setattr(report, "second_moment", compute)
    monkeypatch.setattr("nads_book.network_report.report_on", written)
    monkeypatch.setattr(report, "_LARGE", 6)
    monkeypatch.setattr(report, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    assert main([*ROW, "--minutes", str(seconds / 60)]) == 0
    assert 0.3 * seconds < clock[0] <= max(1.05 * seconds, 64 * per_network + 35)


def test_an_interrupt_keeps_the_last_page(folder, monkeypatch, capsys):
    compute = report.second_moment

    def interrupted(model, shape, count, **options):
        if count > 64:
            raise KeyboardInterrupt
        return compute(model, shape, count, **options)

    monkeypatch.setattr(report, "second_moment", interrupted)
    assert main([*ROW, "--minutes", "1000"]) == 130
    assert "stopped" in capsys.readouterr().err
    page = (folder / "report.html").read_text("utf8")
    assert numbers_of(page)["What was drawn"]["num_networks"] == 64
    assert [path.name for path in folder.glob("report.*")] == ["report.html"]


@pytest.mark.parametrize("known", [True, False])
def test_a_page_names_the_nads_that_are_known(known):
    """Of one channel of a square: those whose rows are odd are partners of those whose columns
    are.
    """
    nads = nc.load_nads("lenet")
    if not known:
        unknown = {"certainty": torch.zeros_like(nads.certainty), "bands": ()}
        nads = replace(nads, uncertainty=replace(nads.uncertainty, **unknown))
    rows = (len(nads) * nads.eigenvalues.clamp(min=0)).sqrt()[:, None] * nads.basis.T
    section = preferences(nads, Sample(rows[:, None], rows[:, None], (1, 32, 32)))
    text = " ".join(section.sentences)
    assert ("transpose" in text, bool(section.opening)) == (known, known)
    assert ("num_networks" in text, "equal_weights" in text) == (not known, not known)
    assert len(section.numbers["known"]) == known * nads.uncertainty.num_certain
    assert not known or len(section.figures[0].pictures) == 10
    assert listed(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, …"


def test_names_and_warnings_are_text_and_missing_numbers_are_null(moment):
    made = nb.report_on(moment)
    facts = made.facts | {"asymmetry": math.nan}
    odd = replace(made, name="<b>net</b>$", facts=facts, warnings=["few & heavy"])
    text = odd.html
    assert "<b>" not in text and "&lt;b&gt;net" in text
    assert text.index("few &amp; heavy") < text.index("<section>")
    assert numbers_of(text)["What was drawn"]["asymmetry"] is None


def test_the_shape_is_that_of_the_images_or_of_the_model(folder):
    for model, images, shape in (
        ("lenet", None, (1, 32, 32)),
        ("torchvision:squeezenet1_1", folder / "photos", (3, 8, 8)),
        ("torchvision:squeezenet1_1", None, (3, 224, 224)),
    ):
        assert input_shape(model, images) == shape
