"""Trained entries of the atlas: which waves they learned, by the energies of untrained networks."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.frequency_maps import LEARNED
from nads_book.analysis.statistics import area_under_curve, means
from nads_book.atlas import load_atlas
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.figures.style import colours, legend, name_rows, styled, subplots

COARSEST, FINEST = (0, 2), (6, 10)


@cache
def _study() -> Any:
    return load_study("atlas-trained.json")


class Waves(NamedTuple):
    """Trained waves of all entries, one number of each array for an entry and a wave, (n,).

    Attributes:
        entries: names of the entries.
        waves: cycles of the waves.
        accuracies: test accuracies, means over seeds.
        energies: energies relative to the mean direction, at least .01.
        laws: accuracies that the first-step law predicts.
    """

    entries: np.ndarray
    waves: list[tuple[int, int]]
    accuracies: np.ndarray
    energies: np.ndarray
    laws: np.ndarray

    @property
    def learned(self) -> np.ndarray:
        """Whether a wave was learned."""
        return self.accuracies > LEARNED

    def of(self, name: str) -> np.ndarray:
        """Return which rows belong to an entry."""
        return self.entries == name

    @property
    def names(self) -> list[str]:
        """Names of the entries, without repetition."""
        return list(dict.fromkeys(self.entries.tolist()))

    def selective(self) -> list[str]:
        """Return the entries that learned some waves and not others."""
        return [name for name in self.names if 0 < self.learned[self.of(name)].mean() < 1]


@cache
def trained() -> Waves:
    """Return the trained waves."""
    reached = means(((row["entry"], *row["wave"]), row["accuracy"]) for row in _study()["rows"])
    predicted = {(row["entry"], *row["wave"]): row for row in _study()["prediction"]["rows"]}
    rows = {key: row for key, row in predicted.items() if key in reached}
    return Waves(
        entries=np.array([name for name, *_ in rows]),
        waves=[(ky, kx) for _, ky, kx in rows],
        accuracies=np.array([reached[key] for key in rows]),
        # An estimate of almost nothing can be negative.
        energies=np.maximum([row["energy"] for row in rows.values()], 0.01),
        laws=np.array([row["law"] for row in rows.values()]),
    )


def _sizes() -> Facts:
    return {"size": "laptop", "rows": _study()["rows"]}


@styled
def plot_learned() -> Figure:
    """Draw the waves of each trained entry by their energy in random weights, filled where they
    were learned.
    """
    found = trained()
    names = sorted(found.names, key=lambda name: -found.learned[found.of(name)].sum())
    figure, ((axis,),) = subplots(height=0.9 + 0.28 * len(names), grid="x")
    places = np.array([names.index(name) for name in found.entries])
    for label, style, part in (
        ("learned", "full", found.learned),
        ("not learned", "none", ~found.learned),
    ):
        (dots,) = axis.plot(found.energies[part], places[part], "o", label=label)
        dots.set(fillstyle=style, color=colours()[0], markersize=6)
    name_rows(axis, map(_title, names))
    label = "energy of the wave in random weights, relative to the mean direction"
    axis.set(xscale="log", xlabel=label)
    legend(figure, axis, ncols=2)
    return figure


def _title(name: str) -> str:
    change = load_atlas().entries[name].change
    return f"CNN, {change}" if name.startswith("cnn-") else change.removeprefix("a ")


def most_energy_learned() -> Evidence:
    """Decide whether selective networks learned the waves of most energy, and all but one only the
    coarsest.
    """
    found = trained()
    coarsest = np.array([wave == COARSEST for wave in found.waves])
    rows = [found.of(name) for name in found.selective()]
    areas = [area_under_curve(found.energies[part], found.learned[part]) for part in rows]
    alone = sum(bool((found.learned[part] == coarsest[part]).all()) for part in rows)
    holds = min(areas) == 1 and alone + 1 >= len(rows)
    return evidence(holds, min(areas), **_sizes())
