import itertools
import math
from functools import partial

import convergence
import pytest
import torch
from convergence import MAPS
from hypothesis import given
from hypothesis import strategies as st
from nads_core.directions.covariance import DEBIASINGS, FLOOR, debias
from torch.testing import assert_close

from nads_core.directions import covariance
from nads_core.directions.moments import DenseMoments, GramMoments, HalfSamples
from nads_core.directions.symmetry import symmetrize, symmetry_types

SEEDS = st.integers(0, 2**32 - 1)


normal = partial(convergence.normal, dtype=torch.float64)


def rows(moments):
    """Return vectors (N, D) and (R, D) with M = means^T means / N and W = spreads^T spreads / N."""
    means, spreads = moments.vectors()
    return torch.cat(means), torch.cat(spreads) if spreads else means[0][:0]


def products(moments):
    """Return M and W."""
    if isinstance(moments, DenseMoments):
        return moments.moments()
    means, spreads = (vectors.T @ vectors / moments.num_networks for vectors in rows(moments))
    return means, spreads


def definite(dimension, seed):
    rows = normal(3 * dimension, dimension, seed=seed)
    return rows.T @ rows / len(rows)


def stacked(contributions):
    """M and W from all vectors at once, by the formulas of the module's docstring."""
    networks, count, dimension = contributions.shape
    seen, noise = torch.zeros(2, dimension, dimension).double()
    half = count // 2
    for g in contributions.double():
        mean = sum(g) / count
        seen += torch.outer(mean, mean)
        if count > 1:
            difference = sum(g[:half]) / half - sum(g[half:]) / (count - half)
            noise += torch.outer(difference, difference) * half * (count - half) / count**2
    return seen / networks, noise / networks


def added(moments, contributions, cuts):
    ends = sorted({0, *(min(cut, len(contributions)) for cut in cuts), len(contributions)})
    for start, stop in itertools.pairwise(ends):
        moments.update(contributions[start:stop])
    return moments


def close(actual, expected, tolerance=1e-10):
    scale = float(expected.abs().max())
    assert_close(actual, expected, rtol=0, atol=tolerance * scale)


# --- naive twin: streaming against stacked


@pytest.mark.parametrize("kind", [DenseMoments, GramMoments])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_streaming_equals_stacked(count, kind):
    contributions = normal(300, count, 7)
    first = HalfSamples()
    moments = added(kind(7), contributions, [1, 50, 51, 290])
    assert moments.num_networks == 300
    seen, noise = stacked(contributions)
    for actual, expected in zip(products(moments), (seen, noise), strict=True):
        assert_close(actual, expected, rtol=0, atol=1e-10)
    first.update(0, 300, contributions, 1)
    x, y = first.halves()[:, 0].double().unbind(1)
    if count > 1:  # their noise is independent, and equal
        close((x.T @ y + y.T @ x) / 600, seen - noise, 1e-5)
        assert float(x.var()) == pytest.approx(float(y.var()), rel=0.1)


# --- properties of the accumulators


@given(cuts=st.lists(st.integers(0, 700), max_size=6), count=st.sampled_from([1, 2, 5]), seed=SEEDS)
def test_dense_moments_do_not_depend_on_the_partition(cuts, count, seed):
    contributions = normal(700, count, 5, seed=seed, dtype=torch.float32)
    whole, parts = (added(DenseMoments(5), contributions, ends).moments() for ends in ([], cuts))
    assert all(map(torch.equal, whole, parts))


@given(cut=st.integers(1, 599), kind=st.sampled_from([DenseMoments, GramMoments]), seed=SEEDS)
def test_a_restored_state_goes_on_bitwise(cut, kind, seed):
    contributions = normal(600, 2, 5, seed=seed, dtype=torch.float32)
    first = kind(5)
    second = kind(5)
    first.update(contributions[:cut])
    second.load_state_dict(first.state_dict())
    for moments in (first, second):
        moments.update(contributions[cut:])
    assert all(map(torch.equal, products(first), products(second)))
    assert first.num_networks == second.num_networks == 600


@given(cut=st.integers(1, 299), kind=st.sampled_from([DenseMoments, GramMoments]), seed=SEEDS)
def test_merged_workers_equal_one(cut, kind, seed):
    contributions = normal(300, 2, 5, seed=seed)
    parts = contributions, contributions[:cut], contributions[cut:]
    whole, one, other = (added(kind(5), part, []) for part in parts)
    assert (one.num_networks, other.num_networks) == (cut, 300 - cut)  # also those in a buffer
    one.merge(other)
    assert one.num_networks == 300
    for a, b in zip(products(one), products(whole), strict=True):
        close(a, b)


def test_a_transposed_image_is_square():
    with pytest.raises(ValueError, match="got 2 x 5"):
        symmetrize(torch.eye(10), (1, 2, 5), ("transpose",))


# --- debiasing


def test_shrink_keeps_the_floor_where_noise_dominates():
    noise = definite(5, 3)
    close(debias(noise, noise), FLOOR * noise)
    close(debias(0.7 * noise, noise), FLOOR * noise)
    close(debias(5 * noise, noise), 4 * noise)


@pytest.mark.parametrize("least", [0.0, 1e-12])
def test_shrink_with_hardly_any_noise_outside_of_a_subspace(least):
    noise = torch.diag(torch.tensor([1.0, 2.0, least, least]).double())
    rotation = convergence.rotation(4, 5, torch.float64)
    levels = torch.diag(torch.tensor([3.0, 2.5, 0.7, 0.3]).double())
    expected = torch.diag(torch.tensor([2.0, 0.5, 0.7, 0.3]).double())
    moved = debias(rotation @ levels @ rotation.T, rotation @ noise @ rotation.T, "shrink")
    close(moved, rotation @ expected @ rotation.T, 1e-6)


def test_shrink_differs_from_subtract_by_the_noise_where_few_networks_give_singular_noise():
    """The strongest direction has 1e6 times the noise: ratios to no noise take all digits."""
    signal = normal(40, 60) * torch.cat([torch.tensor([1e3]), torch.ones(59)]).double()
    halves = signal[:, None] + 0.1 * normal(40, 2, 60, seed=1)
    mean = halves.mean(1)
    spread = (halves[:, 0] - halves[:, 1]) / 2
    second = mean.T @ mean / 40
    noise = spread.T @ spread / 40  # of rank 40 of 60
    difference = debias(second, noise) - (second - noise)
    norm = partial(torch.linalg.matrix_norm, ord=2)
    assert norm(difference) < 1.1 * norm(noise)


@pytest.mark.parametrize("method", DEBIASINGS)
def test_without_noise_nothing_is_subtracted(method):
    seen = definite(4, 1)
    assert torch.equal(debias(seen, torch.zeros(4, 4), method), seen)


# --- eigenpairs


# --- symmetries


SUBSETS = [subset for count in range(4) for subset in itertools.combinations(MAPS, count)]
SHAPE = (2, 4, 4)


def moved(matrix, name, shape=SHAPE):
    """P M P^T for the permutation P of the pixels that a map makes."""
    order = MAPS[name](torch.arange(matrix.shape[0]).view(shape)).flatten()
    return matrix[order][:, order]


def generated(subset, shape):
    """All permutations of the pixels that the maps generate."""
    group = [torch.arange(math.prod(shape)).view(shape)]
    for pixels in group:  # which grows
        for image in (MAPS[name](pixels) for name in subset):
            if not any(torch.equal(image, known) for known in group):
                group.append(image)
    return [pixels.flatten().tolist() for pixels in group]


@pytest.mark.parametrize(
    ("subset", "shape"),
    [*((subset, SHAPE) for subset in SUBSETS), (("flip_rows", "flip_columns"), (1, 2, 5))],
    ids=str,
)
def test_symmetrize_is_the_average_over_the_group(subset, shape):
    matrix = definite(math.prod(shape), 1)
    group = generated(subset, shape)
    assert len(group) == {0: 1, 1: 2, 2: 8 if "transpose" in subset else 4, 3: 8}[len(subset)]
    expected = sum(matrix[order][:, order] for order in group) / len(group)
    for names in (subset, subset + subset[-1:], subset[::-1]):
        close(symmetrize(matrix, shape, names), expected)


def test_channels_that_are_alike_share_one_block():
    matrix = definite(32, 3)
    blocks = matrix.view(2, 16, 2, 16)
    exchangeable = torch.block_diag(*[(blocks[0, :, 0] + blocks[1, :, 1]) / 2] * 2)
    close(symmetrize(matrix, SHAPE, ("channels",)), exchangeable)
    both = (exchangeable + moved(exchangeable, "transpose")) / 2
    close(symmetrize(matrix, SHAPE, ("channels", "transpose")), both)


@pytest.mark.parametrize(
    "subset", [*SUBSETS, ("channels",), ("flip_rows", "transpose", "channels")], ids=str
)
@pytest.mark.parametrize("shape", [SHAPE, (3, 5, 5), (1, 1, 1)], ids=str)
def test_types_are_an_orthonormal_basis_without_mixed_blocks(subset, shape):
    kinds = symmetry_types(shape, subset)
    bases = torch.cat([basis.to_dense() for kind in kinds for basis in kind.bases])
    size = math.prod(shape)
    close(bases @ bases.T, torch.eye(size, dtype=bases.dtype))
    assert len(bases) == size
    average = symmetrize(definite(size, 4), shape, subset)
    blocks = torch.block_diag(*[kind.block(average) for kind in kinds for _ in kind.bases])
    close(bases @ average @ bases.T, blocks)  # partners hold the same block
    names = [name for kind in kinds for name in kind.names]
    assert len(set(names)) == len(names)


def test_names_say_what_a_map_does():
    images = {"s": 1, "+": 1, "a": -1, "-": -1}
    for kind in symmetry_types((1, 6, 6), ("flip_rows", "transpose")):
        for partner, (name, basis) in enumerate(zip(kind.names, kind.bases, strict=True)):
            rows = basis.to_dense().view(-1, 6, 6)
            close(rows.flip(1), images[name[0]] * rows)
            close(rows.flip(2), images[name[1]] * rows)
            if len(name) == 3:
                close(rows.mT, images[name[2]] * rows)
            else:
                close(rows.mT, kind.bases[1 - partner].to_dense().view(-1, 6, 6))


def test_an_unknown_method_and_spans_of_two_sizes_are_errors():
    identity = torch.eye(3)
    with pytest.raises(ValueError, match="shrnk"):
        debias(identity, identity, "shrnk")
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        covariance.subspace_overlap(identity[:2], identity)
