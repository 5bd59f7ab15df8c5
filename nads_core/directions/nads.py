"""`NADs`, the result of `compute_nads`; their files, and those that ship with the package."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
import torch
from torch import Tensor

from nads_core.directions import export
from nads_core.directions.covariance import orthogonal_complement, subspace_overlap
from nads_core.directions.uncertainty import DegenerateCluster, DirectionUncertainty
from nads_core.runtime.arguments import Facts, plain, require_integers, require_unit_norm
from nads_core.runtime.files import atomic_write, seal


@dataclass(frozen=True, eq=False)
class NADs:
    """Neural anisotropy directions of one architecture, most preferred first.

    Args:
        directions: ``(n, *image_shape)`` float32, orthonormal.
        eigenvalues: (n,) float32, or float64 where those would underflow, descending: of the
            estimate of C, the uncentred second moment, without the noise of the inputs unless
            ``debiasing`` is "none".
        provenance: settings and environment of the computation.
        uncertainty: uncertainty of each; None in files that were written before there were any.
    """

    directions: Tensor
    eigenvalues: Tensor
    provenance: Facts = field(default_factory=dict)
    uncertainty: DirectionUncertainty | None = None

    def __post_init__(self) -> None:
        if self.directions.dim() < 2 or self.eigenvalues.shape != self.directions.shape[:1]:
            shapes = f"{tuple(self.directions.shape)} and {tuple(self.eigenvalues.shape)}"
            raise ValueError(
                f"expected directions (n, *image_shape) and eigenvalues (n,), got {shapes}"
            )
        if self.uncertainty is not None and len(self.uncertainty) != len(self):
            raise ValueError(
                f"expected the uncertainty of {len(self)} directions, got {len(self.uncertainty)}"
            )

    @cached_property
    def fingerprint(self) -> str:
        """Names the stored bytes (of the file, or what `save` would write), which are the same on
        every machine.
        """
        return export.checksum(self._stored(quantized=False))

    def __len__(self) -> int:
        return len(self.directions)

    @overload
    def __getitem__(self, key: int) -> Tensor: ...

    @overload
    def __getitem__(self, key: slice) -> NADs: ...

    def __getitem__(self, key: int | slice) -> Tensor | NADs:
        """Return one direction, ``nads[0]``; or the NADs without the later directions,
        ``nads[:10]``.

        Names, bands and the certainty of leading subspaces count from the first direction on.
        Therefore a slice begins there and leaves none out; ``nads.directions[5:10]`` are the
        directions alone.

        Raises:
            IndexError: if there is no such direction.
            ValueError: for another slice.

        Example:
            >>> lenet = load_nads("lenet")
            >>> lenet[0].shape, len(lenet[:10])
            (torch.Size([1, 32, 32]), 10)
        """
        if not isinstance(key, slice):
            return self.directions[key]
        first, count, step = key.indices(len(self))
        if (first, step) != (0, 1):
            raise ValueError(
                f"a slice of NADs has the form [:k], got {key}: nads.directions[...] takes any"
            )
        known = self.uncertainty and self.uncertainty.first(count)
        return NADs(self.directions[:count], self.eigenvalues[:count], self.provenance, known)

    def __repr__(self) -> str:
        directions = f"{len(self)} directions of {tuple(self.directions.shape[1:])}"
        networks = f"{self.provenance.get('num_networks', '?')} networks"
        if effective := self.provenance.get("effective_networks"):
            networks += f" (effective: {round(effective, None if effective >= 10 else 1)})"
        parts = [self.name, directions, networks]
        if self.uncertainty is not None:
            parts.append(f"{self.uncertainty.num_certain} certain above 0.9")
        return f"NADs({', '.join(parts)})"

    def _require_valid(self) -> None:
        """Raise a ValueError unless directions are orthonormal, eigenvalues those of C, and
        certainties in [0, 1].

        The shape has to be that of the provenance, if it names one, and eigenvalues have to
        descend.
        """
        rows, values = self.directions.flatten(1), self.eigenvalues
        if not (rows.is_floating_point() and values.is_floating_point()):
            raise ValueError(f"numbers are expected, got {rows.dtype} and {values.dtype}")
        _require_orthonormal(rows)
        rounding = 1e-6 * float(values.abs().max())
        # Subtracted noise may leave a negative rest
        lowest = -math.inf if self.provenance.get("debiasing") == "subtract" else -rounding
        if not (values.isfinite().all() and float(values.min()) >= lowest):
            ends = f"{float(values.min()):.3g} to {float(values.max()):.3g}"
            raise ValueError(f"eigenvalues from {ends} are not those of C")
        if (values.diff() > rounding).any():
            raise ValueError("eigenvalues do not descend, so they may belong to other directions")
        shape = list(self.directions.shape[1:])
        if (named := list(self.provenance.get("image_shape", shape))) != shape:
            raise ValueError(f"directions are of {shape}, their provenance of image_shape {named}")
        for name in ("num_networks", "effective_networks"):
            count = self.provenance.get(name, 1)
            if not (isinstance(count, (int, float)) and math.isfinite(count)):
                raise ValueError(f"{name} is {count!r}, expected a number")
        if self.uncertainty is not None:
            self.uncertainty.require_valid()

    def _require_uncertainty(self) -> DirectionUncertainty:
        """Return the uncertainty, or raise a ValueError if there is none."""
        if self.uncertainty is None:
            raise ValueError(
                "these NADs were computed before directions had uncertainties: compute them again"
            )
        return self.uncertainty

    @property
    def name(self) -> str:
        """Name of the architecture."""
        return export.printable(str(self.provenance.get("architecture", "unnamed")))

    @property
    def types(self) -> tuple[str, ...]:
        """How the symmetries of the architecture change each direction (`SymmetryType`): "++s" is
        changed by none.
        """
        return self._require_uncertainty().types

    @property
    def names(self) -> tuple[str, ...]:
        """Type and rank within it, such as "++s 3", which do not depend on sampling as an index
        does.
        """
        return self._require_uncertainty().names

    @property
    def certainty(self) -> Tensor:
        """(n,), expected squared cosine with the direction of the same name for infinitely many
        networks and inputs.
        """
        return self._require_uncertainty().certainty

    @property
    def eigenvalue_std(self) -> Tensor:
        """(n,), root mean square of the eigenvalue's error; NaN where nothing is known of it."""
        return self._require_uncertainty().eigenvalue_std

    @property
    def bands(self) -> tuple[DegenerateCluster, ...]:
        """Directions of one type that this run cannot distinguish, with the certainty of the
        subspace of each band.
        """
        return self._require_uncertainty().bands

    @property
    def basis(self) -> Tensor:
        """The paper's U, of shape (D, n), one direction a column."""
        return self.directions.flatten(1).T

    def overlap(self, other: NADs | Tensor | np.ndarray, k: int = 10) -> float:
        """Mean squared cosine of the principal angles between the first k directions of each: 1 for
        the same subspace.

        Two random subspaces overlap by k / D on average.

        Args:
            other: NADs, or orthonormal directions (n, ...) with the same number of pixels.
            k: number of directions.

        Raises:
            ValueError: if either has fewer than k directions, the sizes differ, or bare directions
                are not orthonormal.
        """
        theirs = torch.as_tensor(other.directions if isinstance(other, NADs) else other)
        dimension = len(self.basis)
        if theirs.dim() < 2 or theirs.shape[1:].numel() != dimension:
            raise ValueError(
                f"expected directions (n, ...) of {dimension} pixels, got shape "
                f"{tuple(theirs.shape)}"
            )
        require_integers(k=k)
        if k > min(len(self), len(theirs)):
            raise ValueError(
                f"k = {k} directions requested, but there are {len(self)} and {len(theirs)}"
            )
        theirs = theirs[:k].flatten(1).double()
        _require_orthonormal(theirs)
        return subspace_overlap(self.directions[:k].flatten(1), theirs)

    def overlap_interval(
        self, other: NADs | Tensor | np.ndarray, k: int = 10
    ) -> tuple[float, float]:
        """Return where the `overlap` of the exact subspaces lies, if both are known as well as is
        claimed.

        sqrt(1 - overlap) is a distance d between subspaces, the chordal one. With the distances e =
        sqrt(1 - `DirectionUncertainty.leading_certainty`) of both from their exact subspaces, the
        triangle inequality bounds that of the exact ones:

            max(0, d - e_1 - e_2) <= d_exact <= d + e_1 + e_2.

        That leaves room for errors in any direction: it is wide.

        Args:
            other: NADs; or directions that are exact.
            k: number of directions.

        Raises:
            ValueError: if an uncertainty is missing, or as `overlap` has it.
        """
        apart = max(0.0, 1 - self.overlap(other, k)) ** 0.5
        sampled = [nads._require_uncertainty() for nads in (self, other) if isinstance(nads, NADs)]
        room = sum(max(0.0, 1 - float(one.leading_certainty[k - 1])) ** 0.5 for one in sampled)
        return max(0.0, 1 - (apart + room) ** 2), 1 - max(0.0, apart - room) ** 2

    def energy(self, direction: Tensor | np.ndarray) -> Tensor:
        """Return v^T C v, with C rebuilt from the eigenpairs: the prior variance of the slope of f
        along v.

        With fewer than D directions it is a lower bound, because C lacks the others.

        Args:
            direction: one direction, (C, H, W), or many, (m, C, H, W); unit norm.

        Returns:
            A scalar, or (m,).

        Raises:
            ValueError: if the shape is not that of the NADs, or a norm is not 1.
        """
        direction = torch.as_tensor(direction, dtype=torch.float64)
        coordinates = self.coordinates(direction)  # checks the shape
        require_unit_norm(direction.flatten(1 - self.directions.dim()))
        return coordinates.square() @ self.eigenvalues.double()

    def coordinates(self, images: Tensor | np.ndarray) -> Tensor:
        """Return the coefficients of inputs along the directions, which `reconstruct` turns back
        into inputs.

        Args:
            images: one input, or many, ``(B, *image_shape)``.

        Returns:
            (n,), or (B, n).

        Raises:
            ValueError: if the shape is not that of the NADs.

        Example:
            >>> logreg = load_nads("logreg")  # all 1,024 directions
            >>> image = torch.randn(1, 32, 32)
            >>> torch.allclose(logreg.reconstruct(logreg.coordinates(image)), image, atol=1e-4)
            True
        """
        images, shape = torch.as_tensor(images), self.directions.shape[1:]
        if images.shape[-len(shape) :] != shape or images.dim() > len(shape) + 1:
            raise ValueError(
                f"expected a direction or input {tuple(shape)}, or many, got {tuple(images.shape)}"
            )
        dtype = torch.promote_types(images.dtype, self.directions.dtype)
        return images.flatten(-len(shape)).to(dtype) @ self.basis.to(images.device, dtype)

    def reconstruct(self, coordinates: Tensor | np.ndarray) -> Tensor:
        """Return the inputs with these coefficients: what is left of images along the first m
        directions.

        Args:
            coordinates: coefficients (m,) or (B, m) of the first m directions, m at most n.

        Returns:
            One input, or ``(B, *image_shape)``.

        Raises:
            ValueError: if there are more coefficients than directions.
        """
        coordinates = torch.as_tensor(coordinates)
        if coordinates.dim() not in (1, 2) or coordinates.shape[-1] > len(self):
            raise ValueError(
                f"expected coefficients (m,) or (B, m), m <= {len(self)}, "
                f"got {tuple(coordinates.shape)}"
            )
        dtype = torch.promote_types(coordinates.dtype, self.directions.dtype)
        directions = self.directions[: coordinates.shape[-1]].to(coordinates.device, dtype)
        return torch.tensordot(coordinates.to(dtype), directions, dims=1)

    def compare(self, others: NADs | str | Iterable[NADs | str], k: int = 10) -> Similarities:
        """Return the overlap of the first k directions with those of others, with intervals, as a
        table.

        Args:
            others: NADs, whose labels are the names of their architectures, or names as `load_nads`
                takes them; one or many.
            k: number of directions.

        Raises:
            ValueError: if NADs have no uncertainty, fewer than k directions, or other sizes.

        Example:
            >>> load_nads("lenet").compare(["vgg11", "resnet18"], k=5)
            vgg11                    0.58 (0.24 to 0.82) of the first 5 directions
            resnet18                 0.00 (0.00 to 0.64) of the first 5 directions
        """
        if isinstance(others, (NADs, str)):
            others = [others]
        loaded = (
            (other, load_nads(other)) if isinstance(other, str) else (other.name, other)
            for other in others
        )
        return Similarities(SubspaceSimilarity.of(name, self, nads, k) for name, nads in loaded)

    plot = export.plot

    def complete_basis(self) -> NADs:
        """Return a full basis of D directions: the missing ones come last, in any order, with
        eigenvalue 0. Unless nothing was missing, the basis has no uncertainty, types or names.

        Directions of negative eigenvalues, which subtracted noise leaves, count as missing.
        """
        if len(self) == len(self.basis):
            return self
        known = self[: int((self.eigenvalues >= 0).sum())]
        rows = known.directions.flatten(1)  # (n, D)
        complement = orthogonal_complement(rows.double()).to(rows.dtype)
        directions = torch.cat([rows, complement]).view(-1, *self.directions.shape[1:])
        zeros = known.eigenvalues.new_zeros(len(complement))
        return NADs(directions, torch.cat([known.eigenvalues, zeros]), self.provenance)

    def _stored(self, quantized: bool) -> dict[str, np.ndarray]:
        """Return the arrays of an npz file that are its identity."""
        rows = self.directions.detach().cpu().numpy()
        stored = {"directions": rows, "eigenvalues": self.eigenvalues.detach().cpu().numpy()}
        if quantized:
            scale = np.abs(rows).max(axis=tuple(range(1, rows.ndim)), keepdims=True) / (2**15 - 1)
            stored["directions"] = np.round(rows / scale).astype(np.int16)
            stored["scale"] = scale.astype(np.float32)
        return stored

    def save(self, path: str | os.PathLike[str], *, quantized: bool = False) -> None:
        """Write an npz file, which holds all fields exactly.

        Args:
            path: file to write, of which ``~`` is expanded.
            quantized: whether to store 16-bit integers, which moves no direction by more than 1e-4.
                What `load` returns then has the fingerprint of those integers.

        Raises:
            OSError: if the file cannot be written, on a full disk for example; an earlier one is
                unchanged then.
            ValueError: for a name with another ending.
        """
        path = export.nads_path(path)
        arrays = {"provenance": np.array(json.dumps(self.provenance))} | self._stored(quantized)
        arrays |= self.uncertainty.arrays() if self.uncertainty else {}
        with atomic_write(path, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # no allow_pickle in it
            seal(file)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **facts: object) -> NADs:
        """Read what `save` wrote.

        Args:
            path: npz file, of which ``~`` is expanded.
            **facts: additions to the provenance.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it holds no NADs (orthonormal directions, eigenvalues that are not
                negative, certainties in [0, 1]), was cut off, or differs by a bit from what was
                written.
        """
        path = Path(path).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        try:
            file = export.read(path)
            identity = ("directions", "scale", "eigenvalues")
            stored = {name: file[name] for name in identity if name in file}
            if "mirrored" in file:
                stored["directions"] = _unfolded(stored["directions"], file["mirrored"])
            provenance = json.loads(str(file["provenance"]))
            provenance |= {name: plain(value) for name, value in facts.items()}
            uncertainty = DirectionUncertainty.from_arrays(file) if "certainty" in file else None
            directions = torch.from_numpy(stored["directions"])
            if "scale" in stored:
                rows = (directions.double() * torch.from_numpy(stored["scale"]).double()).flatten(1)
                for _ in range(2):  # Newton-Schulz: back to the nearest orthonormal rows
                    rows = 1.5 * rows - 0.5 * (rows @ rows.T) @ rows
                directions = rows.float().view(directions.shape)
            nads = cls(directions, torch.from_numpy(stored["eigenvalues"]), provenance, uncertainty)
            nads._require_valid()
        except Exception as error:  # readers of other files, or of damaged ones, can raise anything
            raise ValueError(
                f"{path} holds no NADs that can be read, or is damaged ({error!r})"
            ) from error
        # The fingerprint is that of the file: rebuilt values differ between processors
        vars(nads)["fingerprint"] = export.checksum(stored)
        return nads


def _require_orthonormal(rows: Tensor) -> None:
    """Raise a ValueError unless rows (n, D) have the inner products 1 and 0, within 1e-3."""
    error = float((rows @ rows.T - torch.eye(len(rows)).to(rows)).abs().max())
    if not error < 1e-3:
        raise ValueError(
            f"directions are not orthonormal, an inner product is wrong by {error:.2g}: "
            "orthonormalise them, for example by torch.linalg.qr"
        )


def _unfolded(quarter: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return the directions (n, C, H, W) that a shipped file holds as quarters (n, C, H / 2, W /
    2).

    Args:
        quarter: upper left quarters.
        signs: (n, 2), whether a direction is even (1) or odd (-1) in its rows and in its columns.
    """
    rows, columns = signs.T[:, :, None, None, None]  # (n, 1, 1, 1) each
    half = np.concatenate([quarter, columns * quarter[..., ::-1]], axis=-1)
    return np.concatenate([half, rows * half[..., ::-1, :]], axis=-2)


def load_nads(name: str) -> NADs:
    """Return the precomputed NADs of an architecture of the paper, for one channel and 32 x 32
    pixels.

    Args:
        name: "logreg", "lenet", "vgg11", "resnet18" or "densenet121". `NADs.load` reads files.

    Returns:
        NADs, whose provenance has the ``version`` of the file. Version 1 is in the repository,
        `book/results/nads-v1`, because results refer to it, and does not ship.

    Raises:
        ValueError: if none ship under that name.
    """
    folder = Path(__file__).parents[1] / "precomputed"
    files = {path.name.partition(".v")[0]: path for path in folder.glob("*.v*.npz")}
    key = str(name).lower().replace("-", "").replace("_", "")
    if key not in files:
        names = ", ".join(sorted(files))
        raise ValueError(
            f"no NADs of {name} ship: choose from {names}, read a file with NADs.load, or compute "
            "them with compute_nads"
        )
    return NADs.load(files[key], version=int(files[key].stem.partition(".v")[2]))


@dataclass(frozen=True)
class SubspaceSimilarity:
    """Overlap of the leading subspaces of two architectures.

    Args:
        name: name of the other architecture.
        overlap: mean squared cosine of the principal angles.
        interval: interval of the overlap of the exact subspaces, see `NADs.overlap_interval`.
        num_directions: dimension of each subspace.
        chance: mean overlap of two random subspaces.
    """

    name: str
    overlap: float
    interval: tuple[float, float]
    num_directions: int
    chance: float

    @classmethod
    def of(cls, name: str, first: NADs, second: NADs, k: int) -> SubspaceSimilarity:
        """Compare the first k directions of two architectures, the second of this name."""
        interval = first.overlap_interval(second, k)
        return cls(name, first.overlap(second, k), interval, k, k / len(first.basis))

    def __str__(self) -> str:
        low, high = self.interval
        share = f"{self.overlap:.2f} ({low:.2f} to {high:.2f})"
        return f"{self.name:<24} {share} of the first {self.num_directions} directions"


class Similarities(list[SubspaceSimilarity]):
    """Similarities to several architectures, printed as one line each."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "[]"
