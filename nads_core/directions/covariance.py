"""Streaming second moments of the networks' vectors, and the noise in them.

For network i with contributions g_ij (j = 1..J) and mean m_i the moments kept are

    M = (1/N) sum_i m_i m_i^T                                    what is seen
    W = (1/N) sum_i sum_j (g_ij - m_i)(g_ij - m_i)^T / (J(J-1))  the share of it that is noise of the mean

so M - W, a U-statistic, estimates C = E[E[g|network] E[g|network]^T] without bias. Both kinds keep the same
statistics: `DenseMoments` as D x D matrices, `GramMoments` as the vectors themselves, for D larger than their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nads_core.machinery.seeds import seeded
from nads_core.networks.architectures import SYMMETRIES

DEBIASINGS = ("shrink", "subtract", "none")
_BUFFERED_ROWS = 512
_GRAM_COLUMNS = 1024  # of the vectors, converted to float64 at a time


class DenseMoments:
    """Second moments as two D x D matrices in float64; memory does not depend on the number of networks.

    Args:
        dimension: D.
        device: where the sums live.
    """

    def __init__(self, dimension: int, device: torch.device | str = "cpu"):
        self.dimension, self.num_networks = dimension, 0
        self._seen = torch.zeros(dimension, dimension, dtype=torch.float64, device=device)
        self._noise = torch.zeros_like(self._seen)
        self._buffer: list[tuple[Tensor, Tensor]] = []

    def update(self, contributions: Tensor) -> None:
        """Add networks.

        Args:
            contributions: (B, J, D).
        """
        contributions = contributions.to(self._seen.device)
        capacity = max(1, _BUFFERED_ROWS // (contributions.shape[1] + 1))  # fixed, so sums don't depend on batch size
        while len(contributions):
            free = capacity - sum(len(means) for means, _ in self._buffer)
            self._buffer.append(_split(contributions[:free]))
            if len(contributions) >= free:
                self._flush()
            contributions = contributions[free:]

    def _flush(self) -> None:
        if self._buffer:
            means = torch.cat([means for means, _ in self._buffer]).double()
            spreads = torch.cat([spreads for _, spreads in self._buffer]).double()
            self._seen.addmm_(means.T, means)
            self._noise.addmm_(spreads.T, spreads)
            self.num_networks += len(means)
            self._buffer.clear()

    def empty(self) -> DenseMoments:
        """Return another accumulator of the same kind, without networks."""
        return DenseMoments(self.dimension, self._seen.device)

    def sums(self) -> tuple[Tensor, Tensor]:
        """Return the two (D, D) sums themselves, for adding up over processes in place."""
        self._flush()
        return self._seen, self._noise

    def merge(self, other: DenseMoments) -> None:
        """Add the networks of another accumulator, for example another worker's."""
        if other.dimension != self.dimension:
            raise ValueError(f"cannot merge moments of dimension {other.dimension} into {self.dimension}")
        self._flush()
        other._flush()
        self._seen += other._seen.to(self._seen.device)
        self._noise += other._noise.to(self._noise.device)
        self.num_networks += other.num_networks

    def state_dict(self) -> dict:
        """Return everything needed to go on exactly where this stands."""
        return {
            "seen": self._seen,
            "noise": self._noise,
            "num_networks": self.num_networks,
            "buffer": list(self._buffer),
        }

    def load_state_dict(self, state: dict) -> None:
        """Restore what `state_dict` returned."""
        self._seen.copy_(state["seen"])
        self._noise.copy_(state["noise"])
        self.num_networks = state["num_networks"]
        self._buffer = [(mean.to(self._seen.device), spread.to(self._seen.device)) for mean, spread in state["buffer"]]

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return (M, W), each (D, D), divided by the number of networks, not centred."""
        self._flush()
        if self.num_networks == 0:
            raise ValueError("no network has been added yet")
        return self._seen / self.num_networks, self._noise / self.num_networks


class GramMoments:
    """Second moments kept as vectors: 2 a network, for inputs with more pixels than that.

    The contributions of a network are averaged into two halves (an odd one is left out), whose difference tells W.

    Memory: `needed_bytes` says what N networks take, 2 N D numbers for the vectors, and for eigenpairs the Gram matrix
    of the 2 N vectors besides. No copy of the vectors is made on the way. R readouts of a network count as R networks.
    """

    def __init__(self, dimension: int, device: torch.device | str = "cpu"):
        self.dimension, self.device = dimension, torch.device(device)
        self._means: list[Tensor] = []
        self._spreads: list[Tensor] = []

    @staticmethod
    def needed_bytes(
        dimension: int, num_networks: int, num_directions: int = 0, dtype: torch.dtype = torch.float32
    ) -> int:
        """Return the bytes that ``num_networks`` networks take at most, with ``num_directions`` eigenvectors.

        2 N D numbers of ``dtype``, as many again for each direction, and five matrices (2 N)^2 in float64: the Gram
        matrix, its eigenvectors and what LAPACK needs for them.
        """
        vectors = 2 * num_networks
        return dtype.itemsize * (vectors + num_directions) * dimension + 5 * 8 * vectors**2

    @property
    def num_networks(self) -> int:
        """How many networks have been added."""
        return sum(len(means) for means in self._means)

    def update(self, contributions: Tensor) -> None:
        """Add networks: (B, J, D)."""
        contributions, half = contributions.to(self.device), contributions.shape[1] // 2
        if half == 0:
            self._means.append(contributions[:, 0])
            return
        first, second = contributions[:, :half].mean(1), contributions[:, half : 2 * half].mean(1)
        self._means.append((first + second) / 2)
        self._spreads.append((first - second) / 2)

    def empty(self) -> GramMoments:
        """Return another accumulator of the same kind, without networks."""
        return GramMoments(self.dimension, self.device)

    def merge(self, other: GramMoments) -> None:
        """Add the networks of another accumulator."""
        if other.dimension != self.dimension:
            raise ValueError(f"cannot merge moments of dimension {other.dimension} into {self.dimension}")
        self._means += [mean.to(self.device) for mean in other._means]
        self._spreads += [spread.to(self.device) for spread in other._spreads]

    def state_dict(self) -> dict:
        """Return everything needed to go on exactly where this stands."""
        return {"means": list(self._means), "spreads": list(self._spreads)}

    def load_state_dict(self, state: dict) -> None:
        """Restore what `state_dict` returned."""
        self._means = [mean.to(self.device) for mean in state["means"]]
        self._spreads = [spread.to(self.device) for spread in state["spreads"]]

    def vectors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the rows as they are kept: blocks whose rows together are those of `rows`, without copying them."""
        if not self._means:
            raise ValueError("no network has been added yet")
        return list(self._means), list(self._spreads)

    def rows(self) -> tuple[Tensor, Tensor]:
        """Return vectors (N, D) and (R, D) with M = means^T means / N and W = spreads^T spreads / N, copied."""
        means, spreads = self.vectors()
        means = torch.cat(means)
        return means, torch.cat(spreads) if spreads else means[:0]


def _split(contributions: Tensor) -> tuple[Tensor, Tensor]:
    """(B, J, D) -> means (B, D), and rows (B * J, D) whose sum of outer products is the noise of the means."""
    count, means = contributions.shape[1], contributions.mean(1)
    if count == 1:
        return means, means[:0]
    spreads = (contributions - means[:, None]) / (count * (count - 1)) ** 0.5
    return means, spreads.flatten(0, 1)


def require_debiasing(method: str) -> None:
    """Raise a ValueError unless `debias` knows the method."""
    if method not in DEBIASINGS:
        raise ValueError(f"unknown debiasing {method!r}: choose from {DEBIASINGS}")


def debias(seen: Tensor, noise: Tensor, method: str = "shrink", floor: float = 0.1) -> Tensor:
    """Estimate C = M - W, the second moment without the noise of finitely many inputs.

    ``"subtract"`` returns M - W: unbiased, best for the leading directions, but where C is small against W its error
    buries it and eigenvalues turn negative. ``"none"`` returns M: biased towards W, but every direction keeps a
    relative accuracy. ``"shrink"`` lies between the two: in the basis where W is the identity and M is diagonal, the
    eigenvalue 1 + r of M holds r, the ratio of signal to noise; it keeps max(r, floor) times W. So it subtracts where
    r exceeds the floor, and no eigenvalue is negative.

    Args:
        seen: M, (D, D).
        noise: W, (D, D).
        method: one of ``"shrink"``, ``"subtract"``, ``"none"``.
        floor: the smallest signal-to-noise ratio that is believed; below it C is taken as floor * W.

    Returns:
        (D, D) in float64; positive semi-definite for ``"shrink"`` and ``"none"``.

    Raises:
        ValueError: for an unknown method or a floor that is not positive.
    """
    require_debiasing(method)
    if not floor > 0:
        raise ValueError(f"floor must be positive, got {floor!r}")
    seen, noise = seen.double(), noise.double()
    scale = noise.diagonal().mean()
    if method == "none" or scale <= 1e-12 * seen.diagonal().mean():  # one contribution a network, or no noise at all
        return seen
    if method == "subtract":
        return seen - noise
    axes, whitener = _whitening(noise)
    ratios, rotation = torch.linalg.eigh(whitener.T @ seen @ whitener)
    axes = axes @ rotation
    return (axes * (ratios - 1).clamp(min=floor)) @ axes.T


def _whitening(noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return A and B with W = A A^T and B^T W B = I, the latter where W is not singular."""
    scale = noise.diagonal().mean()
    axes, failed = torch.linalg.cholesky_ex(noise)
    if not failed and axes.diagonal().min() > 1e-5 * scale.sqrt():
        return axes, torch.linalg.solve_triangular(axes, torch.eye(len(axes)).to(axes), upper=False).T
    variances, axes = torch.linalg.eigh(noise)  # slower, but few networks leave directions without any noise
    variances = variances.clamp(min=1e-13 * scale)
    return axes * variances.sqrt(), axes / variances.sqrt()


def leading_eigenpairs(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest eigenvalues, descending, and their unit eigenvectors as rows (count, D)."""
    values, vectors = torch.linalg.eigh(matrix)
    return values.flip(0)[:count], vectors.flip(1).T[:count]


def gram_eigenpairs(
    means: Tensor | Sequence[Tensor], spreads: Tensor | Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    """Return leading eigenpairs of M - W from its vectors, without forming a D x D matrix.

    Goes through the vectors a few columns at a time, so that no second copy of them is made.

    Args:
        means: (N, D) with M = means^T means / N; or blocks of its rows, as `GramMoments.vectors` returns them.
        spreads: (R, D) with W = spreads^T spreads / N; or blocks.
        count: how many; fewer come back if fewer eigenvalues are positive.

    Returns:
        Eigenvalues, descending, in float64, and unit eigenvectors as rows, in the means' type but at least float32.
    """
    means, spreads = ([blocks] if isinstance(blocks, Tensor) else list(blocks) for blocks in (means, spreads))
    blocks, num_means = means + spreads, sum(map(len, means))
    num_rows, dimension = sum(map(len, blocks)), blocks[0].shape[1]
    chunks = [slice(i, i + _GRAM_COLUMNS) for i in range(0, dimension, _GRAM_COLUMNS)]
    gram = torch.zeros(num_rows, num_rows, dtype=torch.float64, device=blocks[0].device)
    for columns in chunks:
        rows = torch.cat([block[:, columns] for block in blocks]).double()
        gram.addmm_(rows, rows.T)
    values, vectors = torch.linalg.eigh(gram)
    kept = values > 1e-10 * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    # rows = vectors sqrt(values) Q with orthonormal Q, so M - W = Q^T [sqrt V^T S V sqrt / N] Q
    half = vectors * values.sqrt()
    inner = (half[:num_means].T @ half[:num_means] - half[num_means:].T @ half[num_means:]) / num_means
    levels, rotation = leading_eigenpairs(inner, count)
    positive = levels > 1e-12 * levels[0]
    weights = rotation[positive] @ (vectors / values.sqrt()).T  # (directions, rows)
    kind = torch.promote_types(blocks[0].dtype, torch.float32)
    directions = torch.empty(len(weights), dimension, dtype=kind, device=gram.device)
    for columns in chunks:
        directions[:, columns] = weights @ torch.cat([block[:, columns] for block in blocks]).double()
    return levels[positive], directions


def leading_subspace(
    moments: DenseMoments | GramMoments, count: int, image_shape: tuple[int, int, int], symmetries: tuple[str, ...] = ()
) -> Tensor:
    """Return orthonormal rows (count, D) that span the leading eigenvectors of M - W, averaged over symmetries.

    On the dense side by a randomized SVD, in a tenth of the time of all eigenvectors.
    """
    if isinstance(moments, GramMoments):
        return gram_eigenpairs(*moments.vectors(), count)[1]
    seen, noise = moments.moments()
    matrix = symmetrize(seen - noise, image_shape, symmetries)
    with seeded(0, matrix.device):
        return torch.svd_lowrank(matrix, q=min(count + 10, len(matrix)), niter=6)[0][:, :count].T


def subspace_overlap(first: Tensor, second: Tensor) -> float:
    """Mean squared cosine of the principal angles between the spans of orthonormal rows (k, D): 1 for the same span."""
    return float((first.double() @ second.double().T).square().sum() / len(first))


def require_symmetries(image_shape: tuple[int, int, int], symmetries: tuple[str, ...]) -> None:
    """Raise a ValueError unless images of this shape have these symmetries."""
    unknown = set(symmetries) - set(SYMMETRIES)
    if unknown:
        raise ValueError(f"unknown symmetries {sorted(unknown)}: choose from {SYMMETRIES}")
    _, height, width = image_shape
    if "transpose" in symmetries and height != width:
        raise ValueError(f"a transposed image needs height = width, got {height} x {width}")


def symmetrize(matrix: Tensor, image_shape: tuple[int, int, int], symmetries: tuple[str, ...]) -> Tensor:
    """Average a (D, D) second moment over the group of image maps that ``symmetries`` generate.

    Networks that are equally likely before and after a map of the input have a second moment that commutes with it:
    the average has the same expectation and less noise.

    Args:
        matrix: (D, D), D = C * H * W.
        image_shape: (C, H, W).
        symmetries: of "flip_rows", "flip_columns", "transpose".
    """
    require_symmetries(image_shape, symmetries)
    channels, height, width = image_shape
    symmetries = set(symmetries)
    if "transpose" in symmetries and len(symmetries) == 2:  # conjugating one flip by the transpose gives the other
        symmetries = set(SYMMETRIES)
    tensor = matrix.reshape(channels, height, width, channels, height, width)
    if "flip_rows" in symmetries:
        tensor = (tensor + tensor.flip(1, 4)) / 2
    if "flip_columns" in symmetries:
        tensor = (tensor + tensor.flip(2, 5)) / 2
    if "transpose" in symmetries:
        tensor = (tensor + tensor.permute(0, 2, 1, 3, 5, 4)) / 2
    return tensor.reshape(matrix.shape)
