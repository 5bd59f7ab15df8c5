"""Outcomes of small cases: a second moment as the plain method has it, an error that names its
cause, or a known value.

Each is a dictionary for a results file, whose ``as_expected`` says whether the case is as it should
be.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nads_book.theory.reference import average_gradient, mixed_derivative
from nads_core.directions import second_moment

Factory = Callable[[], nn.Module]
Vector = Callable[[nn.Module, Tensor], Tensor]  # (D,) of a network and its inputs (K, C, H, W)

SHAPE, NETWORKS, INPUTS = (1, 8, 8), 2_000, 16
ERRORS = 4  # standard errors within which a ratio is 1


def plain_vectors(
    factory: Factory,
    image_shape: tuple[int, ...],
    count: int,
    seed: int,
    num_inputs: int,
    vector: Vector,
) -> Tensor:
    """Return two vectors (D,) of each of several newly built networks, from other inputs each:
    (count, 2, D) in float64.

    The inputs have the type of the first weight, if that is a real number.
    """
    vectors = []
    for number in range(count):
        torch.manual_seed(seed + number)
        network = factory().eval()
        dtype = next(network.parameters()).dtype
        inputs = torch.randn(
            2, num_inputs, *image_shape, dtype=dtype if dtype.is_floating_point else torch.float32
        )
        halves = []
        for half in inputs:
            torch.manual_seed(seed + number)  # both have one probe
            halves.append(vector(network, half).double())
        vectors.append(torch.stack(halves))
    return torch.stack(vectors)


def along_inputs(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the gradient of the first output, averaged over inputs and their opposites."""
    return average_gradient(
        lambda x: network(x).flatten(1)[:, 0],  # type: ignore[arg-type]
        torch.cat([inputs, -inputs]),
    )


def along_weights(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return how this gradient, of a network of one output, moves with the weights that are
    trained.

    Each part of a complex weight's probe has variance 1, as that of a real weight.
    """
    probe = {
        name: torch.randn_like(weight) * (1 + weight.is_complex()) ** 0.5
        for name, weight in network.named_parameters()
        if weight.requires_grad
    }
    return mixed_derivative(network, torch.cat([inputs, -inputs]), probe)


def trace(factory: Factory | str, **options: Any) -> float:
    """Return the trace of the second moment by the library."""
    moment = second_moment(factory, SHAPE, NETWORKS, progress=False, **options)
    return float(moment.shares().diagonal(dim1=1, dim2=2).sum())


def standard_error(samples: Tensor, count: int) -> float:
    """Return that of the difference of the means of samples (N,) and of ``count`` others."""
    return float(samples.std()) * math.sqrt(1 / len(samples) + 1 / count)


def z_score(value: float, samples: Tensor, count: int) -> float:
    """Return by how many standard errors a mean of ``count`` networks differs from that of samples
    (N,); without spread, 0 if both are equal up to rounding in float32, and infinity otherwise.
    """
    mean, error = float(samples.mean()), standard_error(samples, count)
    if error:
        return (value - mean) / error
    return 0.0 if math.isclose(value, mean, rel_tol=1e-5, abs_tol=1e-12) else math.inf


def right(factory: Factory, vector: Vector = along_inputs, **options: Any) -> dict[str, Any]:
    """Expect the trace of the plain method, which draws as many other networks."""
    value = trace(factory, **options)
    vectors = plain_vectors(factory, SHAPE, NETWORKS, 10_000, INPUTS // 4, vector)
    squares = vectors.prod(1).sum(1)  # without the noise of the inputs
    mean = float(squares.mean())
    return {
        "networks": NETWORKS,
        "ratio": value / mean,
        "standard_error": standard_error(squares, NETWORKS) / mean,
        "as_expected": abs(z_score(value, squares, NETWORKS)) < ERRORS,
    }


def message(
    word: str, function: Callable[..., object], *arguments: object, **options: object
) -> dict[str, Any]:
    """Expect a word in the message of an error, or "accepted": no error."""
    text = "accepted"
    try:
        function(*arguments, **options)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    expected = text == word if word == "accepted" else word in text
    return {"message": text, "word": word, "as_expected": expected}


def equal(value: object, expected: object) -> dict[str, Any]:
    """Expect a value."""
    return {"value": value, "expected": expected, "as_expected": value == expected}


def same_with_two_threads(factory: Factory) -> dict[str, Any]:
    """Expect the trace of one thread, bit for bit."""
    traces = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        traces.append(trace(factory))
    return equal(*traces)
