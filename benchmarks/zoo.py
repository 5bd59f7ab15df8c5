"""Models of other libraries, and difficult ones, one row each: right, or rejected with a message.

.venv/bin/python benchmarks/zoo.py            # needs timm and transformers; an hour on one core; resumable
.venv/bin/python benchmarks/zoo.py --only adversarial --networks 512

Each model is computed by `compute_nads` as a user would, and by a plain loop that builds every network with its factory
and differentiates it on as many inputs: other networks and other inputs, no code of the library. Compared are the trace
of the second moment and the energy of one direction, which the first half of the loop prefers. With as many networks in
both, z = (value - value of the loop) / (standard error of the loop sqrt(2)) is about standard normal. Energies of few
networks have long tails, so a model with a z beyond 3 is computed once more, from five times as many other networks;
this second comparison is the one that counts, and the row has both.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from zoo_models import SOURCES, Entry

import nads_core as nc

OUT = Path(__file__).parent / "results/zoo.json"
INPUTS = 4
LARGE = 3.0  # a z beyond it is looked at again


def plain_vectors(entry: Entry, count: int, seed: int = 10_000) -> Tensor:
    """Return the mean gradients of newly built networks, (count, D) in float64."""
    vectors = []
    for number in range(count):
        torch.manual_seed(seed + number)
        network = entry.factory().eval()
        dtype = next(network.parameters()).dtype
        dtype = torch.float32 if dtype.is_complex else dtype
        images = torch.randn(INPUTS, *entry.image_shape, dtype=dtype, requires_grad=True)
        output = entry.output(network(images * 1))  # a copy, for networks that change their input
        (gradient,) = torch.autograd.grad(output.sum(), images)
        vectors.append(gradient.mean(0).flatten().double())
    return torch.stack(vectors)


def z_score(value: float, samples: Tensor, count: int) -> float:
    """Return by how many standard errors a mean of ``count`` networks differs from that of samples (N,)."""
    error = float(samples.std()) * math.sqrt(1 / len(samples) + 1 / count)
    return (value - float(samples.mean())) / error if error else 0.0


def row(entry: Entry, count: int, seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Compute one model on a device, and compare it with the plain loop on the CPU."""
    start = time.process_time()
    common = {
        "image_shape": entry.image_shape,
        "estimator": nc.SmoothedGradient(INPUTS, antithetic=False),
        "debiasing": "none",
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            nads = nc.compute_nads(
                entry.factory, count, symmetries=(), device=device, progress=False, **common, **entry.options
            )
        except (ValueError, TypeError, RuntimeError, MemoryError) as error:
            own = type(error) in (ValueError, TypeError, MemoryError)
            result = {"result": "rejected" if own else "error", "message": f"{type(error).__name__}: {error}"}
            return result | {"expected": entry.rejected or "fresh_readout" in str(error)}  # a last layer of zeros
        messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        seconds, effective = time.process_time() - start, nads.provenance["effective_networks"]
        vectors = plain_vectors(entry, count, 10_000 * (seed + 1))
        if heavy := effective < 0.1 * count:  # standard errors mean nothing: compare the directions of the gradients
            nads = nc.compute_nads(
                entry.factory,
                count,
                symmetries=(),
                device=device,
                progress=False,
                normalise="network",
                **common,
                **entry.options,
            )
            vectors = vectors / vectors.norm(dim=1, keepdim=True)
    half, rest = vectors.chunk(2)
    _, _, right = torch.linalg.svd(half / half.norm(), full_matrices=False)
    direction = right[0]
    energies = (rest @ direction).square()
    eigenvalues, basis = nads.eigenvalues.double().cpu(), nads.directions.flatten(1).double().cpu()
    energy = float(((basis @ direction).square() * eigenvalues).sum())
    return {
        "result": "ran", "expected": not entry.rejected, "seconds": round(seconds, 1),
        "effective_networks": effective, "normalised": heavy,
        "z_trace": None if heavy else round(z_score(float(eigenvalues.sum()), vectors.square().sum(1), count), 2),
        "z_energy": round(z_score(energy, energies, count), 2),
        "warnings": messages,
    }  # fmt: skip


def main() -> None:
    """Add the rows that the results file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SOURCES, help="models of one source")
    parser.add_argument("--networks", type=int, default=48)
    parser.add_argument("--again", action="store_true", help="replace rows that did not run as expected")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--device", default="cpu", help="where compute_nads runs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(args.out.read_text("utf8")) if args.out.exists() else {}
    for source in [args.only] if args.only else SOURCES:
        for entry in SOURCES[source]():
            key = f"{entry.source}: {entry.name}"
            if key in rows and not (args.again and not rows[key]["expected"]):
                continue
            count = args.networks * (4 if source == "adversarial" else 1)
            try:
                rows[key] = row(entry, count, device=args.device)
                scores = [rows[key].get(name) or 0 for name in ("z_trace", "z_energy")]
                if max(map(abs, scores)) > LARGE:
                    rows[key] = row(entry, 5 * count, seed=1, device=args.device) | {"first": scores}
            except Exception as error:  # of the plain loop, or one that names no reason
                rows[key] = {"result": "error", "message": f"{type(error).__name__}: {error}", "expected": False}
            rows[key] |= {
                "image_shape": list(entry.image_shape),
                "version": nc.__version__ if hasattr(nc, "__version__") else "",
            }
            print(key, {k: v for k, v in rows[key].items() if k != "image_shape"}, flush=True)
            args.out.write_text(json.dumps(rows, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
