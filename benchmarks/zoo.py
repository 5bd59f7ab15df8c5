"""Models of other libraries, and difficult ones, one row each: right, or rejected with a message.

    python benchmarks/zoo.py                         # an hour on one core; resumable
    python benchmarks/zoo.py --only adversarial --device cuda --out zoo-cuda.json

It needs timm and transformers.

Each model is computed by `compute_nads` as a user would, and by a plain loop that builds every
network with its factory and differentiates it on as many inputs: other networks and other inputs,
no code of the library. Compared are the trace of the second moment and the energy of one direction,
which the first half of the loop prefers. With as many networks in both, z = (value - value of the
loop) / (standard error of the loop sqrt(2)) is about standard normal. Energies of few networks have
long tails, so a model with a z beyond 3 is computed once more, from five times as many other
networks; this second comparison is the one that counts, and the row has both.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from nads_book.benchmarks.outcomes import plain_vectors, z_score
from nads_book.theory.reference import average_gradient
from torch import Tensor, nn

import nads_core as nc

OUT = Path(__file__).parent / "results/zoo.json"
INPUTS, NETWORKS = 4, 48  # four times as many networks of the difficult models
LARGE = 3.0  # a z beyond it is looked at again


# Names with the size of the image.
TIMM = """
resnet18 32, resnet26d 32, resnetv2_50 32, seresnet50 32, ecaresnet26t 64, skresnet18 32,
res2net50_26w_4s 32, resnest14d 64, densenet121 32, vgg11_bn 32, mobilenetv2_100 32,
mobilenetv3_small_100 64, mnasnet_small 32, efficientnet_b0 64, ghostnet_100 64, hardcorenas_a 64,
tf_efficientnetv2_b0 64, regnetx_002 32, regnety_002 32, convnext_atto 64, convnextv2_atto 64,
dm_nfnet_f0 64, eca_nfnet_l0 64, inception_v3 96, xception41 64, dpn48b 32, hrnet_w18_small 64,
cspresnet50 64, darknet53 64, rexnet_100 64, selecsls42b 64, tresnet_m 64, vovnet39a 64, repvgg_a0
32, mobileone_s0 64, fastvit_t8 64, edgenext_xx_small 64, starnet_s1 64, poolformer_s12 64,
caformer_s18 64, mambaout_femto 64, rdnet_tiny 64, vit_tiny_patch16_224 64, deit_tiny_patch16_224
64, deit3_small_patch16_224 64, beit_base_patch16_224 64, cait_xxs24_224 64, xcit_nano_12_p16_224
64, swin_tiny_patch4_window7_224 224
"""

TORCHVISION = """
alexnet 64, squeezenet1_1 32, googlenet 64, shufflenet_v2_x0_5 32, mobilenet_v3_small 32, mnasnet0_5
32, resnext50_32x4d 32, wide_resnet50_2 32, regnet_y_400mf 32, efficientnet_b0 32, convnext_tiny 32,
vit_b_32 64, swin_t 32, swin_v2_t 32, maxvit_t 224
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
        output: the output that a plain loop differentiates, as a function of what the network
            returns.
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
    return [
        Entry("timm", name, factory(name, int(s)), (3, int(s), int(s)))
        for name, s in pairs
        if name in known
    ]


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
    return [
        Entry("torchvision", name, factory(name, int(s)), (3, int(s), int(s))) for name, s in pairs
    ]


def from_transformers() -> list[Entry]:
    """Return small configurations of Hugging Face's models, whose outputs have logits."""
    import transformers as hf

    def entry(name: str, size: int, channels: int = 3, **config: Any) -> Entry:
        def factory() -> nn.Module:
            made = getattr(hf, f"{name}Config")(num_labels=10, **config)
            return getattr(hf, f"{name}ForImageClassification")(made)

        output = lambda y: y.logits[:, 0]  # noqa: E731
        shape, options = (channels, size, size), {"output": output}
        return Entry("transformers", name, factory, shape, options, output=output)

    tiny = {
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 96,
    }
    dino = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    patches = {"image_size": 32, "patch_size": 8}
    named = [
        entry("ViT", 32, **tiny, **patches),
        entry("DeiT", 32, **tiny, **patches),
        entry("Beit", 32, **tiny, **patches),
        entry("Data2VecVision", 32, **tiny, **patches),
        entry("Dinov2", 32, **dino, **patches),
        entry("Dinov2WithRegisters", 32, **dino, **patches),
        entry("ViTMSN", 32, **tiny, **patches),
        entry("IJepa", 32, **tiny, **patches),
        entry("ConvNext", 32, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
        entry("ConvNextV2", 32, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
        entry("ResNet", 32, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
        entry(
            "RegNet",
            32,
            embedding_size=16,
            hidden_sizes=[16, 32, 48, 64],
            depths=[1, 1, 1, 1],
            groups_width=8,
        ),
        entry("MobileNetV1", 32),
        entry("MobileNetV2", 32, depth_multiplier=0.35),
        entry("PoolFormer", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64]),
        entry("Segformer", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64]),
        entry(
            "Swin",
            32,
            image_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=24,
            depths=[1, 1],
            num_heads=[2, 4],
        ),
        entry(
            "Swinv2",
            32,
            image_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=24,
            depths=[1, 1],
            num_heads=[2, 4],
        ),
        entry(
            "FocalNet",
            32,
            image_size=32,
            embed_dim=24,
            depths=[1, 1],
            focal_levels=[2, 2],
            focal_windows=[3, 3],
        ),
        entry("Levit", 64, image_size=64),
        entry(
            "Bit",
            32,
            embedding_size=16,
            hidden_sizes=[32, 64, 96, 128],
            depths=[1, 1, 1, 1],
            num_groups=4,
        ),
        entry("Cvt", 32),
        entry("PvtV2", 64, image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64]),
        entry("SwiftFormer", 64, depths=[1, 1, 1, 1], embed_dims=[16, 32, 48, 64]),
        entry("Hiera", 64, image_size=[64, 64], embed_dim=24, depths=[1, 1, 1, 1]),
        entry("TimmWrapper", 32, architecture="resnet18"),
    ]

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
        extra |= (
            {"num_key_value_heads": 2} if name in ("Llama", "Mistral", "Qwen2", "Gemma") else {}
        )
        extra |= {"embedding_size": 32} if name == "Electra" else {}
        body = partial(getattr(hf, f"{name}Model"), config(**small, **extra))
        named.append(
            Entry(
                "transformers", f"{name} of vectors", lambda body=body: Tokens(body()), (1, 12, 32)
            )
        )
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
        return (
            torch.view_as_real(torch.view_as_complex(x.reshape(-1, 32, 2)) * self.turns)
            .flatten(1)
            .to(x.dtype)
        )


class RandomAttribute(Pixels):
    """A random matrix that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.randn(64, 64)

    def change(self, x):
        return x @ self.features


class InPlace(Pixels):
    """Changes its input."""

    def change(self, x):
        x -= x.mean(1, keepdim=True)
        return x


class Dictionary(Pixels):
    """Returns a dictionary."""

    def forward(self, x):
        return {"logits": super().forward(x), "features": x}


class Noisy(Pixels):
    """Draws a random number in every forward pass."""

    def change(self, x):
        return x * torch.rand(())


class Detached(Pixels):
    """The output does not depend on the input."""

    def change(self, x):
        return x.detach()


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


def _convnet(*first: nn.Module, normal: nn.Module | None = None) -> nn.Sequential:
    return nn.Sequential(
        *first,
        nn.Conv2d(1, 8, 3, padding=1),
        normal or nn.Identity(),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 3),
    )


def _heavy() -> nn.Module:
    network = Pixels()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.distributions.StudentT(1.5).sample(parameter.shape))
    return network


def adversarial() -> list[Entry]:
    """Return small models, one for each way to go wrong."""
    rebuild = {"evaluation": "factory"}
    logits = lambda y: y["logits"][:, 0]  # noqa: E731

    models: list[tuple[str, Any, dict[str, Any], bool, Any]] = [
        ("complex buffer", Rotary, {}, False, None),
        ("random matrix as attribute", RandomAttribute, {}, True, None),
        ("random matrix as attribute, rebuild", RandomAttribute, rebuild, False, None),
        ("changes its input", InPlace, {}, False, None),
        ("dictionary, output=", Dictionary, {"output": logits}, False, logits),
        ("random forward pass", Noisy, {}, True, None),
        ("detached input", Detached, {}, True, None),
        ("tied weights", Tied, {}, False, None),
        ("gradients of 1e-22", Scaled, {}, False, None),
        ("lazy layers", Lazy, {}, True, None),
        ("Student-t weights", _heavy, {}, False, None),
        ("batch norm of inputs", lambda: _convnet(nn.BatchNorm2d(1)), {}, False, None),
    ]
    default = Entry.__dataclass_fields__["output"].default
    return [
        Entry("adversarial", name, factory, (1, 8, 8), options, rejected, output or default)
        for name, factory, options, rejected, output in models
    ]


SOURCES = {
    "adversarial": adversarial,
    "torchvision": from_torchvision,
    "timm": from_timm,
    "transformers": from_transformers,
}


def row(entry: Entry, count: int, seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Compute one model on a device, and compare it with the plain loop on the CPU."""
    start = time.process_time()
    compute = partial(
        nc.compute_nads,
        entry.factory,
        count,
        image_shape=entry.image_shape,
        estimator=nc.SmoothedGradient(INPUTS, antithetic=False),
        debiasing="none",
        symmetries=(),
        device=device,
        progress=False,
        **entry.options,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            nads = compute()
        except (ValueError, TypeError, RuntimeError, MemoryError) as error:
            own = type(error) in (ValueError, TypeError, MemoryError)
            result = {
                "result": "rejected" if own else "error",
                "message": f"{type(error).__name__}: {error}",
            }
            # A last layer of zeros
            return result | {"expected": entry.rejected or "reinit_readout" in str(error)}
        messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        seconds, effective = time.process_time() - start, nads.provenance["effective_networks"]

        def vector(network: nn.Module, inputs: Tensor) -> Tensor:
            # A copy, for networks that change their input
            return average_gradient(lambda x: entry.output(network(x * 1)), inputs)

        start_seed = 10_000 * (seed + 1)
        vectors = plain_vectors(entry.factory, entry.image_shape, count, start_seed, INPUTS, vector)
        # Standard errors mean nothing: compare the directions of the gradients
        if heavy := effective < 0.1 * count:
            nads = compute(equal_weights=True)
            vectors = vectors / vectors.norm(dim=1, keepdim=True)
    half, rest = vectors.chunk(2)
    _, _, right = torch.linalg.svd(half / half.norm(), full_matrices=False)
    direction = right[0]
    energies = (rest @ direction).square()
    eigenvalues, basis = nads.eigenvalues.double().cpu(), nads.directions.flatten(1).double().cpu()
    energy = float(((basis @ direction).square() * eigenvalues).sum())
    return {
        "result": "ran",
        "expected": not entry.rejected,
        "seconds": round(seconds, 1),
        "effective_networks": effective,
        "normalised": heavy,
        "z_trace": None
        if heavy
        else round(z_score(float(eigenvalues.sum()), vectors.square().sum(1), count), 2),
        "z_energy": round(z_score(energy, energies, count), 2),
        "warnings": messages,
    }


def main() -> None:
    """Add the rows that the results file lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=SOURCES, help="models of one source")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--device", default="cpu", help="where compute_nads runs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(args.out.read_text("utf8")) if args.out.exists() else {}
    for source in [args.only] if args.only else SOURCES:
        for entry in SOURCES[source]():
            key = f"{entry.source}: {entry.name}"
            if key in rows:
                continue
            count = NETWORKS * (4 if source == "adversarial" else 1)
            try:
                rows[key] = row(entry, count, device=args.device)
                scores = [rows[key].get(name) or 0 for name in ("z_trace", "z_energy")]
                if max(map(abs, scores)) > LARGE:
                    rows[key] = row(entry, 5 * count, seed=1, device=args.device) | {
                        "first": scores
                    }
            except Exception as error:  # of the plain loop, or one that names no reason
                rows[key] = {
                    "result": "error",
                    "message": f"{type(error).__name__}: {error}",
                    "expected": False,
                }
            rows[key] |= {
                "image_shape": list(entry.image_shape),
                "version": nc.__version__,
            }
            print(key, {k: v for k, v in rows[key].items() if k != "image_shape"}, flush=True)
            args.out.write_text(json.dumps(rows, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
