"""The estimators: which vectors in input space one network contributes to the second moment.

An estimator is a frozen dataclass with one method, ``vectors``, which turns a network into J
contributions for each of R readouts. The contributions of one network are independent given the
network and share one expectation, the network's vector g: the product of two of them estimates
g g^T without the noise of the inputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from nads_core.networks.network import Network
from nads_core.runtime.arguments import make_plain, require_integers, require_positive

NUM_INPUTS = 16  # Gaussian inputs per network: two contributions, each of four opposite pairs
DEFAULT_READOUTS = 8
_ARMS = 256  # pixels whose dipoles are evaluated at once


class Estimator(ABC):
    """Vectors that a network contributes: inherit from it for an estimator of your own.

    The ``repr`` stands for the estimator in a checkpoint, which can be resumed only with the same
    one: it has to name everything that determines the vectors, as that of a dataclass does.
    """

    readouts: int | Literal["auto"] = 1  # last layers per network, each of which counts as one
    antithetic: bool = False  # whether inputs come in opposite pairs
    num_inputs: int = 1  # at which a network is evaluated at once

    @abstractmethod
    def vectors(self, network: Network) -> Tensor:
        """Return (..., J, R, D): J contributions for each of R readouts of a network.

        J is 2, or 1 where a single one is the network's vector itself. For a stack of networks on a
        GPU all tensors have one more dimension in front.
        """


def require_estimator(estimator: Estimator) -> Estimator:
    """Return an estimator; raise a TypeError for anything else, or one that has no description."""
    if not isinstance(estimator, Estimator):
        hint = ": add ()" if isinstance(estimator, type) else ""
        raise TypeError(f"expected an estimator, SmoothedGradient(), got {estimator!r}{hint}")
    name, wanted = type(estimator).__qualname__, estimator.readouts
    if type(estimator).__repr__ is object.__repr__:
        remedy = "make it a frozen dataclass, or write a __repr__ that names all that matters"
        raise TypeError(f"a checkpoint cannot recognise {name}: {remedy}")
    if wanted != "auto":
        require_integers(readouts=wanted)
    elif "readouts" not in getattr(estimator, "__dataclass_fields__", {}):
        remedy = "make it a frozen dataclass with a field readouts, or give a number"
        raise TypeError(f"the number of readouts of {name} is 'auto', but has no place: {remedy}")
    return estimator


@dataclass(frozen=True)
class PointGradient(Estimator):
    """The input gradient at one random point, as the paper's text has it (section 3.1).

    g = grad_x f_theta(x), x ~ N(0, input_std^2 I), one x a network.
    """

    input_std: float = 1.0  # of the random point, in units of the input

    def __post_init__(self) -> None:
        require_positive(input_std=self.input_std)
        make_plain(self)

    def vectors(self, network: Network) -> Tensor:
        """Return (..., 1, 1, D)."""
        return network.input_gradients(network.inputs(1, self.input_std)).transpose(-3, -2)


@dataclass(frozen=True)
class _OverInputs(Estimator):
    """An average over Gaussian inputs, which come in opposite pairs (x, -x) if ``antithetic``."""

    num_inputs: int = NUM_INPUTS  # per network
    input_std: float = 1.0  # of the inputs, in their units; at x = 0 ReLUs have no information
    antithetic: bool = True  # draw inputs in pairs (x, -x)

    def __post_init__(self) -> None:
        require_positive(input_std=self.input_std)
        require_integers(num_inputs=self.num_inputs)
        if self.antithetic and self.num_inputs % 2:
            raise ValueError(
                f"num_inputs must be an even integer when antithetic, got {self.num_inputs!r}"
            )
        make_plain(self)

    def _means(self, gradients: Tensor) -> Tensor:
        """Return the means over two halves of the inputs, or over a single input or pair: (..., R,
        K, D) -> (..., J, R, D).
        """
        pair = 1 + self.antithetic
        half = self.num_inputs // pair // 2 * pair  # opposite inputs stay together
        halves = (gradients[..., :half, :], gradients[..., half:, :])
        return torch.stack([part.mean(-2) for part in halves if part.shape[-2]], dim=-3)


@dataclass(frozen=True)
class SmoothedGradient(_OverInputs):
    """The input gradient averaged over Gaussian inputs, for one network at a time.

    g = E_x grad_x f_theta(x), x ~ N(0, input_std^2 I), estimated from ``num_inputs`` inputs. Its
    second moment over theta is the mixed derivative of the network's prior kernel, E d/dx d/dx'
    K(x, x'). Inputs come in opposite pairs (x, -x), which cancels most of the noise that ReLU gates
    add.
    """

    # Orthogonal last layers per network, each of which counts as a network. "auto": 8 where f is
    # linear in a last layer of at least 8 features that is drawn around 0, else 1
    readouts: int | Literal["auto"] = 1

    def __post_init__(self) -> None:
        if self.readouts != "auto":
            require_integers(readouts=self.readouts)
        super().__post_init__()

    def vectors(self, network: Network) -> Tensor:
        """Return (..., J, R, D)."""
        assert isinstance(self.readouts, int)
        images = network.inputs(self.num_inputs, self.input_std, self.antithetic)
        return self._means(network.input_gradients(images, self.readouts))


@dataclass(frozen=True)
class MixedDerivative(_OverInputs):
    """How the input gradient moves with the weights: right singular vectors of d/dtheta d/dx f
    (Lemma 2, eq. 5).

    g = grad_x (r^T grad_theta f_theta(x)) with one probe r ~ N(0, I) a network, averaged over
    Gaussian inputs x as in `SmoothedGradient`. Over the probes, the second moment of g is E
    (d_theta d_x f)^T (d_theta d_x f). With ``num_inputs=1, antithetic=False`` it is taken at one
    random point, without smoothing.
    """

    def vectors(self, network: Network) -> Tensor:
        """Return (..., J, 1, D)."""
        images = network.inputs(self.num_inputs, self.input_std, self.antithetic)
        return self._means(network.mixed_derivatives(images))


@dataclass(frozen=True)
class Dipole(Estimator):
    """Finite differences along every pixel at one random point: the discriminative dipole of
    section 3.

    g[i] = (f(x + step e_i) - f(x - step e_i)) / (2 step), x ~ N(0, input_std^2 I), as the authors
    computed their published directions, with step 100. It takes 2 D evaluations per network.
    """

    step: float = 100.0  # length of the dipole's arm, in units of the input
    input_std: float = 1.0  # of the random point

    def __post_init__(self) -> None:
        require_positive(step=self.step, input_std=self.input_std)
        make_plain(self)

    def vectors(self, network: Network) -> Tensor:
        """Return (..., 1, 1, D)."""
        centre = network.inputs(1, self.input_std)  # (..., 1, *image_shape)
        shape = network.networks.image_shape
        size = math.prod(shape)
        among_inputs = -len(shape) - 1
        slopes = []
        for pixels in torch.arange(size, device=centre.device).split(_ARMS):
            arms = self.step * one_hot(pixels, size).to(centre).view(-1, *shape)  # (P, ...)
            ends = torch.cat([centre + arms, centre - arms], among_inputs)  # (..., 2 P, ...)
            above, below = network.outputs(ends).chunk(2, dim=-1)  # (..., P) each
            slopes.append((above - below) / (2 * self.step))
        return torch.cat(slopes, -1)[..., None, None, :]
