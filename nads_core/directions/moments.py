"""The second moment of the networks' vectors, in groups of networks, without the noise of inputs.

The J contributions of a network are its vector g plus independent noise. With two of them, x and y,

    C = E g g^T = E (x y^T + y x^T) / 2,

because both share the network, and their noise does not meet itself: unbiased at any level of
noise. A single contribution is taken as g itself. Network i belongs to group i mod 8, and the
shares of the groups

    C_k = (1 / N R) sum over networks i of group k and readouts r of (x y^T + y x^T) / 2

add up to C. Everything uncertain comes from how they differ. Up to 4,096 pixels the shares are kept
as D x D matrices, above as the vectors themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from nads_core.directions.certainty import GROUPS, standard_errors
from nads_core.runtime.arguments import Facts, Shape, require_memory, require_unit_norm
from nads_core.runtime.provenance import differences

DENSE_LIMIT = 4096  # largest D whose 8 matrices D x D (1 GB) are summed
_RANGE = 1e-140, 1e140  # of vectors whose squares are numbers of float64
STUDENT = 2.3646  # 97.5 % quantile of Student's t with 7 degrees of freedom
ROWS = 512  # vectors of a product in float32
_COLUMNS = 1024  # of the vectors, converted to float64 at a time


def is_large(image_shape: Shape) -> bool:
    """Whether the vectors of inputs of this shape are kept in place of D x D matrices."""
    return math.prod(image_shape) > DENSE_LIMIT


class Energy(NamedTuple):
    """v^T C v of one direction v.

    Args:
        value: estimate.
        std: standard error, from the differences between groups of networks.
        low: lower end of Student's interval of 95 %, 7 degrees of freedom.
        high: upper end.
    """

    value: float
    std: float
    low: float
    high: float


@dataclass(eq=False)
class Moments:
    """Second moment C of some networks, in 8 groups.

    Args:
        image_shape: shape of an input; D is its number of entries.
        description: everything that fixes the numbers; `merge` requires equal ones but the seed.
        symmetries: symmetries that the architecture declares; None if they have to be tested.
        provenance: settings and environment of the computation.
        scale: factor of the vectors in the sums: the first networks that respond set it, so that
            no square leaves the range of float32.
    """

    image_shape: Shape
    description: Facts = field(default_factory=dict)
    symmetries: tuple[str, ...] | None = ()
    provenance: Facts = field(default_factory=dict)
    scale: float = 1.0
    num_networks: int = 0
    num_vectors: int = 0
    silent: int = 0  # networks without a response
    sums: Tensor | None = None  # (8, D, D) in float64, symmetric
    rows: list[Tensor] = field(default_factory=list)  # (n, J, R, D) not yet in the sums, or all

    @property
    def dimension(self) -> int:
        """D."""
        return math.prod(self.image_shape)

    @property
    def is_large(self) -> bool:
        """Whether the vectors are kept in place of D x D matrices."""
        return is_large(self.image_shape)

    def add(self, vectors: Tensor) -> None:
        """Add the next networks, in the order of their numbers: (n, J, R, D).

        Raises:
            ValueError: for vectors whose squares leave the range of float64.
        """
        vectors = vectors.cpu()
        size = max(vectors.abs().flatten(1).amax(1).tolist(), default=0.0)
        if size and not _RANGE[0] < size < _RANGE[1]:
            raise ValueError(
                f"vectors are near {size:.0e}, and their squares leave the range of float64: scale "
                "the output of the networks"
            )
        if size and self.silent == self.num_networks:
            root_mean_square = float(vectors.double().square().mean().sqrt())
            self.scale = 2.0 ** -round(math.log2(root_mean_square))
        self.silent += int((~vectors.flatten(1).any(1)).sum())
        # Products of at most 512 vectors of a group in the type of the networks, at least float32;
        # where they begin depends on the networks' numbers alone
        kind = torch.promote_types(vectors.dtype, torch.float32)
        at_once = GROUPS * max(1, ROWS // vectors.shape[2])
        for vector in vectors.to(kind) * self.scale:
            self.rows.append(vector[None])
            self.num_networks += 1
            self.num_vectors += vector.shape[1]
            if self.num_networks % at_once == 0:
                self.finish()

    def finish(self) -> None:
        """Add the products of the vectors that wait for others."""
        if not self.is_large:
            self.sums, self.rows = self._multiplied(self.sums), []

    def all_sums(self) -> Tensor:
        """Return the sums, a copy with the products of the vectors that wait if there are any; these
        go on waiting, since where products begin must not depend on who asks for them.
        """
        if self.rows or self.sums is None:
            return self._multiplied(None if self.sums is None else self.sums.clone())
        return self.sums

    def _multiplied(self, sums: Tensor | None) -> Tensor:
        """Add the products of the vectors that wait to sums, in place."""
        if sums is None:
            sums = torch.zeros(GROUPS, self.dimension, self.dimension, dtype=torch.float64)
        first = self.num_networks - len(self.rows)
        for group in range(GROUPS):
            if rows := self.rows[(group - first) % GROUPS :: GROUPS]:
                mine = torch.cat(rows)  # (n, J, R, D)
                product = mine[:, 0].flatten(0, 1).T @ mine[:, -1].flatten(0, 1)
                sums[group].add_(product, alpha=0.5).add_(product.T.contiguous(), alpha=0.5)
        return sums

    @property
    def unit(self) -> float:
        """Factor that makes the sums shares."""
        return 1 / (self.num_vectors * self.scale**2)

    def shares(self) -> Tensor:
        """Return the shares C_k of the groups, (8, D, D) in float64; they add up to C."""
        return self.all_sums() * self.unit

    def energy(self, direction: Tensor | np.ndarray) -> Energy:
        """Return v^T C v of a unit direction, ``(*image_shape)``, with its standard error and interval.

        The direction must not have been found from the same networks. With fewer than 16 networks
        nothing is known of the error.

        Raises:
            ValueError: if the shape is not that of the networks' inputs, or the norm is not 1.
        """
        v = torch.as_tensor(direction, dtype=torch.float64).flatten()
        if v.numel() != self.dimension:
            got = tuple(np.shape(direction))
            raise ValueError(f"expected a direction of shape {self.image_shape}, got {got}")
        require_unit_norm(v)
        if self.is_large:
            vectors = torch.cat(self.rows)  # (N, J, R, D)
            along = vectors.double() @ v / self.scale
            products = (along[:, 0] * along[:, -1]).sum(1) / self.num_vectors  # (N,)
            groups = torch.arange(len(products)) % GROUPS
            shares = torch.zeros(GROUPS, dtype=torch.float64).index_add(0, groups, products)
        else:
            shares = (self.all_sums() @ v) @ v * self.unit
        value, std = float(shares.sum()), float(standard_errors(shares[:, None], self.num_networks))
        return Energy(value, std, value - STUDENT * std, value + STUDENT * std)

    def merge(self, other: Moments) -> Self:
        """Return the second moment of both runs' networks.

        Raises:
            ValueError: if the runs differ in more than their seeds, or share one.
        """
        mine = {**self.description, "seed": None}
        if changed := differences(mine, {**other.description, "seed": None}):
            raise ValueError(f"the second moments are of different runs: {changed}")
        seeds = [
            np.ravel(np.asarray(moment.description.get("seed"))).tolist()
            for moment in (self, other)
        ]
        if common := {*seeds[0]} & {*seeds[1]}:
            raise ValueError(f"both runs have the seed {common.pop()}: their networks are the same")
        merged = type(self)(
            self.image_shape,
            {**self.description, "seed": seeds[0] + seeds[1]},
            self.symmetries,
            self.provenance,
            scale=self.scale,
            num_networks=self.num_networks + other.num_networks,
            num_vectors=self.num_vectors + other.num_vectors,
            silent=self.silent + other.silent,
        )
        if self.is_large:
            merged.rows = self.rows + [row * (self.scale / other.scale) for row in other.rows]
        else:
            factor = (self.scale / other.scale) ** 2
            merged.sums = self.all_sums().add(other.all_sums(), alpha=factor)
        return merged

    def span(self) -> tuple[Tensor, Tensor]:
        """Return what the vectors span, without a D x D matrix, as (shares, weights).

        With all vectors below each other in X (V, D) and X X^T = U L U^T, the rows of
        Q = L^-1/2 U^T X are orthonormal, X = (U L^1/2) Q, and C_k = Q^T S_k Q.

        Returns:
            S_k / `unit`, (8, K, K), K the rank of X; and the weights (K, V) of Q = weights X.

        Raises:
            MemoryError: if the matrices do not fit.
            ValueError: if all vectors are zero.
        """
        vectors = torch.cat(self.rows)  # (N, J, R, D)
        halves, readouts = vectors.shape[1:3]
        count = vectors.shape[:3].numel()  # V
        require_memory(
            8 * (GROUPS + 5) * count**2,
            "cpu",
            f"the matrices of {count:,} vectors take",
            "draw fewer networks, or take readouts=1",
        )
        gram = torch.zeros(count, count, dtype=torch.float64)
        for columns in vectors.view(count, -1).split(_COLUMNS, dim=1):
            gram.addmm_(columns.double(), columns.double().T)
        levels, basis = torch.linalg.eigh(gram)
        if not levels[-1] > 0:
            raise ValueError("no network responds to its input: all vectors are zero")
        kept = levels > 1e-10 * levels[-1]
        levels, basis = levels[kept], basis[:, kept]  # (K,), (V, K)
        within = (basis * levels.sqrt()).unflatten(0, (-1, halves, readouts))  # (N, J, R, K)
        shares = []
        for group in range(GROUPS):
            mine = within[group::GROUPS]
            products = mine[:, 0].flatten(0, 1).T @ mine[:, -1].flatten(0, 1)
            shares.append((products + products.T) / 2)
        return torch.stack(shares), (basis / levels.sqrt()).T

    def in_pixels(self, coordinates: Tensor, weights: Tensor) -> Tensor:
        """Return the vectors (m, D), float32, that have coordinates (m, K) in the span."""
        rows = torch.cat(self.rows).view(weights.shape[1], -1)
        factors = coordinates @ weights  # large ones, which cancel each other
        parts = [(factors @ part.double()).float() for part in rows.split(_COLUMNS, dim=1)]
        return torch.cat(parts, 1)
