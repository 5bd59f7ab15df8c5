"""Models of other libraries, one row each: right, or rejected with a message.

    python benchmarks/zoo.py             # an hour on one core; resumable
    python benchmarks/zoo.py --only timm

``zoo.toml`` names the models; timm and transformers have to be installed. Each is computed by
`second_moment` as a user would, and by a plain loop that builds every network with its factory:
other networks and other inputs, no code of the library. Compared is the trace of the second moment.
With as many networks in both, z = (value - value of the loop) / (standard error of the loop sqrt(2))
is about standard normal. Energies of few networks have long tails, so a model with a z beyond 3 is
computed once more, from five times as many other networks; the row has both.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from nads_book.benchmarks.plain_loop import average_gradient, plain_vectors, z_score
from torch import Tensor, nn

import nads_core as nc

OUT = Path(__file__).parent / "results/zoo.json"
INPUTS, NETWORKS = 4, 48
LARGE = 3.0  # a z beyond it is looked at again

Entry = tuple[Callable[[], nn.Module], tuple[int, ...]]  # a factory, and the shape of its inputs


class Logits(nn.Module):
    """The logits of a model of Hugging Face; of one that reads words, from vectors (B, 1, L, 32)."""

    def __init__(self, body: nn.Module, words: bool) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(32, 3) if words else None

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        if self.head is None:
            return self.body(x).logits
        return self.head(self.body(inputs_embeds=x[:, 0]).last_hidden_state.mean(1))


def entries(source: str) -> dict[str, Entry]:
    """Return the models of a source by name."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))
    if source == "transformers":
        import transformers as hf

        def wrapped(name: str, kind: str, config: dict[str, Any]) -> Callable[[], nn.Module]:
            made = getattr(hf, f"{name}Config")(**config)
            return lambda: Logits(getattr(hf, f"{name}{kind}")(made), kind == "Model")

        found: dict[str, Entry] = {}
        for name, row in listed["images"].items():
            config = {"num_labels": 10, **row.get("config", {})}
            shape = (3, row["size"], row["size"])
            found[name] = wrapped(name, "ForImageClassification", config), shape
        for name, config in listed["words"].items():
            found[f"{name} of vectors"] = wrapped(name, "Model", config), (1, 12, 32)
        return found
    pairs = [entry.split() for entry in listed[source].split(",")]
    return {name: (library_model(source, name, int(s)), (3, int(s), int(s))) for name, s in pairs}


def library_model(source: str, name: str, size: int) -> Callable[[], nn.Module]:
    """Return a factory of a model of timm or torchvision, for an image size if it takes one."""
    if source == "timm":
        import timm

        create, options = timm.create_model, {"pretrained": False, "img_size": size}
    else:
        from torchvision.models import get_model as create

        options = {"weights": None, "image_size": size}
        if name == "googlenet":
            options |= {"aux_logits": False, "init_weights": True}

    def build() -> nn.Module:
        try:
            return create(name, num_classes=10, **options)
        except TypeError:  # the network takes any size
            left = {k: v for k, v in options.items() if k not in ("img_size", "image_size")}
            return create(name, num_classes=10, **left)

    return build


def row(entry: Entry, count: int, seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Compute one model on a device, and compare it with the plain loop on the CPU."""
    factory, shape = entry
    estimator, start = nc.SmoothedGradient(2 * INPUTS, antithetic=False), time.process_time()
    with warnings.catch_warnings(action="ignore"):
        try:
            moment = nc.second_moment(
                factory, shape, count, estimator=estimator, device=device, progress=False
            )
        except (ValueError, TypeError, MemoryError) as error:
            return {"result": "rejected", "message": f"{type(error).__name__}: {error}"}
        seconds = round(time.process_time() - start, 1)

        def vector(network: nn.Module, inputs: Tensor) -> Tensor:
            # A copy, for networks that change their input
            return average_gradient(lambda x: network(x * 1).flatten(1)[:, 0], inputs)

        vectors = plain_vectors(factory, shape, count, 10_000 * (seed + 1), INPUTS, vector)
    energies = vectors.prod(1).sum(1)  # of two halves of the inputs, without their noise
    z = round(z_score(trace(moment), energies, count), 2)
    return {"result": "ran", "seconds": seconds, "z_trace": z}


def trace(moment: nc.SecondMoment) -> float:
    """Return the trace of a second moment."""
    if not moment.is_large:
        return float(moment.shares().diagonal(dim1=1, dim2=2).sum())
    vectors = torch.cat(moment.rows).double()  # (N, J, R, D)
    return float((vectors[:, 0] * vectors[:, -1]).sum()) / moment.num_vectors / moment.scale**2


def main() -> None:
    """Add the rows that the results file lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources = ("torchvision", "timm", "transformers")
    parser.add_argument("--only", choices=sources, help="models of one source")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--device", default="cpu", help="where the library runs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(args.out.read_text("utf8")) if args.out.exists() else {}
    for source in [args.only] if args.only else sources:
        for name, entry in entries(source).items():
            key = f"{source}: {name}"
            if rows.get(key, {}).get("version") == nc.__version__:
                continue
            try:
                rows[key] = row(entry, NETWORKS, device=args.device)
                first = rows[key].get("z_trace", 0)
                if abs(first) > LARGE:
                    rows[key] = {**row(entry, 5 * NETWORKS, 1, args.device), "first": first}
            except Exception as error:  # of the plain loop, or one that names no reason
                rows[key] = {"result": "error", "message": f"{type(error).__name__}: {error}"}
            rows[key] |= {"image_shape": list(entry[1]), "version": nc.__version__}
            print(key, rows[key], flush=True)
            args.out.write_text(json.dumps(rows, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
