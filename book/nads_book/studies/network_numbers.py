"""How many networks does it take? Runs of few networks, compared with what trained networks learned
and with the NADs that ship.

``book/preregistered/network_numbers.toml`` has what was expected.
"""

import time

import numpy as np

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.similarity import load_entry_nads
from nads_book.experiments import (
    Context,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    factorial,
    load_nads,
    load_study,
    rounded,
)
from nads_book.published.waves import LEARNED, fourier_directions, published_accuracies
from nads_book.statistics import area_under_curve, rank_correlation
from nads_book.studies import forgetting
from nads_core.data.fourier import Frequency

COUNTS = tuple(4 * 2**step for step in range(10))  # 4 to 2,048 networks
LARGEST = {"lenet": 2_048, "cnn": 2_048, "resnet18": 64}
SEEDS = (2_000, 2_001, 2_002)


def learned_waves(network: str) -> dict[Frequency, float]:
    """Return the accuracies of trained networks by wave, in [0, 1]."""
    if network != "cnn":
        return dict(published_accuracies(network))
    rows = load_study("forgetting.json")["rows"]
    cell = forgetting.Cell("cnn", "sgd", 0.5)
    means = forgetting.accuracies(rows)[cell].mean(0)
    return dict(zip(forgetting.waves(), means, strict=True))


def means(rows: Rows, network: str, measure: str) -> dict[int, float]:
    """Return the mean of a measure over the runs of a network, by number of networks."""
    values: dict[int, list[float]] = {}
    for row in rows:
        if row["network"] == network:
            values.setdefault(row["networks"], []).append(row[measure])
    return {count: float(np.mean(of_runs)) for count, of_runs in values.items()}


def enough(rows: Rows, network: str, measure: str, limit: float) -> float:
    """Return the smallest number of networks whose mean measure reaches a limit; infinity if none
    does.
    """
    found = means(rows, network, measure)
    return min((count for count, mean in found.items() if mean >= limit), default=np.inf)


class NetworkNumbers(Study):
    """How many networks does it take to predict what is learned, and to know NADs?"""

    name = "network-numbers"
    on_gpu = False

    def units(self) -> list[Unit]:
        return [
            unit
            for network, largest in LARGEST.items()
            for unit in factorial(
                network=[network],
                networks=[count for count in COUNTS if count <= largest],
                seed=SEEDS,
            )
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        network = unit["network"]
        if network in ATLAS:
            architecture, shipped = ATLAS[network].architecture, load_entry_nads(network)
        else:
            architecture, shipped = nc.ARCHITECTURES[network], load_nads(network)
        began = time.process_time()
        nads = nc.compute_nads(
            architecture,
            (1, 32, 32),
            unit["networks"],
            seed=unit["seed"],
            device="cpu",
            workers=1,
            progress=False,
        )
        seconds = time.process_time() - began
        accuracies = learned_waves(network)
        energies = nads.energy(fourier_directions(accuracies)).numpy()
        measured = np.array([*accuracies.values()])
        return rounded(
            {
                "area": area_under_curve(energies, measured > LEARNED),
                "correlation": rank_correlation(energies, measured),
                "first 10": nads.overlap(shipped, k=10),
                "first 50": nads.overlap(shipped, k=50),
                "certain": int((nads.certainty >= 0.8).sum()),
                "seconds": seconds,
            },
            4,
        )

    def judge(self, rows: Rows) -> Scored:
        """Judge by the registered rules."""
        *areas, last = self.registered["criteria"].items()
        met: dict[str, bool | None] = {
            name: means(rows, rule["network"], rule["measure"])[rule["networks"]]
            >= rule["at_least"]
            for name, rule in areas
        }
        name, rule = last
        met[name] = all(
            enough(rows, network, "first 50", rule["overlap"])
            >= rule["times"] * enough(rows, network, "area", rule["area"])
            for network in LARGEST
        )
        return Scored({}, met)
