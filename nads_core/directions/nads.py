"""`NADs`, the result of `compute_nads`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
import torch
from torch import Tensor

from nads_core.directions import files, plot
from nads_core.directions.eigenpairs import Band, Uncertainty
from nads_core.runtime.arguments import Facts, require_integers, require_unit_norm


@dataclass(frozen=True, eq=False)
class NADs:
    """Neural anisotropy directions of one architecture, most preferred first.

    Args:
        directions: ``(n, *image_shape)`` float32, orthonormal.
        eigenvalues: (n,) float64, descending: of the estimate of C, the uncentred second moment
            without the noise of the inputs. That is unbiased, so eigenvalues at the end can be
            negative.
        provenance: settings and environment of the computation.
        uncertainty: uncertainty of each; None in files that were written before there were any.
    """

    directions: Tensor
    eigenvalues: Tensor
    provenance: Facts = field(default_factory=dict)
    uncertainty: Uncertainty | None = None

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
        return files.checksum(files.stored(self, quantized=False))

    def __len__(self) -> int:
        return len(self.directions)

    @overload
    def __getitem__(self, key: int) -> Tensor: ...

    @overload
    def __getitem__(self, key: slice) -> NADs: ...

    def __getitem__(self, key: int | slice) -> Tensor | NADs:
        """Return one direction, ``nads[0]``; or some of them as NADs, ``nads[:10]``.

        Names, bands and the certainty of leading subspaces count from the first direction on: a
        slice that does not begin there has no uncertainty.

        Example:
            >>> from nads_core import load_nads
            >>> lenet = load_nads("lenet")
            >>> lenet[0].shape, len(lenet[:10])
            (torch.Size([1, 32, 32]), 10)
        """
        if not isinstance(key, slice):
            return self.directions[key]
        first, end, step = key.indices(len(self))
        leading = self.uncertainty is not None and (first, step) == (0, 1)
        known = self.uncertainty.first(end) if leading and self.uncertainty else None
        return NADs(self.directions[key], self.eigenvalues[key], self.provenance, known)

    def __repr__(self) -> str:
        facts = self.provenance
        parts = [
            self.name,
            f"{len(self)} directions of {tuple(self.directions.shape[1:])}",
            f"{facts.get('num_networks', '?')} networks",
        ]
        if reason := facts.get("one_readout"):
            parts.append(f"1 readout ({reason})")
        elif (readouts := facts.get("readouts", 1)) > 1:
            parts.append(f"{readouts} readouts")
        if facts.get("large_inputs"):
            parts.append("large inputs: no symmetries, vectors kept")
        if self.uncertainty is not None:
            parts.append(f"{self.uncertainty.num_certain} certain above 0.9")
        return f"NADs({', '.join(parts)})"

    def _known(self) -> Uncertainty:
        """Return the uncertainty, or raise a ValueError if there is none."""
        if self.uncertainty is None:
            raise ValueError(
                "these NADs have no uncertainty: they were computed before directions had one, or "
                "do not begin with the first direction"
            )
        return self.uncertainty

    @property
    def name(self) -> str:
        """Name of the architecture."""
        return files.printable(str(self.provenance.get("architecture", "unnamed")))

    @property
    def types(self) -> tuple[str, ...]:
        """How the symmetries of the architecture change each direction (`SymmetryType`): "++s" is
        changed by none.
        """
        return self._known().types

    @property
    def names(self) -> tuple[str, ...]:
        """Type and rank within it, such as "++s 3", which do not depend on sampling as an index
        does.
        """
        return self._known().names

    @property
    def certainty(self) -> Tensor:
        """(n,), expected squared cosine with the direction of the same name for infinitely many
        networks and inputs; 0 where it is not known, and below 0.3.
        """
        return self._known().certainty

    @property
    def leading_certainty(self) -> Tensor:
        """(n,), expected overlap of the first directions up to each with the exact ones."""
        return self._known().leading_certainty

    @property
    def eigenvalue_std(self) -> Tensor:
        """(n,), standard error of each eigenvalue; NaN where its direction is not known."""
        return self._known().eigenvalue_std

    @property
    def bands(self) -> tuple[Band, ...]:
        """Directions of one type that this run cannot distinguish, with the certainty of the
        subspace of each band.
        """
        return self._known().bands

    @property
    def basis(self) -> Tensor:
        """The paper's U, of shape (D, n), one direction a column."""
        return self.directions.flatten(1).T

    def overlap(self, other: NADs | Tensor | np.ndarray, k: int = 10) -> float:
        """Mean squared cosine of the principal angles between the first k directions of each, ||A
        B^T||^2 / k: 1 for the same subspace.

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
        files.require_orthonormal(theirs)
        return float((self.directions[:k].flatten(1).double() @ theirs.T).square().sum() / k)

    def energy(self, direction: Tensor | np.ndarray) -> Tensor:
        """Return v^T C v, with C rebuilt from the eigenpairs: the prior variance of the slope of f
        along v.

        With fewer than D directions it is a lower bound, because C lacks the others.
        `SecondMoment.energy` has an interval.

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
        """Return the coefficients of inputs along the directions: ``(*image_shape)`` -> (n,), or
        ``(B, *image_shape)`` -> (B, n).

        Raises:
            ValueError: if the shape is not that of the NADs.
        """
        images, shape = torch.as_tensor(images), self.directions.shape[1:]
        if images.shape[-len(shape) :] != shape or images.dim() > len(shape) + 1:
            raise ValueError(
                f"expected a direction or input {tuple(shape)}, or many, got {tuple(images.shape)}"
            )
        dtype = torch.promote_types(images.dtype, self.directions.dtype)
        return images.flatten(-len(shape)).to(dtype) @ self.basis.to(images.device, dtype)

    def complete_basis(self) -> NADs:
        """Return a full basis of D directions: the missing ones come last, in any order, with
        eigenvalue 0 and without uncertainty.
        """
        rows = self.directions.flatten(1)
        missing = rows.shape[1] - len(rows)
        if not missing:
            return self
        extra = torch.linalg.qr(rows.double().T, mode="complete").Q.T[len(rows) :].to(rows)
        directions = torch.cat([rows, extra]).view(-1, *self.directions.shape[1:])
        values = torch.cat([self.eigenvalues, self.eigenvalues.new_zeros(missing)])
        return NADs(directions, values, self.provenance)

    plot = plot.plot

    def save(self, path: str | os.PathLike[str], *, quantized: bool = False) -> None:
        """Write an npz file, which holds all fields exactly.

        Args:
            path: file to write, of which ``~`` is expanded.
            quantized: whether to store 16-bit integers, which moves no direction by more than 1e-4.
                What `load_nads` returns then has the fingerprint of those integers.

        Raises:
            OSError: if the file cannot be written, on a full disk for example; an earlier one is
                unchanged then.
            ValueError: for a name with another ending.
        """
        files.save(self, path, quantized=quantized)


def load_nads(name: str | os.PathLike[str], **facts: object) -> NADs:
    """Return the NADs in a file, or the precomputed ones of an architecture of the paper, for one
    channel and 32 x 32 pixels.

    Args:
        name: path of an npz file; or "logreg", "lenet", "vgg11", "resnet18" or "densenet121".
        **facts: additions to the provenance.

    Returns:
        NADs. The provenance of precomputed ones has the ``version`` of their file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if none ship under that name; or the file holds no NADs (orthonormal directions,
            certainties in [0, 1]), was cut off or is damaged.
    """
    path, more = files.located(name)
    stored = files.read(path)
    try:
        nads = NADs(stored.directions, stored.eigenvalues, stored.provenance, stored.uncertainty)
    except ValueError as error:
        raise ValueError(f"{path} holds no NADs that can be read: {error}") from error
    nads.provenance.update(more | facts)
    # The fingerprint is that of the file: rebuilt values differ between processors
    vars(nads)["fingerprint"] = stored.fingerprint
    return nads
