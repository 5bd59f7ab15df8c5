"""Variance of one network's share of the second moment: an estimator of fourth order, from halves
of the contributions.

Network i has the share Z_i = g_i g_i^T of C, of which its halves x_i, y_i (means of disjoint
contributions, with independent noise) give an estimate without bias:

    Z_i = (x_i y_i^T + y_i x_i^T) / 2,      V_jk = E Z_jk^2 - (E Z_jk)^2.

The noise of Z itself belongs to V, because the moments sum Z. With P partners of a symmetry type
and R readouts the share is the mean over them, so that products of different partners and of
different readouts enter as well.
"""

from __future__ import annotations

import torch
from torch import Tensor

_FOLDS = 8


def share_variances(coordinates: Tensor) -> Tensor:
    """Return V (k, k): the variance of one network's share of the entries of C in a basis, see the
    module's formula.

    Args:
        coordinates: coordinates of the halves in that basis, (P, n, R, 2, k), for each partner of a
            symmetry type; the share of a network is the mean over its partners and readouts.
    """
    partners, count, readouts, _, size = coordinates.shape
    if not size:
        return torch.zeros(0, 0, dtype=torch.float64)
    # In units of the power along each axis fourth powers fit into float32, which halves the time
    unit = coordinates.double().square().mean((0, 1, 2, 3)).sqrt().clamp(min=1e-150)  # (k,)
    rows = (coordinates.double() / unit).float()
    vectors = rows.flatten(1, 2)  # (P, n * R, 2, k)

    square = torch.zeros(size, size, dtype=torch.float64, device=rows.device)  # E Z_jk^2
    mean = torch.zeros_like(square)  # E Z_jk
    for p, own in enumerate(vectors):
        mean += (own[:, 0].T @ own[:, 1]) / (partners * count * readouts)
        for q in range(p, partners):
            products = _mean_product(own, vectors[q])
            if readouts > 1:
                # Of the pairs of readouts one in R is of equal ones; pairs of neighbours stand for
                # the others.
                shifted = rows[q].roll(1, dims=1).flatten(0, 1)
                products = products / readouts + (1 - 1 / readouts) * _mean_product(own, shifted)
            # Z is the mean over P partners, so Z^2 has each pair p < q twice.
            square += products * ((1 if p == q else 2) / partners**2)

    mean = (mean + mean.T) / 2
    # Few networks with heavy tails can give what is no variance. The least one is a share of the
    # powers of its two axes, whatever other axes have.
    power = square.diagonal().clamp(min=1e-3 * square.diagonal().abs().max()).sqrt()
    variance = (square - mean.square()).clamp(min=1e-3 * power.outer(power))
    return variance * unit.outer(unit).square()


def _mean_product(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean of Z_jk Z'_jk over m vectors, (k, k), from their halves (m, 2, k).

    With Z_jk = (x_j y_k + y_j x_k) / 2, and a prime for the other's,

        4 Z_jk Z'_jk = (x x')_j (y y')_k + (x y')_j (y x')_k + the same with j and k exchanged.
    """
    xx, yy = (one * other).unbind(1)
    xy, yx = (one * other.flip(1)).unbind(1)
    total = xx.T @ yy + xy.T @ yx
    return (total + total.T).double() / (4 * len(xx))


def unseen_energies(coordinates: Tensor) -> tuple[float, float]:
    """Return the energy of one network, and of its inputs' noise, per dimension that the other
    networks do not span.

    Both are means over folds of held-out networks. What the others do not span of a held-out vector
    is its residual r = v - projection, whose inner products are a Schur complement of the Gram
    matrix K of all vectors:

        r r^T = K_hh - K_ho K_oo^-1 K_oh        (h: held out, o: others).

    Args:
        coordinates: coordinates of the halves, (P, n, R, 2, d); see `share_variances`.
    """
    networks = coordinates.movedim(0, 1).flatten(1, 2)  # (n, P * R, 2, d)
    count, vectors = networks.shape[:2]
    rows = networks.flatten(0, 2)
    gram = (rows @ rows.T).double()
    scale = float(gram.diagonal().mean())
    if not scale > 0:
        return 0.0, 0.0  # of a type without energy
    gram.diagonal().add_(1e-6 * scale)  # halves without noise are equal
    network_of_row = torch.arange(count).repeat_interleave(2 * vectors)
    energy, noise, dimensions = 0.0, 0.0, 0
    num_folds = min(_FOLDS, count)
    for fold in range(num_folds):
        held_out = network_of_row % num_folds == fold
        residual, spanned = _residual(gram, held_out)
        num_networks = int(held_out.sum()) // (2 * vectors)
        dimensions += max(0, rows.shape[1] - spanned) * num_networks
        # Rows alternate between the halves x and y. Their product has no noise: E x y = energy, and
        # E (x - y)^2 / 4 = E (x^2 + y^2 - 2 x y) / 4 is the noise of their mean.
        x, y = slice(0, None, 2), slice(1, None, 2)
        products = residual[x, y].diagonal().sum()
        squares = residual[x, x].diagonal().sum() + residual[y, y].diagonal().sum()
        energy += float(products) / vectors
        noise += float(squares - 2 * products) / (4 * vectors)
    dimensions = max(1, dimensions)
    return max(0.0, energy) / dimensions, max(0.0, noise) / dimensions


def _residual(gram: Tensor, held_out: Tensor) -> tuple[Tensor, int]:
    """Return inner products of what the other rows do not span of held-out ones, and how many
    dimensions they span.

    Args:
        gram: (m, m), inner products of all rows.
        held_out: (m,), which rows are held out.
    """
    residual = gram[held_out][:, held_out]
    across = gram[held_out][:, ~held_out]
    others = gram[~held_out][:, ~held_out]
    residual = residual - across @ torch.linalg.solve(others, across.T)
    levels = torch.linalg.eigvalsh(others)
    return residual, int((levels > 1e-5 * others.diagonal().mean()).sum())
