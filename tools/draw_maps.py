"""Draw the still of the bet that README shows: ``python tools/draw_maps.py``."""

import math
from pathlib import Path

from nads_book import figures
from nads_book.explorer.wave_bet import MAPS, NETWORKS, guess_data
from nads_book.site.html_pages import shrink


def draw_maps(path: Path) -> None:
    """Draw energies before and accuracies after training of all networks, with few colours."""
    before, after = {}, {}
    for network in map(guess_data, NETWORKS):
        label, tasks = network["label"], network["tasks"]
        depth = -math.log10(min(energy for *_, energy, _ in tasks))
        before[label] = {(ky, kx): 1 + math.log10(energy) / depth for ky, kx, energy, _ in tasks}
        after[label] = {(ky, kx): 100 * accuracy for ky, kx, _, accuracy in tasks}
    rows = {"before training": before, "after training": after}
    own = {"before training": "log energy (relative)"}
    figure = figures.plot_frequency_maps(rows, own=own)
    figure.savefig(path, dpi=120)
    shrink(path)


if __name__ == "__main__":
    draw_maps(MAPS)
