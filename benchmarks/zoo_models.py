"""Models that nobody here wrote, and small ones that are made to be difficult, for ``zoo.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

# Names with the size of the image.
TIMM = """
resnet18 32, resnet26d 32, resnetv2_50 32, seresnet50 32, ecaresnet26t 64, skresnet18 32, res2net50_26w_4s 32,
resnest14d 64, densenet121 32, vgg11_bn 32, mobilenetv2_100 32, mobilenetv3_small_100 64, mnasnet_small 32,
efficientnet_b0 64, ghostnet_100 64, hardcorenas_a 64, tf_efficientnetv2_b0 64, regnetx_002 32, regnety_002 32,
convnext_atto 64, convnextv2_atto 64, dm_nfnet_f0 64, eca_nfnet_l0 64, inception_v3 96, xception41 64, dpn48b 32,
hrnet_w18_small 64, cspresnet50 64, darknet53 64, rexnet_100 64, selecsls42b 64, tresnet_m 64, vovnet39a 64,
repvgg_a0 32, mobileone_s0 64, fastvit_t8 64, edgenext_xx_small 64, starnet_s1 64, poolformer_s12 64, caformer_s18
64, inceptionnext_atto 64, mambaout_femto 64, rdnet_tiny 64, vit_tiny_patch16_224 64, deit_tiny_patch16_224 64,
deit3_small_patch16_224 64, beit_base_patch16_224 64, cait_xxs24_224 64, xcit_nano_12_p16_224 64,
swin_tiny_patch4_window7_224 224, swinv2_tiny_window8_256 256, pit_ti_224 224, levit_128s 224, mixer_s32_224 224,
resmlp_12_224 224, gmlp_ti16_224 224, coat_tiny 64, twins_svt_small 64, pvt_v2_b0 64, maxvit_rmlp_pico_rw_256 256,
coatnet_pico_rw_224 224, mobilevit_xxs 64, mobilevitv2_050 64, efficientformer_l1 224, efficientvit_b0 64,
davit_tiny 64, focalnet_tiny_srf 64, hiera_tiny_224 224, crossvit_tiny_240 240, tiny_vit_5m_224 224,
eva02_tiny_patch14_224 224, convmixer_768_32 32, volo_d1_224 224, sequencer2d_s 224, nextvit_small 64,
ghostnetv3_050 64
"""

TORCHVISION = """
alexnet 64, squeezenet1_1 32, googlenet 64, shufflenet_v2_x0_5 32, mobilenet_v3_small 32, mnasnet0_5 32,
resnext50_32x4d 32, wide_resnet50_2 32, regnet_y_400mf 32, efficientnet_b0 32, convnext_tiny 32, vit_b_32 64, swin_t
32, swin_v2_t 32, maxvit_t 224
"""


@dataclass(frozen=True)
class Entry:
    """A model of the list.

    Args:
        source: where the model comes from.
        name: name of the model.
        factory: function that returns a newly initialised network.
        image_shape: shape of one input.
        options: further options of `nads_core.compute_nads`.
        rejected: whether an error is the right result.
        output: the output that a plain loop differentiates, as a function of what the network returns.
    """

    source: str
    name: str
    factory: Callable[[], nn.Module]
    image_shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    rejected: bool = False
    output: Callable[[Any], Tensor] = lambda y: y.flatten(1)[:, 0]


def from_timm() -> list[Entry]:
    """Return models of timm, built offline, with an image size if the model takes one."""
    import timm

    def factory(name: str, size: int) -> Callable[[], nn.Module]:
        def build() -> nn.Module:
            try:
                return timm.create_model(name, pretrained=False, num_classes=10, img_size=size)
            except TypeError:  # the network takes any size
                return timm.create_model(name, pretrained=False, num_classes=10)

        return build

    known = set(timm.list_models())
    pairs = [entry.split() for entry in TIMM.split(",")]
    return [Entry("timm", name, factory(name, int(s)), (3, int(s), int(s))) for name, s in pairs if name in known]


def from_torchvision() -> list[Entry]:
    """Return models of torchvision."""
    from torchvision import models

    def factory(name: str, size: int) -> Callable[[], nn.Module]:
        options: dict[str, Any] = {"num_classes": 10}
        if name.startswith("vit"):
            options["image_size"] = size
        if name == "googlenet":
            options |= {"aux_logits": False, "init_weights": True}
        return lambda: models.get_model(name, weights=None, **options)

    pairs = [entry.split() for entry in TORCHVISION.split(",")]
    return [Entry("torchvision", name, factory(name, int(s)), (3, int(s), int(s))) for name, s in pairs]


def from_transformers() -> list[Entry]:
    """Return small configurations of Hugging Face's models; their outputs are objects with logits."""
    import transformers as hf

    too_small = ("EfficientNet", "MobileViT")  # gradients of 1e-65 and 1e-41, as these sizes are drawn here

    def entry(name: str, size: int, channels: int = 3, **config: Any) -> Entry:
        def factory() -> nn.Module:
            made = getattr(hf, f"{name}Config")(num_labels=10, **config)
            return getattr(hf, f"{name}ForImageClassification")(made)

        output = lambda y: y.logits[:, 0]  # noqa: E731
        shape, options = (channels, size, size), {"output": output}
        return Entry("transformers", name, factory, shape, options, name in too_small, output)

    tiny = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
    dino = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    patches = {"image_size": 32, "patch_size": 8}
    named = [
        entry("ViT", 32, **tiny, **patches), entry("DeiT", 32, **tiny, **patches), entry("Beit", 32, **tiny, **patches),
        entry("Data2VecVision", 32, **tiny, **patches), entry("Dinov2", 32, **dino, **patches),
        entry("Dinov2WithRegisters", 32, **dino, **patches),
        entry("ViTMSN", 32, **tiny, **patches), entry("IJepa", 32, **tiny, **patches),
        entry("ConvNext", 32, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
        entry("ConvNextV2", 32, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
        entry("ResNet", 32, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
        entry("RegNet", 32, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], groups_width=8),
        entry("MobileNetV1", 32), entry("MobileNetV2", 32, depth_multiplier=0.35),
        entry("MobileViT", 64, image_size=64),
        entry("PoolFormer", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64]),
        entry("Segformer", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64]),
        entry("Swin", 32, image_size=32, patch_size=2, window_size=4, embed_dim=24, depths=[1, 1], num_heads=[2, 4]),
        entry("Swinv2", 32, image_size=32, patch_size=2, window_size=4, embed_dim=24, depths=[1, 1], num_heads=[2, 4]),
        entry("FocalNet", 32, image_size=32, embed_dim=24, depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3]),
        entry("Levit", 64, image_size=64),
        entry("EfficientNet", 64, image_size=64, width_coefficient=1.0, hidden_dim=1280, depth_coefficient=0.5),
        entry("Bit", 32, embedding_size=16, hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], num_groups=4),
        entry("Cvt", 32), entry("PvtV2", 64, image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64]),
        entry("SwiftFormer", 64, depths=[1, 1, 1, 1], embed_dims=[16, 32, 48, 64]),
        entry("Hiera", 64, image_size=[64, 64], embed_dim=24, depths=[1, 1, 1, 1]),
        entry("TimmWrapper", 32, architecture="resnet18"),
    ]  # fmt: skip

    class Tokens(nn.Module):
        """A language model that reads vectors instead of words: (B, 1, 12, 32)."""

        def __init__(self, body: nn.Module) -> None:
            super().__init__()
            self.body, self.head = body, nn.Linear(32, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(inputs_embeds=x[:, 0]).last_hidden_state.mean(1))

    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 11,
    }
    words = {
        name: getattr(hf, f"{name}Config")
        for name in ("Bert", "Roberta", "Electra", "Llama", "Mistral", "Qwen2", "Gemma")
    }
    for name, config in words.items():
        extra = {"head_dim": 8} if name == "Gemma" else {}
        extra |= {"num_key_value_heads": 2} if name in ("Llama", "Mistral", "Qwen2", "Gemma") else {}
        extra |= {"embedding_size": 32} if name == "Electra" else {}
        body = partial(getattr(hf, f"{name}Model"), config(**small, **extra))
        named.append(Entry("transformers", f"{name} of vectors", lambda body=body: Tokens(body()), (1, 12, 32)))
    return named


class Pixels(nn.Module):
    """A small network of vectors (B, 64), which subclasses change."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 3))

    def change(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Any:
        return self.network(self.change(x.flatten(1)))


class Rotary(Pixels):
    """Turned by a fixed complex buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.linspace(0.5, 2, 32), torch.arange(32.0)))

    def change(self, x):
        return torch.view_as_real(torch.view_as_complex(x.reshape(-1, 32, 2)) * self.turns).flatten(1).to(x.dtype)


class RandomAttribute(Pixels):
    """A random matrix that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.randn(64, 64)

    def change(self, x):
        return x @ self.features


class RandomOrder(Pixels):
    """A random order of the pixels as an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.order = torch.randperm(64)
        self.register_buffer("window", torch.linspace(2, 0, 64))

    def change(self, x):
        return x[:, self.order] * self.window


class BufferedOrder(RandomOrder):
    """The same as a buffer."""

    def __init__(self) -> None:
        super().__init__()
        del self.order
        self.register_buffer("order", torch.randperm(64))


class RandomActivation(Pixels):
    """An activation that is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.network[1] = (nn.Tanh(), nn.ReLU(), nn.Sigmoid())[int(torch.randint(3, ()))]


class Coin(Pixels):
    """A coin as a buffer decides which half of the pixels counts; it is the same for the first seeds."""

    def __init__(self) -> None:
        coin = (torch.rand(()) < 0.5).float()
        super().__init__()
        self.register_buffer("coin", coin)

    def change(self, x):
        left, right = x.chunk(2, 1)
        return torch.cat([left * self.coin, right * (1 - self.coin)], 1)


class InPlace(Pixels):
    """Changes its input."""

    def change(self, x):
        x -= x.mean(1, keepdim=True)
        return x


class Hooked(Pixels):
    """A forward hook that closes over the network itself."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Any = None
        self.network[0].register_forward_hook(lambda module, args, y: setattr(self, "seen", y))

    def forward(self, x):
        super().forward(x)
        return self.network[2](torch.tanh(self.seen))


class Dictionary(Pixels):
    """Returns a dictionary."""

    def forward(self, x):
        return {"logits": super().forward(x), "features": x}


class Noisy(Pixels):
    """Draws a random number in every forward pass."""

    def change(self, x):
        return x * torch.rand(())


class Dropped(Pixels):
    """Drops pixels in evaluation mode too."""

    def change(self, x):
        return nn.functional.dropout(x, 0.5, training=True)


class Detached(Pixels):
    """The output does not depend on the input."""

    def change(self, x):
        return x.detach()


class Constant(Pixels):
    """All weights begin at zero."""

    def __init__(self) -> None:
        super().__init__()
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


class Tied(Pixels):
    """Two layers share one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64, bias=False)
        self.second = nn.Linear(64, 64, bias=False)
        self.second.weight = self.first.weight

    def change(self, x):
        return self.second(torch.tanh(self.first(x)))


class Scaled(Pixels):
    """Gradients of 1e-22."""

    def forward(self, x):
        return super().forward(x) * 1e-22


class Lazy(Pixels):
    """Layers that learn their sizes from the first input."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.LazyLinear(16), nn.Tanh(), nn.LazyLinear(3))


class Sparse(Pixels):
    """A sparse buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.eye(64).to_sparse())

    def change(self, x):
        return (self.mask @ x.T).T


class ManyStreams(Pixels):
    """Draws from numpy into a buffer."""

    def __init__(self) -> None:
        import numpy as np

        super().__init__()
        self.register_buffer("scale", torch.tensor(np.random.standard_normal(64), dtype=torch.float32))  # noqa: NPY002

    def change(self, x):
        return x * self.scale


class Recurrent(nn.Module):
    """A recurrent network over the rows of an image."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cell, self.head = kind(8, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.cell(x[:, 0])[0][:, -1])


class Graph(nn.Module):
    """A graph convolution with a fixed adjacency matrix, nodes are pixels."""

    def __init__(self) -> None:
        super().__init__()
        ring = torch.eye(64).roll(1, 0)
        self.register_buffer("adjacency", (torch.eye(64) + ring + ring.T) / 3)
        self.lift, self.mix, self.head = nn.Linear(1, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        nodes = torch.relu(self.adjacency @ self.lift(x.flatten(1)[..., None]))
        return self.head(torch.relu(self.adjacency @ self.mix(nodes)).mean(1))


class Fourier(nn.Module):
    """A Fourier neural operator with complex weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(4, 1, 8, 5, dtype=torch.cfloat) / 8)
        self.head = nn.Linear(4 * 64, 3)

    def forward(self, x):
        waves = torch.fft.rfft2(x)
        return self.head(torch.relu(torch.fft.irfft2(waves * self.weights[:, 0], s=(8, 8))).flatten(1))


class Attention(nn.Module):
    """An encoder of PyTorch, with tokens from rows."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x[:, 0]).mean(1))


def _convnet(*first: nn.Module, normal: nn.Module | None = None) -> nn.Sequential:
    return nn.Sequential(
        *first, nn.Conv2d(1, 8, 3, padding=1), normal or nn.Identity(), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(128, 3),
    )  # fmt: skip


def _relu_first() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(64, 3))


def _spectral() -> nn.Module:
    norm = nn.utils.spectral_norm
    return nn.Sequential(
        nn.Flatten(), norm(nn.Linear(64, 16)), nn.ReLU(), norm(nn.Linear(16, 16)), nn.ReLU(), norm(nn.Linear(16, 3))
    )


def _heavy() -> nn.Module:
    network = Pixels()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.distributions.StudentT(1.5).sample(parameter.shape))
    return network


def adversarial() -> list[Entry]:
    """Return small models, most of them made to go wrong."""
    from torch.nn.utils import parametrizations

    rebuild = {"evaluation": "rebuild"}
    logits = lambda y: y["logits"][:, 0]  # noqa: E731
    brightness = lambda y: y.mean((1, 2, 3))  # noqa: E731

    def with_first(change: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
        return lambda: nn.Sequential(nn.Flatten(), change(nn.Linear(64, 16)), nn.ReLU(), nn.Linear(16, 3))

    models: list[tuple[str, Any, dict[str, Any], bool, Any]] = [
        ("complex buffer", Rotary, {}, False, None),
        ("random matrix as attribute", RandomAttribute, {}, True, None),
        ("random matrix as attribute, rebuild", RandomAttribute, rebuild, False, None),
        ("random order as attribute", RandomOrder, {}, True, None),
        ("random order as attribute, rebuild", RandomOrder, rebuild, False, None),
        ("random order as buffer", BufferedOrder, {}, False, None),
        ("random activation", RandomActivation, {}, True, None),
        ("random activation, rebuild", RandomActivation, rebuild, False, None),
        ("coin as buffer", Coin, {}, False, None),
        ("changes its input", InPlace, {}, False, None),
        ("first layer in place", _relu_first, {}, False, None),
        ("hook on itself", Hooked, {}, False, None),
        ("dictionary", Dictionary, {}, True, logits),
        ("dictionary, output=", Dictionary, {"output": logits}, False, logits),
        ("random forward pass", Noisy, {}, True, None),
        ("dropout in evaluation", Dropped, {}, True, None),
        ("detached input", Detached, {}, True, None),
        ("weights of zero", Constant, {}, True, None),
        ("tied weights", Tied, {}, False, None),
        ("gradients of 1e-22", Scaled, {}, False, None),
        ("lazy layers", Lazy, {}, True, None),
        ("sparse buffer", Sparse, {}, True, None),
        ("drawn by numpy", ManyStreams, {}, True, None),
        ("old spectral norm", _spectral, {}, False, None),
        ("Student-t weights", _heavy, {}, False, None),
        ("weight norm", with_first(parametrizations.weight_norm), {}, False, None),
        ("orthogonal", with_first(parametrizations.orthogonal), {}, False, None),
        ("scripted", lambda: torch.jit.script(_convnet()), {}, True, None),
        ("batch norm", lambda: _convnet(normal=nn.BatchNorm2d(8)), {}, False, None),
        ("group norm", lambda: _convnet(normal=nn.GroupNorm(2, 8)), {}, False, None),
        ("instance norm", lambda: _convnet(normal=nn.InstanceNorm2d(8)), {}, False, None),
        ("double precision", lambda: _convnet().double(), {}, False, None),
        ("batch norm of inputs", lambda: _convnet(nn.BatchNorm2d(1)), {}, False, None),
        ("RNN", lambda: Recurrent(nn.RNN), {}, False, None), ("GRU", lambda: Recurrent(nn.GRU), {}, False, None),
        ("LSTM", lambda: Recurrent(nn.LSTM), {}, False, None), ("graph convolution", Graph, {}, False, None),
        ("Fourier operator", Fourier, {}, False, None), ("transformer encoder", Attention, {}, False, None),
        ("image as output", lambda: nn.Conv2d(1, 3, 3), {"output": brightness}, False, brightness),
    ]  # fmt: skip
    default = Entry.__dataclass_fields__["output"].default
    return [
        Entry("adversarial", name, factory, (1, 8, 8), options, rejected, output or default)
        for name, factory, options, rejected, output in models
    ]


SOURCES = {
    "adversarial": adversarial, "torchvision": from_torchvision, "timm": from_timm, "transformers": from_transformers,
}  # fmt: skip
