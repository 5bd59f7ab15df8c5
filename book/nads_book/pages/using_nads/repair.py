"""Repairing a small DenseNet and a narrow ResNet-18 by one-line changes."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import nads_core as nc
from nads_book.analysis.statistics import rank_correlation, student_mean
from nads_book.evidence import Evidence, Facts, above, evidence
from nads_book.experiments import load_study
from nads_book.figures import style
from nads_book.report import estimate, fixed, markdown_table, table
from nads_book.studies import repair
from nads_book.studies.repair import (
    CHANGED,
    GOAL,
    MOST_COST,
    NETWORKS,
    RULED_OUT,
    THRESHOLD,
    Repaired,
)

BOTH = "densenet, strided, flat"
SINGLE = ("densenet, flat", "densenet, strided")
OF_RESNET = [name for name in CHANGED if name.startswith("resnet")]
LOW = 0.1  # of the mean energy, below which hardly any wave is learned
BEST = 0.9  # accuracy of the waves that the ResNet-18 learns best


@cache
def repaired() -> Repaired:
    """Return the stored energies and accuracies."""
    content = load_study("repair.json")
    return Repaired.of(content["prediction"], content["rows"])


def named(name: str) -> str:
    """Return the name of a network as the page writes it."""
    return name.replace("densenet", "DenseNet").replace("resnet", "ResNet-18")


@style.styled
def plot_repairs() -> Figure:
    """Draw which of 16 waves are predicted to be learned, and which are, in a row per network."""
    figure, ((axis,),) = style.subplots(height=4.4, grid=None)
    predicted = np.stack([repaired().energies[name] > THRESHOLD for name in NETWORKS])
    learned = np.stack([repaired().learned(name) for name in NETWORKS])  # (networks, waves)
    right, wrong = style.colours()[:2]
    for label, cells, marker, colour in (
        ("predicted, learned", predicted & learned, "o", right),
        ("neither", ~(predicted | learned), ".", style.shade(0.6)),
        ("predicted, not learned", predicted & ~learned, "x", wrong),
        ("learned, not predicted", learned & ~predicted, "D", wrong),
    ):
        places, waves = np.nonzero(cells)
        axis.plot(waves, places, marker, color=colour, markersize=6, label=label)
    for place, wave in enumerate(repair.waves()):
        box = axis.inset_axes((place - 0.42, -1.5, 0.84, 0.84), transform=axis.transData)
        style.show_signed(box, nc.fourier_direction(wave)[0])
    axis.set(xlim=(-0.7, 15.7), ylim=(len(NETWORKS) - 0.5, -1.7), xlabel="wave")
    axis.set_xticks([0, 15], ["coarsest", "finest"])
    axis.set_yticks(range(len(NETWORKS)), map(named, NETWORKS))
    axis.spines[:].set_visible(False)
    style.legend(figure, axis, ncol=2)
    return figure


def table_repairs() -> None:
    """Show by network how many waves it learns, and what it costs on photos."""
    table(_rows(["densenet", *SINGLE, BOTH]), HEAD)


HEAD = ["network", "waves predicted", "learned", "rule right", "photos (%)", "loss (points)"]


def _rows(names: Sequence[str]) -> list[list[object]]:
    found = repaired()
    return [
        [
            named(name),
            int((found.energies[name] > THRESHOLD).sum()),
            int(found.learned(name).sum()),
            int(found.right(name).sum()),
            fixed(100 * found.photos[name].mean()),
            estimate(found.cost(name), 1) if "," in name else "–",
        ]
        for name in names
    ]


def facts(num_trainings: int = 64) -> Facts:
    """Return size and number of trainings of a claim; four networks along 16 waves by default."""
    return {"size": "narrow", "num_seeds": 2, "num_trainings": num_trainings}


def number_learned(name: str) -> int:
    """Return how many waves a network learns."""
    return int(repaired().learned(name).sum())


def repair_original() -> Evidence:
    """Decide whether the DenseNet learns at most three waves."""
    number = number_learned("densenet")
    return evidence(number <= 3, number, **facts())


def repair_both() -> Evidence:
    """Decide whether both changes together let the DenseNet learn at least 12 waves."""
    number = number_learned(BOTH)
    return evidence(number >= GOAL, number, **facts())


def repair_single() -> Evidence:
    """Decide whether the rule is right for all waves after each single change of the DenseNet."""
    found = repaired()
    right = [found.right(name) for name in SINGLE]
    holds = np.all(right) and found.learned("densenet, strided")[-1]
    return evidence(holds, np.sum(right), **facts())


def repair_raises() -> Evidence:
    """Decide whether both changes raise the accuracy along waves that were not learned."""
    before, after = (repaired().waves[name].mean(0) for name in ("densenet", BOTH))
    return above(student_mean(100 * (after - before)[1:]), **facts())


def costs_little(name: str) -> Evidence:
    """Decide whether a change costs at most two points on photos, with an interval below four."""
    cost = repaired().cost(name)
    return evidence(cost[0] <= MOST_COST and cost[2] < RULED_OUT, *cost, **facts(4))


def repair_resnet() -> Evidence:
    """Decide whether a change lets the ResNet-18 learn at least 12 waves."""
    most = max(map(number_learned, OF_RESNET))
    return evidence(most >= GOAL, most, **facts(128))


def repair_resnet_flat() -> Evidence:
    """Decide whether a flat last layer lets the ResNet-18 learn more waves."""
    more = number_learned("resnet, flat") - number_learned("resnet")
    return evidence(more > 0, more, **facts())


def flat_lowers_best() -> Evidence:
    """Decide whether a flat last layer lowers the three best accuracies of the ResNet-18."""
    before, after = (repaired().waves[name].mean(0) for name in ("resnet", "resnet, flat"))
    fall = 100 * (before - after)[before > BEST]
    return evidence(len(fall) == 3 and fall.min() > 20, fall.min(), **facts())


def low_energy_unlearned() -> Evidence:
    """Decide whether at most one wave of low energy is learned, over all eight networks."""
    found = repaired()
    learned = np.concatenate([found.learned(name)[found.energies[name] < LOW] for name in NETWORKS])
    return evidence(learned.sum() <= 1, (~learned).sum(), **facts(256))


def averages_help_photos() -> Evidence:
    """Decide whether both networks score higher on photos with averages than with strides."""
    value, low, high = repaired().cost("resnet, average")
    gains = [(-value, -high, -low), repaired().cost("densenet, strided")]
    least = min(low for _, low, _ in gains)
    holds = least > 2 and number_learned("resnet, average") < number_learned("resnet")
    interval = (least, max(high for *_, high in gains))
    return evidence(holds, min(gains)[0], *interval, null=2, **facts(8))


def by_network() -> str:
    """Return what each network sees and learns, beside a rule that knows the constant wave only."""
    found = repaired()
    constant = np.arange(len(repair.waves())) == 0
    rows = [
        [
            *row,
            int((found.learned(name) == constant).sum()),
            fixed(100 * found.waves[name].mean()),
            fixed(rank_correlation(found.energies[name], found.waves[name].mean(0)), 2),
        ]
        for name, row in zip(NETWORKS, _rows([*NETWORKS]), strict=True)
    ]
    head = [*HEAD, "“only the constant wave” right", "waves (%)", "rank correlation"]
    return markdown_table(rows, head)


def by_wave() -> str:
    """Return energy and both test accuracies of each wave, by network."""
    found = repaired()
    rows = [
        [
            str(wave),
            *(
                f"{found.energies[name][place]:.3g}: "
                + ", ".join(fixed(100 * value) for value in found.waves[name][:, place])
                for name in NETWORKS
            ),
        ]
        for place, wave in enumerate(repair.waves())
    ]
    return markdown_table(rows, ["wave", *map(named, NETWORKS)])


CLAIMS = {
    "repair-cost": lambda: costs_little(BOTH),
    "repair-resnet-cost": lambda: costs_little("resnet, flat"),
}
LAB_TABLES = {
    "Repair: networks": by_network,
    "Repair: energy and test accuracies (%) of both seeds, by wave": by_wave,
}
