"""``nads-book forecast``: predict how many directions more networks would determine."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book forecast``."""
    parser.add_argument("checkpoint", type=Path, help="checkpoint of a run of `nads compute`")
    parser.add_argument(
        "--num-networks",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers of networks to forecast; by default 1, 2, 4, 8 and 16 times that of the run",
    )


def run(checkpoint: Path, num_networks: list[int] | None = None) -> int:
    """Print one line per number of networks."""
    from nads_book.analysis.forecasting import forecast

    for each in forecast(checkpoint, num_networks):
        print(
            f"{each.num_networks:>12,} networks: {each.num_certain:>5} directions certain, "
            f"{each.seconds:,.0f} s"
        )
    return 0
