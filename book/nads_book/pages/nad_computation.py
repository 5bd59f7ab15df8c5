"""The page ``09_nad_computation``: how NADs are computed, and how well they are known.

What runs cost; which estimators agree, and the paper's directions; independent runs and
certainties; strides, poolings and the last average, which explain combs; dipoles and gradients.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nads_core as nc
from nads_book import figures
from nads_book.benchmarks import load_costs
from nads_book.claims import decides
from nads_book.experiments import Rows, formatting, load_nads, load_study, matching
from nads_book.experiments.evidence import Evidence, evidence
from nads_book.experiments.formatting import LABELS
from nads_book.figures.style import (
    colours,
    legend,
    log_ticks,
    name_rows,
    rule,
    shade,
    styled,
    subplots,
)
from nads_book.pages.scored_rows import registered, rows_of
from nads_book.published.waves import half_of_energy, spectrum_of
from nads_book.studies.calibration import ENTRIES
from nads_book.studies.mixed_derivative import NETWORKS
from nads_book.studies.network_numbers import LARGEST, enough, means
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture, architecture_named
from nads_core.runtime.seeds import seeded

Source = Architecture | Callable[[], nn.Module] | str
OURS, AUTHORS = 2_000, 10_000  # networks of a default run, and of the authors' computation
DURATIONS = {"1 s": 1, "10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3_600, "10 h": 36_000}
DURATIONS |= {"4 days": 345_600}
RUNS = {  # stored costs -> number of networks of a run
    "smoothed gradient": ("smoothed-16", OURS),
    "the same in bfloat16": ("smoothed-16-bfloat16", OURS),
    "authors' dipole": ("dipole", AUTHORS),
}
NAMES = LABELS | {
    "mlp": "MLP",
    "cnn": "Small CNN",
    "vit": "Small ViT",
    "deep-linear": "Deep linear, exact C",
}
FEW = 15  # claims, below which a bin decides nothing
HIGH = 0.8  # certainty from which on LeNet's directions count as known
CERTAIN = 0.81  # predicted cos² above which a direction counts as reproducible
FIFTHS = {2: "below .4", 3: ".4 to .6", 4: ".6 to .8", 5: ".8 to 1"}  # below .3 is 0
STEPS = np.arange(17)  # vertical frequencies of images of 32 rows
TEETH = STEPS % 4 == 0
ARMS = np.array([1, 10, 100, 300])  # of dipoles
AREA, OVERLAP, TIMES = 0.95, 0.8, 4  # as registered, of few networks
MOST = 128  # networks; chosen after seeing the results
CURVES = {
    "area, learned waves": "area",
    "rank correlation": "correlation",
    "overlap, first 10": "first 10",
    "overlap, first 50": "first 50",
}


# Costs


@cache
def costs() -> dict[tuple[str, str], Any]:
    """Return the stored costs of the paper's architectures: (architecture, method) -> cost."""
    return {(cost["architecture"], cost["method"]): cost for cost in load_costs("cost")}


@styled
def plot_run_times() -> Figure:
    """Draw the time of a whole run of each architecture on two CPU cores."""
    figure, ((axis,),) = subplots(height=2.4, grid="x")
    for (label, (method, count)), marker in zip(RUNS.items(), "os^", strict=True):
        times = [count * costs()[name, method]["seconds_per_network"] for name in LABELS]
        axis.plot(times, range(len(times)), marker, label=label, markersize=6)
    axis.set_xlabel("time of a run")
    log_ticks(axis, list(DURATIONS.values()), DURATIONS)
    name_rows(axis, LABELS.values())
    legend(figure, axis, ncols=len(RUNS))
    return figure


@decides("fewer-passes")
def _():
    """Decide whether a dipole along every pixel takes 50 to 80 times the operations of 16
    inputs.
    """
    dipole, smoothed = (costs()["resnet18", method]["work"] for method in ("dipole", "smoothed-16"))
    factor = dipole["forward"] / (smoothed["forward"] + smoothed["backward"])
    return evidence(50 < factor < 80, factor)


@decides("certainty-not-bought")
def _():
    """Decide whether 64 networks leave the first directions at 3 × 224 × 224 unknown."""
    runs = load_costs("large")
    common = max(one["half_overlap"] for run in runs for one in run["first_directions"].values())
    falls = max(run["eigenvalues"][0] / run["eigenvalues"][-1] for run in runs)
    return evidence(common < 0.05 and falls < 10, common, size="paper")


# Estimators


def stored_beside(nads: NADs) -> dict[str, NADs]:
    """Return a run for a figure, below the NADs that ship if its architecture is one of ours."""
    label = f"{LABELS.get(nads.name, nads.name)}\n({nads.provenance['num_networks']:,})"
    if nads.name in nc.ARCHITECTURES:
        stored = load_nads(nads.name)
        if stored.directions.shape[1:] == nads.directions.shape[1:]:
            return {f"stored\n({stored.provenance['num_networks']:,})": stored, label: nads}
    return {label: nads}


def plot_along_a_line(architecture: Source, direction: Tensor, seed: int = 0) -> Figure:
    """Draw output and slope of a random network along a line, near an image and from afar."""
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, tuple(direction.shape))
    with seeded(seed):
        if isinstance(architecture, Architecture):
            network = architecture.build(direction.shape[0], direction.shape[-1], 1)
        else:
            network = architecture()
    network = network.double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(1, *direction.shape, generator=generator).double()
    direction = direction.double()

    def output(t: Tensor) -> Tensor:
        steps = t.reshape(-1, *[1] * direction.dim())
        return network(image + steps * direction).flatten(1)[:, 0]

    at_image = torch.func.grad(lambda t: output(t).sum())(torch.zeros(1).double())
    cuts = {}
    for title, reach in (("near the image", 1.0), ("from afar", 100.0)):
        places = torch.linspace(-reach, reach, 2_000).double()
        cuts[title] = (places, torch.cat([output(some) for some in places.split(200)]))
    ends = cuts["from afar"][1]
    slopes = {
        "gradient at the image": float(at_image),
        "dipole, ρ = 100": float(ends[-1] - ends[0]) / 200,
    }
    return figures.plot_kinks(cuts, slopes)


@decides("point-flat")
def _():
    """Decide whether gradients at a point prefer any wave, from 4,096 LeNets."""
    rows = load_study("estimator-orders.json")["rows"]
    energies = {row["estimator"]: row["DFT"] for row in rows}
    ratio = max(energies["point"]) / min(energies["point"])
    return evidence(ratio < 1.2 and max(energies["smoothed"]) > 10, ratio, size="paper")


@decides("errata-similar", criterion="very similar for most networks")
@decides("errata-stable", criterion="the gradient is more stable")
def _(criterion: str) -> Evidence:
    """Decide a sentence of the paper by a registered criterion, with the overlaps of each
    network.
    """
    texts = []
    for row in rows_of("mixed-derivative"):
        own = [row["overlaps"][kind] for kind in ("smoothed", "mixed")]
        across = row["overlaps"]["averaged over inputs"]
        texts.append(
            f"{LABELS[row['network']]}: two runs of the gradient overlap by {own[0]:.2f}, two of "
            f"the mixed derivative by {own[1]:.2f}, one of each by {across:.2f}"
        )
    text = "; ".join(texts) + f" (first ten directions, {len(texts)} of {len(NETWORKS)} networks)."
    return registered("mixed-derivative", [criterion], sentence=text, size="paper")


# The paper's directions


def published_overlaps() -> dict[str, dict[int, float]]:
    """Return the overlaps of our first NADs with the published ones: label -> number -> overlap."""
    return {
        LABELS[row["architecture"]]: {int(k): one for k, one in row["overlaps"].items()}
        for row in rows_of("published-spectra")
        if "overlaps" in row
    }


def show_published() -> None:
    """Display the overlaps of our NADs with the published ones."""
    found = published_overlaps()
    counts = list(next(iter(found.values())))
    rows = [
        [label, *(f"{one:.3f}" for one in overlaps.values())] for label, overlaps in found.items()
    ]
    formatting.table(rows, ["overlap with the published NADs", *(f"first {k}" for k in counts)])


@decides("published-directions")
def _():
    """Decide whether the first ten NADs of two networks are the published ones, and a third's
    not.
    """
    tens = {label: overlaps[10] for label, overlaps in published_overlaps().items()}
    holds = min(tens["LeNet"], tens["ResNet-18"]) > 0.9 > 0.8 > tens["VGG-11"]
    return evidence(holds, tens["VGG-11"], size="paper")


@decides("errata-unique")
def _():
    """Return the largest overlap of two networks, which decides nothing about trained ones."""
    shipped = {label: load_nads(name) for name, label in LABELS.items() if name != "logreg"}
    found = {
        (a, b): float(shipped[a].overlap(shipped[b], 100)) for a, b in combinations(shipped, 2)
    }
    ends = [
        f"{found[pair]:.2f} ({' and '.join(pair)})" for pair in sorted(found, key=found.__getitem__)
    ]
    text = (
        f"The first 100 NADs of two of the four networks overlap by {ends[0]} to {ends[-1]}; "
        f"random subspaces by {100 / 1024:.2f}. Which features trained networks use is another "
        "question."
    )
    return evidence(None, max(found.values()), sentence=text, size="paper")


# Certainty


@cache
def agreement() -> dict[str, np.ndarray]:
    """Return squared cosines of LeNet's directions with another run, found and foretold.

    Raises:
        ValueError: if the stored comparison is of other NADs than those that ship.
    """
    stored = load_study("agreement.json")["lenet"]
    if stored["fingerprint"] != load_nads("lenet").fingerprint:
        raise ValueError("agreement.json is about other NADs of LeNet than those that ship")
    return {name: np.array(stored[name]) for name in ("by_index", "by_name", "foretold")}


@cache
def calibration() -> pd.DataFrame:
    """Return the calibration of certainties: claimed and measured (kept) squared cosines by bin,
    errors, and numbers of claims, of all sets of runs.
    """
    stored = {row["entry"]: row for row in load_study("calibration.json")["rows"]}
    fields = ("architecture", "num_networks", "runs")
    columns = ["claimed", "kept", "error", "count"]
    sets = [
        # One without bins, since nothing is certain, has a row of NaN.
        pd.DataFrame(stored[name]["bins"] or [{}], columns=columns).assign(
            **{key: stored[name][key] for key in fields}
        )
        for name in ENTRIES
        if name in stored
    ]
    return pd.concat(sets, keys=range(len(sets)), names=["set"])


def plot_two_runs(
    architecture: Source,
    counts: Sequence[int],
    image_shape: tuple[int, ...] = (1, 32, 32),
    seed: int = 0,
    k: int = 10,
) -> Figure:
    """Compute two independent runs; draw how well they agree, and what they predict of it.

    Args:
        architecture: architecture, or its name.
        counts: numbers of networks, ascending.
        image_shape: shape of the inputs.
        seed: seed of the first run; the second one has another.
        k: number of leading NADs whose subspaces are compared.
    """
    with TemporaryDirectory() as folder:  # a checkpoint lets each run continue from its last count
        runs = [
            [
                nc.compute_nads(
                    architecture,
                    image_shape,
                    count,
                    seed=seed + turn,
                    checkpoint=f"{folder}/{turn}.ckpt",
                    progress=False,
                )
                for count in counts
            ]
            for turn in (1, 2)
        ]
    pairs = list(zip(*runs, strict=True))
    curves = {
        f"first {k}, measured": [float(a.overlap(b, k=k)) for a, b in pairs],
        "predicted by the runs": [_leading(a, k) * _leading(b, k) for a, b in pairs],
        "random directions": [k / runs[0][0].basis.shape[0]] * len(counts),
    }
    lines = {label: (counts, values) for label, values in curves.items()}
    axes = ("networks in each run", "overlap of two runs")
    return figures.plot_lines({"": lines}, *axes, counts, ylim=(0, 1.02))


def _leading(nads: NADs, k: int) -> float:
    known = nads.uncertainty
    return float("nan") if known is None else float(known.leading_certainty[k - 1])


@styled
def plot_reliability() -> Figure:
    """Draw claimed against measured squared cosines, for many runs, one panel per network."""
    panels = calibration().groupby("architecture", sort=False)
    rows = -(-len(panels) // 3)
    figure, grid = subplots(rows, 3, height=2.7 * rows)
    for axis in grid.flat[len(panels) :]:
        axis.axis("off")
    for axis, (architecture, of_sizes) in zip(grid.flat, panels, strict=False):
        axis.plot([0, 1], [0, 1], color=shade(0.6))
        for (_, bins), colour in zip(of_sizes.groupby("set"), colours(), strict=False):
            label = f"{bins['runs'].iloc[0]} runs of {bins['num_networks'].iloc[0]:,}"
            claimed, kept, error, count = (
                bins[["claimed", "kept", "error", "count"]].dropna().T.values
            )
            axis.errorbar(claimed, kept, 2 * error, fmt="none", color=colour)
            areas = 12 + count
            axis.scatter(claimed, kept, areas, colour, alpha=0.6, linewidth=0, label=label)
        if of_sizes["claimed"].isna().all():
            axis.text(0.5, 0.5, "nothing is claimed", ha="center", va="center")
        axis.set(xlabel="claimed cos²", ylabel="measured cos²", aspect="equal")
        axis.set(title=NAMES[architecture])
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        for handle in axis.legend(loc="upper left", fontsize="small").legend_handles:
            handle.set_sizes([30])
    return figure


@decides("ordered-basis")
def _():
    """Decide whether a hundred directions of LeNet are reproducible, and 300 as a subspace."""
    certain = agreement()["foretold"] > CERTAIN
    found = agreement()["by_name"][certain]
    subspace = load_study("agreement.json")["lenet"]["overlaps"]["300"]
    holds = found.mean() > CERTAIN and certain.sum() > 100 and subspace > 0.9
    return evidence(holds, found.mean(), size="paper", num_seeds=2)


@decides("head-known")
def _():
    """Decide whether high certainties of LeNet's directions are kept by a much longer run."""
    bins = calibration().query("architecture == 'lenet'")
    high = bins.query("count >= @FEW and claimed >= @HIGH")
    excess = (high["claimed"] - high["kept"]).max()
    return evidence(excess < 0.05, excess, size="paper", num_seeds=int(bins["runs"].iloc[0]))


@decides("names-steadier")
def _():
    """Decide whether directions of one name agree better than those of one index."""
    gain = (agreement()["by_name"] - agreement()["by_index"])[:50].mean()
    return evidence(gain > 0, gain, size="paper", num_seeds=2)


@decides("certificates-bold")
def _():
    """Decide whether some certainties are too high."""
    many = calibration().query("count >= @FEW")
    excess = (many["claimed"] - many["kept"]).max()
    return evidence(excess > 0.05, excess, size="paper")


def table_by_certainty() -> str:
    """Return claimed and measured squared cosines, for each set of runs and fifth of certainties.

    The last column is the standard deviation of the measured mean of one run between .4 and .8: the
    bins' standard error over runs, times the root of their number.
    """
    rows = []
    for _, bins in calibration().groupby("set"):
        cells = dict.fromkeys(FIFTHS, "–")
        for fifth, part in bins.dropna().groupby(bins["claimed"] * 5 // 1 + 1):
            if part["count"].sum() >= FEW:
                means = np.average(part[["claimed", "kept"]], 0, part["count"])
                cells[fifth] = "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}".join(
                    f"{mean:.2f}" for mean in means
                )
        first = bins.iloc[0]
        error = bins["error"][(bins["claimed"] >= 0.4) & (bins["claimed"] < 0.8)].mean()
        spread = formatting.fixed(
            float(error * first["runs"] ** 0.5), 2
        )  # a dash without such bins
        runs = f"{first['runs']} × {first['num_networks']:,}"
        rows.append([NAMES[first["architecture"]], runs, *map(cells.get, FIFTHS), spread])
    return formatting.markdown_table(
        rows, ["network", "runs × networks", *FIFTHS.values(), "one run"]
    )


def table_shipped() -> str:
    """Return the networks, the concentration and the reliable directions of the NADs that ship."""
    rows = []
    for label in LABELS.values():
        nads = load_nads(label)
        values = nads.eigenvalues
        certain = int((nads.certainty >= 0.9).sum()) if nads.uncertainty else "–"
        spread = f"{float(values[0] / values[-1]):,.0f}"
        number = f"{nads.provenance['num_networks']:,}"
        rows.append([label, number, half_of_energy(nads), spread, certain])
    head = ["NADs that ship", "networks", "NADs with half of the energy", "first / last eigenvalue"]
    return formatting.markdown_table(rows, [*head, "certain above 0.9"])


# Of the page "How certain is a NAD?": marker in its text -> table
TABLES: dict[str, Callable[[], str]] = {
    "calibration": table_by_certainty,
    "shipped": table_shipped,
}


# How many networks it takes


@cache
def network_numbers() -> Rows:
    """Return the measures of all runs."""
    rows: Rows = load_study("network-numbers.json")["rows"]
    return rows


@styled
def plot_network_numbers() -> Figure:
    """Draw what runs of few networks predict and know, above the number of certain directions."""
    figure, axes = subplots(
        2, len(LARGEST), height=4.2, sharex="col", sharey="row", height_ratios=(2, 1)
    )
    for (upper, lower), network in zip(axes.T, LARGEST, strict=True):
        for (label, measure), marker in zip(CURVES.items(), "os^v", strict=True):
            values = means(network_numbers(), network, measure)
            upper.plot(values.keys(), values.values(), marker, linestyle="-", label=label)
        rule(upper, AREA)
        certain = means(network_numbers(), network, "certain")
        lower.plot(certain.keys(), certain.values(), "o-")
        seconds = means(network_numbers(), network, "seconds")
        ticks = list(seconds)[:: -(-len(seconds) // 3)]
        labels = [f"{count:,}\n{seconds[count]:.2g} s" for count in ticks]
        log_ticks(lower, ticks, labels)
        upper.set_title(NAMES[network])
        lower.set_xlabel("networks, processor time")
    axes[0, 0].set(ylabel="1 is perfect", ylim=(0, 1.03))
    axes[1, 0].set_ylabel("certain by 0.8")
    legend(figure, axes[0], ncols=4)
    return figure


@decides("few-networks")
def _():
    """Decide whether so many networks predict which waves are learned, and in which networks
    knowing the first 50 NADs takes several times as many.
    """
    areas = {network: enough(network_numbers(), network, "area", AREA) for network in LARGEST}
    several = [
        network
        for network, count in areas.items()
        if enough(network_numbers(), network, "first 50", OVERLAP) >= TIMES * count
    ]
    most = max(areas.values())
    holds = most <= MOST and several == ["lenet", "resnet18"]
    return evidence(holds, most, size="paper", num_seeds=3)


# Combs: strides, poolings and the last average


def rows_of_spectrum(nads: NADs) -> np.ndarray:
    """Return the energy of C by row of its spectrum, in percent: of 0 to 16 cycles."""
    spectrum = spectrum_of(nads)
    rows = 100 * spectrum.sum(1) / spectrum.sum()  # of −16 to 15
    return np.array([float(rows[16 - k] + rows[(16 + k) % 32]) / 2 for k in range(17)])


def comb_share(nads: NADs, step: int = 4) -> float:
    """Return the energy of C at frequencies that are multiples of a step, but for the constant."""
    spectrum = spectrum_of(nads)
    size = len(spectrum)
    teeth = (torch.arange(size) - size // 2) % step == 0
    lattice = teeth[:, None] & teeth
    lattice[size // 2, size // 2] = False
    return float(spectrum[lattice].sum() / spectrum.sum())


def small_network(
    strides: bool = True,
    global_average: bool = True,
    padding: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
) -> nn.Module:
    """Return three convolutions that halve the resolution of 1 × 32 × 32, and a linear layer.

    Args:
        strides: whether they keep every other pixel; otherwise they average pairs of pixels.
        global_average: whether the linear layer sees an average over places; otherwise all places.
        padding: padding mode of the convolutions.
    """
    layers: list[nn.Module] = []
    channels, stride = 1, 2 if strides else 1
    for width in (16, 32, 32):
        layers.append(nn.Conv2d(channels, width, 3, stride=stride, padding=1, padding_mode=padding))
        layers += [nn.ReLU()] if strides else [nn.ReLU(), nn.AvgPool2d(2)]
        channels = width
    places = 1 if global_average else 4
    layers += [nn.AdaptiveAvgPool2d(places), nn.Flatten(), nn.Linear(32 * places**2, 1)]
    return nn.Sequential(*layers)


@cache
def measured() -> dict[str, np.ndarray]:
    """Return `rows_of_spectrum` of the NADs that ship, of the networks that are predicted."""
    return {label: rows_of_spectrum(load_nads(label)) for label in predicted()}


def predicted() -> dict[str, np.ndarray]:
    """Return the energy by row that strides and poolings alone predict, in percent."""
    passed = np.cos(np.pi * STEPS / 32) ** 2 * np.cos(np.pi * STEPS / 16) ** 2
    whole = passed[0] + passed[16] + 2 * passed[1:16].sum()
    return {
        "ResNet-18": np.where(TEETH, 100 / 8, 0),
        "DenseNet-121": np.where(STEPS == 0, 100.0, 0.0),
        "LeNet": 100 * passed / whole,
    }


def plot_combs() -> Figure:
    """Draw the energy of C by vertical frequency: measured in random networks, and predicted."""
    return figures.plot_curves(
        STEPS,
        {label: {"measured": values} for label, values in measured().items()},
        "energy (% of the total)",
        dashed={label: {"predicted": values} for label, values in predicted().items()},
        yscale="log",
        xlabel="vertical frequency",
        ylim=(0.05, 150),
    )


@decides("comb")
def _():
    """Decide whether ResNet-18's second moment is a comb, and DenseNet-121's one spike of it."""
    resnet = measured()["ResNet-18"]
    gap = resnet[TEETH].min() / resnet[~TEETH].max()
    return evidence(gap > 5 and measured()["DenseNet-121"][0] > 80, gap, size="paper")


# Dipoles or averaged gradients


def moved(network: str, arm: int = 100) -> tuple[float, float]:
    """Return the share of energy that dipoles find elsewhere, and what sampling alone gives."""
    (row,) = matching(load_study("definitions.json")["rows"], network=network)
    share, by_sampling = row["moved"][f"gradient 1 | dipole {arm}"]
    return share, by_sampling


@styled
def plot_definitions() -> Figure:
    """Draw the energy that dipoles find elsewhere than gradients, for three networks."""
    networks = {
        "three max poolings": "max pooling, 3",
        "three average poolings": "average pooling, 3",
        "no pooling": "no pooling, 3",
    }
    figure, ((axis,),) = subplots(height=3.2)
    for number, (label, network) in enumerate(networks.items()):
        shares, chance = np.array([moved(network, arm) for arm in ARMS]).T
        axis.errorbar(ARMS * 1.03**number, shares, 2 * chance, elinewidth=0.7)
        axis.annotate(label, (1.2 * ARMS[-1], shares[-1]), va="center", annotation_clip=False)
    axis.set(xlabel="step of the dipole", ylabel="share of energy elsewhere")
    axis.set(xscale="log", ylim=(0, None))
    return figure


@decides("max-pooling-moves")
def _():
    """Decide whether the definitions differ more with each max pooling, and less with averages."""
    one, two, most = (moved(f"max pooling, {n}")[0] for n in (1, 2, 3))
    averages, sampling = moved("average pooling, 3")
    return evidence(one < two < most > averages > 3 * sampling, most, size="narrow")
