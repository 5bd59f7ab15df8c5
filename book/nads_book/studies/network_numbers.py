"""How many networks does it take? Runs of few networks, compared with what trained networks learned
and with the NADs that ship.

``book/preregistered/network_numbers.toml`` has what was expected.
"""

import time
from collections.abc import Mapping

import numpy as np

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.similarity import load_entry_nads
from nads_book.experiments import (
    Context,
    Row,
    Study,
    Unit,
    factorial,
    load_nads,
    rounded,
)
from nads_book.published.waves import LEARNED, fourier_directions, published_accuracies
from nads_book.statistics import area_under_curve, rank_correlation
from nads_book.studies import forgetting
from nads_core.data.fourier import Frequency

COUNTS = tuple(4 * 2**step for step in range(10))  # 4 to 2,048 networks
LARGEST = {"lenet": 2_048, "cnn": 2_048, "resnet18": 64}
SEEDS = (2_000, 2_001, 2_002)


def learned_waves(network: str) -> Mapping[Frequency, float]:
    """Return the accuracies of trained networks by wave, in [0, 1]."""
    return forgetting.cnn_accuracies() if network == "cnn" else published_accuracies(network)


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
