"""Build the gallery of reports: ``python tools/report_gallery.py FOLDER [NAME ...]``.

The page *Your first report* links one, in ``book/_static/reports``. Models of timm need ``pip install
timm``. Photos are those of CIFAR-10 (``NADS_DATA``), scaled to the size of the inputs.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

from nads_book.cli import main as nads_book
from nads_book.photos.on_disk import data_root
from torch import Tensor, nn


class M5(nn.Sequential):
    """The audio network M5 (Dai et al., ICASSP 2017) on a waveform, as in PyTorch's tutorial."""

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for channels, width, kernel, stride in (
            (1, 32, 80, 16),
            (32, 32, 3, 1),
            (32, 64, 3, 1),
            (64, 64, 3, 1),
        ):
            layers += [nn.Conv1d(channels, width, kernel, stride), nn.BatchNorm1d(width)]
            layers += [nn.ReLU(), nn.MaxPool1d(4)]
        super().__init__(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 35))

    def forward(self, waves: Tensor) -> Tensor:
        """Return the logits of waveforms (N, 1, L)."""
        return super().forward(waves)  # type: ignore[no-any-return, no-untyped-call]


class Entry(NamedTuple):
    """A report: model, shape of its inputs, and whether photos are compared."""

    model: str
    shape: tuple[int, ...]
    photos: bool = True


GALLERY = {
    "resnet18": Entry("torchvision:resnet18", (3, 32, 32)),
    "mobilenet_v3": Entry("torchvision:mobilenet_v3_small", (3, 32, 32)),
    "efficientnet": Entry("torchvision:efficientnet_b0", (3, 32, 32)),
    "densenet121": Entry("torchvision:densenet121", (3, 32, 32)),
    "convnext": Entry("timm:convnext_atto", (3, 32, 32)),
    "m5_audio": Entry(f"{Path(__file__).stem}:M5", (1, 16_000), photos=False),
    "squeezenet": Entry("torchvision:squeezenet1_1", (3, 64, 64)),
    "regnet": Entry("timm:regnety_002", (3, 96, 96)),
    "vit": Entry("timm:vit_tiny_patch16_224", (3, 224, 224)),
    "mixer": Entry("timm:mixer_s32_224", (3, 224, 224)),
}


def main() -> int:
    """Build the reports that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *GALLERY], metavar="NAME")
    parser.add_argument("--minutes", default="5")
    options = parser.parse_args()
    folder = options.folder.resolve()
    os.chdir(data_root())  # so that pages name no folders of this machine
    for name in options.names or GALLERY:
        model, shape, photos = GALLERY[name]
        command = ["report", model, "--image-shape", *map(str, shape), "--minutes", options.minutes]
        command += ["--images", "."] if photos else []
        if status := nads_book([*command, "--out", str(folder / f"{name}.html")]):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
