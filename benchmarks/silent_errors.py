"""Five kinds of models that had wrong numbers without a message: each is now right, or an error.

.venv/bin/python benchmarks/silent_errors.py    # a minute; PYTHONPATH can name another commit's nads_core
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nads_core as nc

SHAPE = (1, 8, 8)


class Model(nn.Module):
    """A small network whose pixels ``change`` first."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 1))

    def change(self, x):
        return x

    def forward(self, x):
        return self.network(self.change(x.flatten(1)))


class Rotary(Model):
    """A fixed complex buffer, |.| = 1, of which the real part alone has half the energy."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(32), torch.arange(32.0)))

    def change(self, x):
        return (
            torch.view_as_real(torch.view_as_complex(x.reshape(-1, 32, 2)) * self.turns)
            .flatten(1)
            .to(x.dtype)
        )


class Permuted(Model):
    """A random permutation of the pixels behind a fixed window, as a plain attribute or as a
    buffer.
    """

    def __init__(self, buffer: bool) -> None:
        super().__init__()
        order = torch.randperm(64)
        if buffer:
            self.register_buffer("order", order)
        else:
            self.order = order
        self.register_buffer("window", torch.linspace(2, 0, 64))

    def change(self, x):
        return x[:, self.order] * self.window


class Coin(Model):
    """A fair coin as a buffer decides which half of the pixels counts."""

    def __init__(self) -> None:
        coin = (torch.rand(()) < 0.5).float()  # the same from seeds 1 and 2
        super().__init__()
        self.register_buffer("coin", coin)

    def change(self, x):
        left, right = x.chunk(2, 1)
        return torch.cat([left * self.coin, right * (1 - self.coin)], 1)


def spectral() -> nn.Module:
    """The old spectral norm, whose power iteration has not converged in eval mode."""
    norm = nn.utils.spectral_norm
    return nn.Sequential(
        norm(nn.Conv2d(1, 4, 3, padding=1)),
        nn.ReLU(),
        norm(nn.Conv2d(4, 4, 3, padding=1)),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        norm(nn.Linear(64, 16)),
        nn.ReLU(),
        norm(nn.Linear(16, 1)),
    )


def compute(factory: Callable[[], nn.Module], num_networks: int = 512, **options: Any) -> nc.NADs:
    """Compute the NADs of a small model."""
    estimator = nc.SmoothedGradient(8)
    common = {
        "estimator": estimator,
        "image_shape": SHAPE,
        "debiasing": "subtract",
        "device": "cpu",
        "progress": False,
    }
    return nc.compute_nads(factory, num_networks, **(common | options))


def certain(nads: nc.NADs) -> str:
    """Return the certainties of the first three directions."""
    return " ".join(f"{value:.2f}" for value in nads.certainty[:3].tolist())


def complex_buffer() -> str:
    """The trace equals that of the same model without a rotation."""
    with_buffer, without = (compute(model).eigenvalues.sum() for model in (Rotary, Model))
    return f"trace {with_buffer:.4f}, of the same without rotation {without:.4f}"


def attribute() -> str:
    """A permutation as an attribute; as a buffer, no direction is preferred."""
    as_buffer = certain(compute(lambda: Permuted(True), 2_000))
    return f"certainty {certain(compute(lambda: Permuted(False), 2_000))}, as a buffer {as_buffer}"


def rebuilt() -> str:
    """The same by evaluation="factory"."""
    return f"certainty {certain(compute(lambda: Permuted(False), 2_000, evaluation='factory'))}"


def coin() -> str:
    """The share of the energy on the left is a half."""
    nads = compute(Coin)
    energies = nads.directions.flatten(1).square().T @ nads.eigenvalues  # (D,), of each pixel
    return f"share of the left half {energies[:32].sum() / energies.sum():.3f}, expected 0.5"


def heavy() -> str:
    """Return the certainty of the first direction in two runs, and the overlap of the two."""
    one, other = (compute(spectral, seed=seed) for seed in (0, 1))
    cosine = float((one.directions[0] * other.directions[0]).sum() ** 2)
    return f"certainty of NAD 0 {one.certainty[0]:.2f} and {other.certainty[0]:.2f}, squared cosine {cosine:.3f}; {one}"


def flipped() -> str:
    """A bit of the exponent of a sum in a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ckpt"
        compute(Model, checkpoint=path)
        seen = torch.load(path, weights_only=True)["moments"][0]["seen"].numpy().tobytes()
        content = bytearray(path.read_bytes())
        content[content.find(seen[:64]) + 7] ^= 0x40
        path.write_bytes(content)
        nads = compute(Model, checkpoint=path)
    return f"eigenvalue 0 is {nads.eigenvalues[0]:.3g}, its certainty {nads.certainty[0]:.2f}"


def main() -> None:
    """Print a line for each."""
    torch.set_num_threads(1)
    for error in (complex_buffer, attribute, rebuilt, coin, heavy, flipped):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                message = error()
            except Exception as reason:
                message = f"{type(reason).__name__}: {reason}"
        print(f"{error.__name__}: {message}")
        for warning in caught[:1]:
            print(f"  warning: {warning.message}")


if __name__ == "__main__":
    main()
