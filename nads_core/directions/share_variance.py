"""Variance of one network's share of the second moment: an estimator of fourth order, from halves of the contributions.

Network i has the share Z_i = g_i g_i^T of C, of which its halves x_i, y_i (means of disjoint contributions, with
independent noise) give an estimate without bias:

    Z_i = (x_i y_i^T + y_i x_i^T) / 2,      V_jk = E Z_jk^2 - (E Z_jk)^2.

The noise of Z itself belongs to V, because the moments sum Z. With P partners of a symmetry type and R readouts the
share is the mean over them, so that products of different partners and of different readouts enter as well.
"""

import torch
from torch import Tensor

_FOLDS = 8


def share_variances(coordinates: Tensor) -> Tensor:
    """Return V (k, k): the variance of one network's share of the entries of C in a basis, see the module's formula.

    Args:
        coordinates: coordinates of the halves in that basis, (P, n, R, 2, k), for each partner of a symmetry type; the
            share of a network is the mean over its partners and readouts.
    """
    partners, count, readouts, _, size = coordinates.shape
    if not size:
        return torch.zeros(0, 0, dtype=torch.float64)
    # In units of the power along each axis fourth powers fit into float32, which halves the time
    unit = coordinates.double().square().mean((0, 1, 2, 3)).sqrt().clamp(min=1e-150)  # (k,)
    rows = (coordinates.double() / unit).float()
    x, y = rows[..., 0, :], rows[..., 1, :]  # (P, n, R, k) each

    def product(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> Tensor:
        """Return the mean over networks of Z Z', elementwise, (k, k), for rows (m, k)."""
        xx, yy, xy, yx = (a * b for a, b in zip(first * 2, second + second[::-1], strict=True))
        total = xx.T @ yy + xy.T @ yx
        return (total + total.T).double() / (4 * len(xx))

    # Of the share
    square = torch.zeros(len(unit), len(unit), dtype=torch.float64, device=rows.device)
    mean = torch.zeros_like(square)
    for p in range(partners):
        mine = (x[p].flatten(0, 1), y[p].flatten(0, 1))
        mean += (mine[0].T @ mine[1]) / (partners * count * readouts)
        for q in range(p, partners):
            same = product(mine, mine if p == q else (x[q].flatten(0, 1), y[q].flatten(0, 1)))
            if readouts > 1:  # pairs of different readouts stand for all of them
                others = [part.roll(1, dims=1).flatten(0, 1) for part in (x[q], y[q])]
                same = same / readouts + (1 - 1 / readouts) * product(mine, (others[0], others[1]))
            square += same * ((1 if p == q else 2) / partners**2)
    units = unit.outer(unit)
    square, mean = square * units.square(), mean * units
    mean = (mean + mean.T) / 2
    # Few networks with heavy tails can give what is no variance
    power = square.diagonal().clamp(min=1e-3 * square.diagonal().abs().max()).sqrt()
    return (square - mean.square()).clamp(min=1e-3 * power.outer(power))


def unseen_energies(coordinates: Tensor) -> tuple[float, float]:
    """Return the energy of one network, and of its inputs' noise, per dimension that the other networks do not span.

    Both are means over folds of held-out networks.

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
    number = torch.arange(count).repeat_interleave(2 * vectors)  # of each row's network
    energy, noise, dimensions = 0.0, 0.0, 0
    for fold in range(min(_FOLDS, count)):
        held_out = number % min(_FOLDS, count) == fold
        across = gram[held_out][:, ~held_out]
        residual = gram[held_out][:, held_out]
        spanned = 0
        if (~held_out).any():
            others = gram[~held_out][:, ~held_out]
            residual = residual - across @ torch.linalg.solve(others, across.T)
            spanned = int((torch.linalg.eigvalsh(others) > 1e-5 * others.diagonal().mean()).sum())
        # Per network
        dimensions += max(0, rows.shape[1] - spanned) * int(held_out.sum()) // (2 * vectors)
        x, y = slice(0, None, 2), slice(1, None, 2)
        products = residual[x, y].diagonal().sum()  # of the halves of one network
        squares = residual[x, x].diagonal().sum() + residual[y, y].diagonal().sum()
        energy, noise = (
            energy + float(products) / vectors,
            noise + float(squares - 2 * products) / (4 * vectors),
        )
    return max(0.0, energy) / max(1, dimensions), max(0.0, noise) / max(1, dimensions)
