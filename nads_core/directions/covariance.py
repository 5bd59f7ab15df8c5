"""The covariance of the networks' vectors from its moments: noise taken away, eigenpairs, and
leading subspaces.

M is the second moment of the means and W its noise, as in `moments`; both are uncentred.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nads_core.directions.moments import GramMoments, Moments
from nads_core.directions.symmetry import symmetrize
from nads_core.runtime.arguments import Shape, require_choice
from nads_core.runtime.seeds import seeded

DEBIASINGS = ("shrink", "subtract", "none")
FLOOR = 0.1  # signal-to-noise ratio below which "shrink" treats signal as noise
_LEAST_NOISE = 1e-6  # of the mean noise
_GRAM_COLUMNS = 1024  # of the vectors, converted to float64 at a time


def debias(second_moment: Tensor, noise_moment: Tensor, method: str = "shrink") -> Tensor:
    """Estimate C = M - W, the second moment without the noise of finitely many inputs.

    ``"subtract"`` returns M - W: unbiased, best for the leading directions, but where C is small
    against W its error buries it and eigenvalues turn negative. ``"none"`` returns M: biased
    towards W, but every direction keeps a relative accuracy. ``"shrink"`` lies between the two: in
    the basis where W is the identity and M is diagonal, the eigenvalue 1 + r of M holds r, the
    ratio of signal to noise; it keeps max(r, `FLOOR`) times W. So it subtracts where r exceeds the
    floor, and no eigenvalue is negative.

    Args:
        second_moment: M, (D, D).
        noise_moment: W, (D, D).
        method: one of ``"shrink"``, ``"subtract"``, ``"none"``.

    Returns:
        (D, D) in float64; positive semi-definite for ``"shrink"`` and ``"none"``.

    Raises:
        ValueError: for an unknown method.
    """
    require_choice("debiasing", method, DEBIASINGS)
    second_moment, noise_moment = second_moment.double(), noise_moment.double()
    scale = noise_moment.diagonal().mean()
    # As with one contribution per network
    noiseless = scale <= 1e-12 * second_moment.diagonal().mean()
    if method == "none" or noiseless:
        return second_moment
    if method == "subtract":
        return second_moment - noise_moment
    axes, whitener = _whitening(noise_moment)  # (D, D) each
    # (D,): 1 + r; (D, D)
    ratios, rotation = torch.linalg.eigh(whitener.T @ second_moment @ whitener)
    axes = axes @ rotation  # columns a with W = sum a a^T and M = sum (1 + r) a a^T
    return (axes * (ratios - 1).clamp(min=FLOOR)) @ axes.T


def _whitening(noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return A and B with W = A A^T and B^T W B = I, up to noise below a millionth of the mean.

    Less noise than that would give ratios of signal to noise beyond the 16 digits of float64, in
    which those of all other directions are lost.
    """
    least = _LEAST_NOISE * noise.diagonal().mean()
    axes, failed = torch.linalg.cholesky_ex(noise)
    if not failed and axes.diagonal().min().square() > least:
        return axes, torch.linalg.solve_triangular(
            axes, torch.eye(len(axes)).to(axes), upper=False
        ).T
    # slower; needed where so few networks leave directions without noise
    variances, axes = torch.linalg.eigh(noise)
    variances = variances.clamp(min=least)
    return axes * variances.sqrt(), axes / variances.sqrt()


def leading_eigenpairs(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest eigenvalues, descending, and their unit eigenvectors as rows
    (count, D).
    """
    values, vectors = torch.linalg.eigh(matrix)  # ascending, eigenvectors as columns
    return values.flip(0)[:count], vectors.flip(1).T[:count]


def orthogonal_complement(rows: Tensor) -> Tensor:
    """Return orthonormal rows (D - n, D) that complete orthonormal rows (n, D) to a basis."""
    return torch.linalg.qr(rows.T, mode="complete").Q.T[len(rows) :]


def gram_eigenpairs(
    means: Sequence[Tensor], spreads: Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    """Return leading eigenpairs of M - W from its vectors, without forming a D x D matrix.

    Goes through the vectors a few columns at a time, so that no second copy of them is made.

    Args:
        means: blocks of the rows of (N, D) with M = means^T means / N (`GramMoments.vectors`).
        spreads: blocks of the rows of (R, D) with W = spreads^T spreads / N.
        count: largest number of eigenpairs; those with a positive eigenvalue are returned.

    Returns:
        Eigenvalues, descending, in float64, and unit eigenvectors as rows, in the means' type but
        at least float32.
    """
    blocks, num_means = [*means, *spreads], sum(map(len, means))  # X, below each other (N + R, D)
    num_rows, dimension = sum(map(len, blocks)), blocks[0].shape[1]
    chunks = [slice(i, i + _GRAM_COLUMNS) for i in range(0, dimension, _GRAM_COLUMNS)]
    gram = torch.zeros(num_rows, num_rows, dtype=torch.float64, device=blocks[0].device)  # X X^T
    for columns in chunks:
        rows = torch.cat([block[:, columns] for block in blocks]).double()  # (N + R, 1024)
        gram.addmm_(rows, rows.T)
    values, vectors = torch.linalg.eigh(gram)
    nonzero = values > 1e-10 * values[-1]
    values, vectors = values[nonzero], vectors[:, nonzero]  # (K,), (N + R, K), K the rank of X
    # X = V sqrt(values) Q with orthonormal rows Q (K, D). M - W = X^T S X / N, where S is 1 for a
    # mean and -1 for a spread, so M - W = Q^T [sqrt(values) V^T S V sqrt(values) / N] Q: its
    # eigenvectors are the bracket's, times Q.
    half = vectors * values.sqrt()  # (N + R, K)
    inner = (
        half[:num_means].T @ half[:num_means] - half[num_means:].T @ half[num_means:]
    ) / num_means  # (K, K)
    levels, rotation = leading_eigenpairs(inner, count)
    positive = levels > 1e-12 * levels[0]
    # (n, N + R): the directions are weights X
    weights = rotation[positive] @ (vectors / values.sqrt()).T
    kind = torch.promote_types(blocks[0].dtype, torch.float32)
    directions = torch.empty(len(weights), dimension, dtype=kind, device=gram.device)
    for columns in chunks:
        rows = torch.cat([block[:, columns] for block in blocks]).double()
        directions[:, columns] = weights @ rows
    return levels[positive], directions


def leading_subspace(
    moments: Moments, count: int, image_shape: Shape, symmetries: tuple[str, ...] = ()
) -> Tensor:
    """Return orthonormal rows (count, D) that span the leading eigenvectors of M - W, averaged over
    symmetries.

    On the Gram side there are fewer rows where M - W has fewer positive eigenvalues, as with few
    networks.

    On the dense side by a randomised SVD, in a tenth of the time of all eigenvectors. It orders by
    magnitude, and the leading eigenvalues of M - W are positive.
    """
    if isinstance(moments, GramMoments):
        return gram_eigenpairs(*moments.vectors(), count)[1]
    second_moment, noise_moment = moments.moments()
    matrix = symmetrize(second_moment - noise_moment, image_shape, symmetries)  # (D, D)
    with seeded(0, matrix.device):  # the same random start on every call
        return torch.svd_lowrank(matrix, q=min(count + 10, len(matrix)), niter=6)[0][:, :count].T


def subspace_overlap(first: Tensor, second: Tensor) -> float:
    """Mean squared cosine of the principal angles between the spans of orthonormal rows A, B (k,
    D), ||A B^T||^2 / k: 1 for the same span.

    Raises:
        ValueError: if the shapes differ.
    """
    if first.shape != second.shape:
        shapes = f"{tuple(first.shape)} and {tuple(second.shape)}"
        raise ValueError(f"the shapes {shapes} differ: compare equal numbers of directions")
    return float((first.double() @ second.double().T).square().sum() / len(first))
