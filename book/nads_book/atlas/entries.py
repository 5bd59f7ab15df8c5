"""The atlas: small architectures that differ from another one in a single thing, as named values.

Definitions are stable: what ships under a name was computed from what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass

from nads_book.atlas.small_networks import MLP, ConvNeXt, SmallCNN, Tokens
from nads_core.networks.architectures import Architecture, DenseNet121Net, ResNet18Net

_SQUARE = ("flip_rows", "flip_columns", "transpose", "channels")
_NO_FLIPS = ("transpose", "channels")
_FAMILIES = {
    "cnn": "CNN", "resnet": "ResNet", "densenet": "DenseNet", "vit": "ViT", "mixer": "Mixer", "convnext": "ConvNeXt",
    "mlp": "MLP",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One architecture of the atlas.

    Args:
        architecture: architecture that draws the networks.
        factor: changed property, such as "pooling"; "" for entries from which others differ.
        base: name of the entry from which it differs in this alone; "" where there is none.
        change: label of the change, such as "average pooling".
        stride: number of pixels per step at the end of the network, the product of its strides.
    """

    architecture: Architecture
    factor: str
    base: str
    change: str
    stride: int = 8

    @property
    def name(self) -> str:
        """Such as "cnn-average"."""
        return self.architecture.name

    @property
    def family(self) -> str:
        """What kind of network it is, such as "CNN"."""
        return _FAMILIES[self.name.partition("-")[0]]

    @property
    def num_networks(self) -> int:
        """How many networks were drawn for what ships, more where one costs milliseconds."""
        return 8_192 if self.architecture.module is SmallCNN else 2_048


# No padding leaves sides of 15 and 13 pixels, of which pooling drops an edge; strides sample rows 0, 2, 4, ...
def _cnn(name: str, factor: str, change: str, base: str = "cnn", *, flips: bool = True, **options: object) -> Entry:
    stride = 1 if options.get("pooling") == "none" else 8
    symmetries = _SQUARE if flips else _NO_FLIPS
    return Entry(Architecture(name, SmallCNN, options, symmetries, 8), factor, base, change, stride)


def _resnet(name: str, factor: str, change: str, base: str = "resnet", **options: object) -> Entry:
    pooled = options.get("pooling", "strided") != "strided"  # strides sample rows 0, 2, 4, ...: no flips
    architecture = Architecture(
        name, ResNet18Net, {"width": 16} | options, _SQUARE if pooled else _NO_FLIPS, 8 if pooled else 1
    )
    return Entry(architecture, factor, base, change)


def _dense(name: str, factor: str, change: str, base: str = "densenet", **options: object) -> Entry:
    small = {"growth": 8, "depths": (3, 3, 3, 3)}
    return Entry(Architecture(name, DenseNet121Net, small | options, _SQUARE, 8), factor, base, change)


def _tokens(name: str, factor: str, change: str, base: str = "vit", patch: int = 4, **options: object) -> Entry:
    even = options.get("position") != "sine"  # fixed waves tell left from right
    architecture = Architecture(
        name, Tokens, {"patch": patch} | options, _SQUARE if even else _NO_FLIPS[1:], patch if even else 1
    )
    return Entry(architecture, factor, base, change, patch)


_ENTRIES = (
    _cnn("cnn", "", "the small CNN", ""),
    _cnn("cnn-average", "pooling", "average pooling", pooling="average"),
    _cnn("cnn-blurred", "pooling", "blurred pooling", pooling="blurred"),
    _cnn("cnn-strided", "pooling", "strided convolutions", flips=False, pooling="strided"),
    _cnn("cnn-nopool", "pooling", "no pooling", pooling="none"),
    _cnn("cnn-global", "head", "global average", head="global"),
    _cnn("cnn-poolfirst", "place", "all pooling first", place="first"),
    _cnn("cnn-poollast", "place", "all pooling last", place="last"),
    _cnn("cnn-kernel1", "kernel", "1x1 filters", kernel=1),
    _cnn("cnn-kernel5", "kernel", "5x5 filters", kernel=5),
    _cnn("cnn-kernel7", "kernel", "7x7 filters", kernel=7),
    _cnn("cnn-depth6", "depth", "6 convolutions", depth=2),
    _cnn("cnn-depth12", "depth", "12 convolutions", depth=4),
    _cnn("cnn-width4", "width", "4 channels", width=4),
    _cnn("cnn-width64", "width", "64 channels", width=64),
    _cnn("cnn-circular", "padding", "circular padding", padding="circular"),
    _cnn("cnn-valid", "padding", "no padding", flips=False, padding="none"),
    _cnn("cnn-residual", "skip", "residual", skip="residual"),
    _cnn("cnn-dense", "skip", "dense", skip="dense"),
    _cnn("cnn-batchnorm", "norm", "batch norm", norms="batch"),
    _cnn("cnn-layernorm", "norm", "layer norm", norms="layer"),
    _cnn("cnn-groupnorm", "norm", "group norm", norms="group"),
    _cnn("cnn-gelu", "activation", "GELU", activations="gelu"),
    _cnn("cnn-tanh", "activation", "tanh", activations="tanh"),
    _cnn("cnn-sine", "activation", "sine", activations="sine"),
    _cnn("cnn-linear", "activation", "no activation", activations="linear"),
    _cnn("cnn-he", "initialisation", "He initialisation", initialisation="he"),
    _cnn("cnn-orthogonal", "initialisation", "orthogonal weights", initialisation="orthogonal"),
    _cnn("cnn-times4", "initialisation", "weights times 4", initialisation="times 4"),
    _resnet("resnet", "", "ResNet-18 of a quarter of the width", ""),
    _resnet("resnet-average", "pooling", "average pooling", pooling="average"),
    _resnet("resnet-max", "pooling", "max pooling", pooling="max"),
    _resnet("resnet-blurred", "pooling", "blurred pooling", pooling="blurred"),
    _resnet("resnet-flat", "head", "no global average", head="flat"),
    _resnet("resnet-width32", "width", "half of the width", width=32),
    _resnet("resnet-circular", "padding", "circular padding", padding="circular"),
    _resnet("resnet-noskip", "skip", "no skip connections", skip=False),
    _resnet("resnet-nonorm", "norm", "no norm", norms="none"),
    _resnet("resnet-groupnorm", "norm", "group norm", norms="group"),
    _resnet("resnet-tanh", "activation", "tanh", activations="tanh"),
    _resnet("resnet-he", "initialisation", "He initialisation", initialisation="he"),
    _resnet(
        "resnet-he-average", "pooling", "average pooling (He)", "resnet-he", initialisation="he", pooling="average"
    ),
    _resnet("resnet-he-noskip", "skip", "no skip connections (He)", "resnet-he", initialisation="he", skip=False),
    _dense("densenet", "", "a small DenseNet", ""),
    _dense("densenet-circular", "padding", "circular padding", padding="circular"),
    _dense("densenet-max", "pooling", "max pooling", pooling="max"),
    _tokens("vit", "", "a vision transformer, patches of 4", ""),
    _tokens("vit-patch2", "patch", "patches of 2", patch=2),
    _tokens("vit-patch8", "patch", "patches of 8", patch=8),
    _tokens("vit-noposition", "position", "no position", position="none"),
    _tokens("vit-sine", "position", "sines for position", position="sine"),
    _tokens("mixer", "mixing", "MLP-Mixer", "vit-noposition", mixing="tokens", position="none"),
    Entry(Architecture("convnext", ConvNeXt, {}, _SQUARE, 4), "", "", "a small ConvNeXt", 4),
    Entry(Architecture("mlp", MLP), "", "", "an MLP", 1),
)
ATLAS = {entry.name: entry for entry in _ENTRIES}
