"""Small networks of the atlas, each option of which changes one factor."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.networks.architectures import (
    DenseNet121Net,
    PlainNet18,
    ResNet18Net,
    downsample,
    halved,
)

PLACES = {"each": (1, 1, 1), "first": (3, 0, 0), "last": (0, 0, 3)}  # poolings after each stage


class Sine(nn.Module):
    """The sine of every number."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin()


class Residual(nn.Sequential):
    """Layers whose output is added to their input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)  # type: ignore[no-untyped-call]


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sine": Sine,
    "linear": nn.Identity,
}
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": nn.Identity,
    "batch": nn.BatchNorm2d,
    "layer": partial(nn.GroupNorm, 1),
    "group": partial(nn.GroupNorm, 4),
}


class Concatenated(nn.Sequential):
    """Layers whose output is appended to their input, channel by channel, as in the dense blocks of
    DenseNet-121.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, C + C', H, W)."""
        return torch.cat([x, super().forward(x)], 1)  # type: ignore[no-untyped-call]


SKIPS: dict[str, type[nn.Sequential]] = {
    "none": nn.Sequential,
    "residual": Residual,
    "dense": Concatenated,
}
_LAYER_OPTIONS = ("norms", "activations", "padding", "initialisation")


def exchange_layers(
    network: nn.Module,
    *,
    norms: str = "batch",
    activations: str = "relu",
    padding: str = "zeros",
    initialisation: str = "default",
) -> None:
    """Change the layers of a network with batch norms and ReLUs, in place.

    Args:
        network: network to change.
        norms: norm in place of batch norm, one of `NORMS`.
        activations: activation in place of ReLU, one of `ACTIVATIONS`.
        padding: "circular" to continue images periodically.
        initialisation: PyTorch's "default"; "he": normal weights of variance 2 / fan-in, biases 0;
            "orthogonal", with gain sqrt(2), biases 0; "times 4": the default's weights and biases,
            four times as large.
    """
    for parent in [*network.modules()]:
        for name, layer in [*parent.named_children()]:
            if isinstance(layer, nn.BatchNorm2d):
                setattr(parent, name, NORMS[norms](layer.num_features))
            elif isinstance(layer, nn.ReLU):
                setattr(parent, name, ACTIVATIONS[activations]())
            elif (
                isinstance(layer, nn.Conv2d)
                and layer.kernel_size != (1, 1)
                and padding == "circular"
            ):
                layer.padding_mode = "circular"
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            _initialise(layer, initialisation)


def _initialise(layer: nn.Conv2d | nn.Linear, initialisation: str) -> None:
    """Draw the weights of a layer again, or scale them."""
    with torch.no_grad():
        if initialisation == "times 4":
            for parameter in layer.parameters():
                parameter.mul_(4)
        elif initialisation != "default":
            if initialisation == "he":
                nn.init.kaiming_normal_(layer.weight)
            else:
                nn.init.orthogonal_(layer.weight, math.sqrt(2))
            if layer.bias is not None:
                layer.bias.zero_()


class SmallCNN(nn.Module):
    """Three stages of convolution, ReLU and max pooling, and one linear layer; each argument
    changes one thing.

    Args:
        in_channels, image_size, num_classes: sizes of the input and the output, as of
            `Architecture.build`.
        pooling: one of `POOLINGS` of `nads_core.networks.architectures`.
        place: position of the three poolings: one after "each" stage, or all after the "first" or
            the "last".
        head: "flat", or "global" for the mean over all places of each channel.
        kernel: side of the filters.
        depth: number of convolutions per stage.
        width: number of channels.
        padding: "zeros", "circular" or "none".
        skip: "residual" adds the input of a convolution to its output, "dense" concatenates them.
        norms: one of `NORMS`.
        **layers: activations and initialisation, see `exchange_layers`.
    """

    def __init__(
        self,
        in_channels: int,
        image_size: int,
        num_classes: int,
        *,
        pooling: str = "max",
        place: str = "each",
        head: str = "flat",
        kernel: int = 3,
        depth: int = 1,
        width: int = 16,
        padding: str = "zeros",
        skip: str = "none",
        norms: str = "none",
        **layers: str,
    ):
        super().__init__()
        features: list[nn.Module] = []
        channels, size, border = in_channels, image_size, 0 if padding == "none" else kernel // 2
        for poolings in PLACES[place]:
            for _ in range(depth):
                block = nn.Sequential if skip == "residual" and channels != width else SKIPS[skip]
                convolution = nn.Conv2d(channels, width, kernel, padding=border)
                features.append(block(convolution, nn.BatchNorm2d(width), nn.ReLU()))
                channels = channels + width if skip == "dense" else width
                size += 2 * border - kernel + 1
            for _ in range(poolings):
                features.append(downsample(pooling))
                size = halved(size, pooling)
        self.features = nn.Sequential(*features)
        self.head = (
            nn.Flatten() if head == "flat" else nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        )
        self.linear = nn.Linear(channels * (size**2 if head == "flat" else 1), num_classes)
        exchange_layers(self, norms=norms, padding=padding, **layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.head(self.features(x)))


def resnet(*sizes: int, skip: bool = True, **options: Any) -> nn.Module:
    """Return a ResNet-18, with options of `ResNet18Net` and of `exchange_layers`.

    Without ``skip`` its blocks have no connections around them. By default its branches are quieter
    than their shortcuts; with ``initialisation="he"`` they are about as loud.
    """
    return _exchanged(ResNet18Net if skip else PlainNet18, sizes, options)


def densenet(*sizes: int, **options: Any) -> nn.Module:
    """Return a DenseNet-121, with options of `DenseNet121Net` and of `exchange_layers`."""
    return _exchanged(DenseNet121Net, sizes, options)


def _exchanged(
    module: Callable[..., nn.Module], sizes: tuple[int, ...], options: dict[str, Any]
) -> nn.Module:
    layers = {name: options.pop(name) for name in _LAYER_OPTIONS if name in options}
    network = module(*sizes, **options)
    exchange_layers(network, **layers)
    return network


class MLP(nn.Module):
    """Two hidden layers of 256 on the pixels."""

    def __init__(self, in_channels: int, image_size: int, num_classes: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(in_channels * image_size**2, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class _Attention(nn.Module):
    """Self-attention of four heads, (N, T, width) -> (N, T, width)."""

    def __init__(self, width: int):
        super().__init__()
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            self.mixed(x).unflatten(-1, (3, 4, -1)).movedim(-3, 0).transpose(-2, -3)
        )  # (N, 4, T, w)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(-2, -3).flatten(-2))


class _OverTokens(nn.Module):
    """A hidden layer that mixes the tokens, the same for every channel: (N, T, width) -> (N, T,
    width).
    """

    def __init__(self, num_tokens: int):
        super().__init__()
        self.layers = _hidden(num_tokens)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.transpose(1, 2)).transpose(1, 2)


def _hidden(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Tokens(nn.Module):
    """A network on patches: a vision transformer, or an MLP-Mixer; four blocks of width 64, and a
    mean over tokens.

    Args:
        in_channels, image_size, num_classes: sizes of the input and the output, as of
            `Architecture.build`.
        patch: side of the patches, which do not overlap.
        mixing: "attention", or "tokens" for the Mixer's hidden layers over tokens.
        position: code of the position, added to the tokens: "learned", which begins as independent
            normal numbers of deviation .02; "sine", fixed waves of the row and of the column; or
            "none".
    """

    width = 64

    def __init__(
        self,
        in_channels: int,
        image_size: int,
        num_classes: int,
        *,
        patch: int = 4,
        mixing: str = "attention",
        position: str = "learned",
    ):
        super().__init__()
        side = image_size // patch
        self.embedding = nn.Conv2d(in_channels, self.width, patch, stride=patch)
        if position == "learned":
            self.position = nn.Parameter(torch.empty(side**2, self.width).normal_(std=0.02))
        else:
            self.register_buffer(
                "position", _waves(side, self.width) if position == "sine" else None
            )
        blocks = []
        for _ in range(4):
            mixer = _Attention(self.width) if mixing == "attention" else _OverTokens(side**2)
            for layer in (mixer, _hidden(self.width)):
                blocks.append(Residual(nn.LayerNorm(self.width), layer))
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(self.width)
        self.linear = nn.Linear(self.width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embedding(x).flatten(2).transpose(1, 2)  # (N, T, width)
        if self.position is not None:
            tokens = tokens + self.position
        return self.linear(self.norm(self.blocks(tokens)).mean(1))


def _waves(side: int, width: int) -> Tensor:
    """Return sines and cosines of the row and of the column of each place, (side^2, width)."""
    rates = 100 ** -(torch.arange(width // 4) * 4 / width)
    angles = torch.arange(side)[:, None] * rates  # (side, width / 4)
    waves = torch.cat([angles.sin(), angles.cos()], 1)  # (side, width / 2)
    rows, columns = waves[:, None].expand(-1, side, -1), waves[None].expand(side, -1, -1)
    return torch.cat([rows, columns], 2).flatten(0, 1)


class _ChannelNorm(nn.Module):
    """Layer norm over the channels of each place."""

    def __init__(self, channels: int):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)


class ConvNeXt(nn.Module):
    """A small ConvNeXt: patches of 2, then three blocks, patches of 2 and three more; 7x7 filters,
    one a channel.

    Blocks have no factor at their end (ConvNeXt's begins at 1e-6, and would silence them).
    """

    def __init__(self, in_channels: int, image_size: int, num_classes: int):
        super().__init__()
        layers: list[nn.Module] = []
        channels = in_channels
        for width in (32, 64):
            layers += [nn.Conv2d(channels, width, 2, stride=2), _ChannelNorm(width)]
            for _ in range(3):
                filters = nn.Conv2d(width, width, 7, padding=3, groups=width)
                hidden = [nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)]
                layers.append(Residual(filters, _ChannelNorm(width), *hidden))
            channels = width
        self.features = nn.Sequential(*layers)
        self.linear = nn.Linear(channels, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(F.layer_norm(self.features(x).mean((2, 3)), (64,)))
