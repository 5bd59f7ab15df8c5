"""Sections of chapters from studies of their own: claims, tables and figures follow from the
rows.
"""

import numpy as np
import pytest
from nads_book.studies.adam_flip import BASES, SEEDS, TREATMENTS
from nads_book.studies.exact_first_step import LAW
from nads_book.studies.nonlinear_tasks import FIRST_NADS, NETWORKS, TASKS

scored_rows = pytest.importorskip("nads_book.pages.scored_rows")
adam_flip = pytest.importorskip("nads_book.pages.adam_flip", reason="figures need matplotlib")
from nads_book.pages import nonlinear_tasks, rival_theory, small_components  # noqa: E402
from nads_book.pages.training import first_step  # noqa: E402


@pytest.fixture
def stored(stored_rows):
    return stored_rows


def ends(value, half=0.1):
    return [value, value - half, value + half]


def first_rows(cosine=-0.9, growth=-0.05, signal=0.95, networks=("lenet", "cnn", "mlp")):
    found = []
    for name in networks:
        cosines = {LAW: ends(cosine), "first of law": ends(cosine)}
        cosines |= {"S": ends(-0.4), "G_0": [None] * 3}
        ahead = {"G_0": ends(0.5), "first of law": ends(0.5 if cosine < -0.8 else 0.01)}
        change = {"cosine": cosines, "law ahead": ahead}
        row = {"network": name, "measured": "derivative", "num_networks": 1_024}
        found.append(row | {"change": change, "growth": ends(growth, 0.01)})
    for name in ("lenet", "cnn"):
        for step in (10, 30):
            rivals = {law: ends(0.4) for law in first_step.LABELS if law != "signal"}
            change = {"cosine": rivals | {"signal": ends(signal)}}
            row = {"network": name, "measured": "balanced", "step": step, "num_networks": 256}
            found.append(row | {"change": change})
    return found


def test_claims_of_the_first_step_follow_its_rows(stored):
    stored(first_rows())
    found = {key: decide() for key, decide in first_step.CLAIMS.items()}
    assert all(one.holds for one in found.values())
    assert found["first-step-along-law"].value == -0.9
    assert found["first-step-along-law"].interval == pytest.approx((-1, -0.8))
    assert found["signal-balanced"].value == pytest.approx(0.85 - 0.5)
    stored(first_rows(cosine=-0.3, growth=0.02, signal=0.45))
    assert not any(decide().holds for decide in first_step.CLAIMS.values())
    stored(first_rows(networks=("lenet",)))
    assert first_step.along_law().holds and first_step.shrinks().holds is None
    stored([row for row in first_rows() if row["network"] != "lenet"])
    assert first_step.follows_signal().holds is None


def task_rows(last=4):
    return [
        {"network": network, "task": task, "first": first, "seed": seed, "frequency": place}
        | {"test_accuracy": (0.95 if place <= last else 0.5) - 0.001 * place}
        for network in NETWORKS
        for task in TASKS
        for place, first in enumerate(FIRST_NADS)
        for seed in (0, 1)
    ]


def test_claims_of_nonlinear_tasks_follow_their_rows(stored):
    stored(task_rows())
    assert nonlinear_tasks.nads_order_tasks().holds
    assert nonlinear_tasks.nads_order_tasks().value == pytest.approx(-1)
    one = nonlinear_tasks.nads_order_tasks()
    assert one.interval == pytest.approx((-1, -1))  # its trainings agree
    assert one.num_trainings == len(task_rows()) * 3 / 4  # without the linear control
    assert nonlinear_tasks.nads_before_frequency().holds
    stored(task_rows(last=9))  # all are learned
    assert nonlinear_tasks.nads_order_tasks().holds is None
    reverse = [row | {"first": FIRST_NADS[-1 - int(row["frequency"])]} for row in task_rows()]
    stored(reverse)
    assert nonlinear_tasks.nads_order_tasks().holds is False


def kernel_rows(kernel, alignment=1.0):
    """Return rows along LeNet's waves, with alignments that follow the accuracy after training."""
    from nads_book.studies import rival_theory as study

    trained = study.trained_accuracies("lenet", "waves")
    facts = {"network": "lenet", "family": "waves", "seed": 0, "ratio": 1.0, "gain": 2.0}
    return [
        facts
        | {"key": key, "accuracies": [0.5, 0.5, kernel], "frequency": float(np.hypot(*key))}
        | {"alignment": alignment * trained[str(key)], "energy": trained[str(key)]}
        for key in study.keys("lenet", "waves")
    ]


def test_claims_of_the_rival_theory_follow_its_rows(stored):
    stored(kernel_rows(0.55))
    found = {key: decide() for key, decide in rival_theory.CLAIMS.items()}
    assert found["lazy-below"].holds and found["lazy-below"].value == pytest.approx(55)
    assert found["kernel-orders-waves"].holds and found["energy-before-frequency"].holds
    assert found["kernel-sees-gain"].holds is None  # no designed direction is stored
    assert found["rival-criteria"].holds is None and found["lazy-below"].num_trainings is None
    stored(kernel_rows(0.7, alignment=-1.0))
    found = {key: decide() for key, decide in rival_theory.CLAIMS.items()}
    assert found["lazy-below"].holds is False and found["kernel-orders-waves"].holds is False


def adam_rows(lost):
    inputs = dict(zip(BASES, (3_000, 2_400, 340, 170, 20), strict=True))
    return [
        {"basis": basis, "treatment": treatment, "seed": seed, "effective_inputs": inputs[basis]}
        | {"test_accuracy": 0.5 + 0.001 * seed - lost(treatment, basis) / 100}
        for seed in SEEDS
        for basis in BASES
        for treatment in TREATMENTS
    ]


def test_claims_and_figures_of_adam_follow_their_rows(stored):
    uneven = BASES[2:]
    stored(adam_rows(lambda t, b: 4.0 * (b in uneven and t in ("adam", adam_flip.EQUAL_VARIANCES))))
    assert all(decide().holds for decide in adam_flip.CLAIMS.values())
    assert adam_flip.CLAIMS["adam-uneven"]().value == pytest.approx(4)
    assert "2400" in adam_flip.table_bases()
    assert len(adam_flip.plot_bases().axes) == 1
    stored(adam_rows(lambda t, b: 4.0 * (b != "as is" and t in ("sgd", adam_flip.ONE_STEP_SIZE))))
    assert not any(decide().holds for decide in adam_flip.CLAIMS.values())


def component_rows(first, last):
    def group(share):
        return {
            "nads": {"remove": share / 2, "flip": share},
            "random": {"remove": 0.0, "flip": 0.01},
        }

    groups = [group(first)] + [group(last)] * 9
    example = {"photo": 7, "before": 3, "remove": 3, "flip": 5, "relative": 0.08}
    return [
        {"seed": seed, "groups": [one | {"relative": 0.1} for one in groups], "examples": [example]}
        for seed in (0, 1, 2)
    ]


def test_claims_and_figures_of_small_components_follow_their_rows(stored):
    stored(component_rows(0.05, 0.6))
    found = {key: decide() for key, decide in small_components.CLAIMS.items()}
    assert all(one.holds for one in found.values())
    assert found["small-components"].value == pytest.approx(5)
    assert found["large-components"].value == pytest.approx(60)
    assert len(small_components.plot_groups().axes) == 2
    assert "10.0" in small_components.table_groups()
    stored(component_rows(0.2, 0.3))
    assert not any(decide().holds for decide in small_components.CLAIMS.values())


@pytest.mark.stored
def test_published_spectra_have_the_overlaps_of_the_held_out_test():
    from nads_book.pages import published_spectra

    scored_rows.rows_of.cache_clear()
    found = published_spectra.rows()
    assert found["lenet"]["overlaps"]["10"] == pytest.approx(0.948, abs=0.001)
    assert found["vgg11"]["overlaps"]["50"] == pytest.approx(0.561, abs=0.001)
    assert "overlaps" not in found["densenet121"]  # the authors' directions are kept back
    for row in found.values():
        for source in published_spectra.SOURCES:
            shares = np.array(row[source])
            assert shares[0] == shares.max() and 0 < shares.sum() < 1 + 1e-3
            half, most = row[f"{source} hold"]
            assert half <= most
    table = published_spectra.table_spectra()
    assert "0.95" in table and "–" in table
