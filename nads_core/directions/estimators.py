"""The estimators: which vectors in input space one drawn network contributes to the second moment.

An estimator is a frozen dataclass with two methods. ``draw`` draws everything random that a block
of networks needs; ``contributions`` turns it into vectors of shape (B, J, D). The J contributions
of one network are independent given the network and share one expectation: their mean is the
network's vector, their spread estimates its noise. What else `Estimator` asks, what it costs above
all, has a default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.utils._pytree import register_dataclass, tree_map, tree_map_only

from nads_core.directions.moments import split_halves
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.modules import State
from nads_core.runtime.arguments import make_plain, require_integers, require_positive

NUM_INPUTS = (
    16  # Gaussian inputs per network: two contributions, each the mean of four opposite pairs
)
_INPUTS, _PROBES, _READOUTS = 1, 2, 3  # random streams, see `Ensemble.randn`


@dataclass(frozen=True)
class Draw:
    """B networks with their inputs, which `Estimator.draw` returns; its networks can be sliced and
    joined.

    Args:
        state: weights, name -> ``(B, *shape)``, as `Ensemble.draw` returns them.
        inputs: (B, K, C, H, W).
        probes: directions in weight space, name -> ``(B, *shape)``; `MixedDerivative` alone has
            them.
        readouts: other last layers of each network, (B, R, F).
    """

    state: State
    inputs: Tensor
    probes: State | None = None
    readouts: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice) -> Draw:
        return tree_map_only(Tensor, lambda tensor: tensor[rows], self)

    def thin(self) -> Draw:
        """Return the same networks with their first pair of inputs and their first readout."""
        readouts = None if self.readouts is None else self.readouts[:, :1]
        return replace(self, inputs=self.inputs[:, :2], readouts=readouts)

    @staticmethod
    def cat(draws: Sequence[Draw]) -> Draw:
        """Join the networks of several draws."""
        if len(draws) == 1:
            return draws[0]
        return tree_map(lambda *tensors: None if tensors[0] is None else torch.cat(tensors), *draws)


register_dataclass(Draw)  # so that functions of trees go through its tensors


@dataclass(frozen=True)
class Passes:
    """How often an estimator passes through one network, counted for one input at a time.

    Args:
        forward: evaluations of f.
        backward: passes from an output to the input; readouts share a forward pass, and each has
            its own backward pass.
        mixed: passes to the weights and on to the input (`Ensemble.mixed_derivatives`), beyond the
            forward pass.
    """

    forward: int
    backward: int = 0
    mixed: int = 0


class Estimator(ABC):
    """Vectors that a network contributes, and their cost: inherit from it for an estimator of your
    own.

    ``draw`` and ``contributions`` have to be written. All other members describe costs and memory;
    by default those of one input gradient per network. The ``repr`` stands for the estimator in a
    checkpoint, which can be resumed only with the same one: it has to name everything that
    determines the vectors, as that of a dataclass does. Random streams 0 to 3 are taken (`randn`).
    """

    @abstractmethod
    def draw(self, ensemble: Ensemble, block: int) -> Draw:
        """Draw the weights and inputs of one block of networks."""

    @abstractmethod
    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        """Return (B * readouts, J, D): J contributions per network, which must be independent given
        the network.

        All readouts of one network stand together. A check of the first networks passes draws with
        two inputs and one readout per network (`Draw.thin`).
        """

    @property
    def readouts(self) -> int:
        """Number of networks that a drawn one counts as, which differ in their last layer; 1 by
        default.
        """
        return 1

    @property
    def num_contributions(self) -> int:
        """J. The spread of at least two estimates the noise, so that `compute_nads` can remove it;
        1 by default.
        """
        return 1

    @property
    def has_input_noise(self) -> bool:
        """Whether a contribution is an average over too few inputs; False by default, where it is
        the network's vector itself.
        """
        return False

    def passes(self, dimension: int) -> Passes:
        """Count the passes through one network with D = ``dimension`` inputs, all contributions
        together.

        By default one forward, and one backward for each readout.
        """
        return Passes(forward=1, backward=self.readouts)


def require_estimator(estimator: Estimator) -> Estimator:
    """Return an estimator; raise a TypeError for anything else, or one that has no description."""
    if not isinstance(estimator, Estimator):
        expected = "an nads_core.directions.Estimator such as SmoothedGradient()"
        raise TypeError(
            f"expected {expected}, got {estimator!r}" + ": add ()" * isinstance(estimator, type)
        )
    if type(estimator).__repr__ is object.__repr__:
        remedy = "make it a frozen dataclass, or write a __repr__ that names all that matters"
        raise TypeError(f"a checkpoint cannot recognise {type(estimator).__qualname__}: {remedy}")
    return estimator


class _AtOnePoint(Estimator):
    """An estimator with one random point x ~ N(0, input_std^2 I) for each network."""

    input_std: float

    def __post_init__(self) -> None:
        require_positive(input_std=self.input_std)
        make_plain(self)

    def draw(self, ensemble: Ensemble, block: int) -> Draw:
        """Draw the weights and the point of each network of one block."""
        return Draw(
            ensemble.draw(block),
            self.input_std * ensemble.randn(block, _INPUTS, 1, *ensemble.image_shape),
        )


@dataclass(frozen=True)
class PointGradient(_AtOnePoint):
    """The input gradient at one random point, as the paper's text has it (section 3.1).

    g = grad_x f_theta(x), x ~ N(0, input_std^2 I), one x a network.
    """

    input_std: float = 1.0  # of the random point, in units of the input

    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        """Return (B, 1, D)."""
        return ensemble.input_gradients(draw.state, draw.inputs).flatten(2)


@dataclass(frozen=True)
class _OverInputs(Estimator):
    """An average over Gaussian inputs, which come in opposite pairs (x, -x) if ``antithetic``."""

    num_inputs: int = NUM_INPUTS  # passes per network
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

    @property
    def num_contributions(self) -> int:
        """J: two means over halves of the inputs, or 1 for a single input or pair."""
        return min(2, self.num_inputs // (1 + self.antithetic))

    @property
    def has_input_noise(self) -> bool:
        """True, as the inputs are finitely many."""
        return True

    def _draw_inputs(self, ensemble: Ensemble, block: int) -> Tensor:
        count = self.num_inputs // (1 + self.antithetic)
        inputs = self.input_std * ensemble.randn(block, _INPUTS, count, *ensemble.image_shape)
        return torch.stack([inputs, -inputs], dim=2).flatten(1, 2) if self.antithetic else inputs

    def _weights(self, inputs: Tensor) -> Tensor:
        """Return weights (J, K) of the vectors at inputs (B, K, C, H, W) in the contributions."""
        weights = torch.eye(inputs.shape[1], dtype=torch.float64)
        if self.antithetic:
            weights = (weights[::2] + weights[1::2]) / 2  # (K / 2, K), means of opposite inputs
        return torch.stack(split_halves(weights))[: len(weights)].to(inputs)


@dataclass(frozen=True)
class SmoothedGradient(_OverInputs):
    """The input gradient averaged over Gaussian inputs, for one network at a time.

    g = E_x grad_x f_theta(x), x ~ N(0, input_std^2 I), estimated from ``num_inputs`` inputs. Its
    second moment over theta is the mixed derivative of the network's prior kernel, E d/dx d/dx'
    K(x, x'). Inputs come in opposite pairs (x, -x), which cancels most of the noise that ReLU gates
    add. Two contributions are means over halves of the pairs.
    """

    readouts: int = 1  # orthogonal last layers per network, each of which counts as a network

    def __post_init__(self) -> None:
        require_integers(readouts=self.readouts)
        super().__post_init__()

    def draw(self, ensemble: Ensemble, block: int) -> Draw:
        """Draw the weights and the Gaussian inputs of one block."""
        readouts = (
            ensemble.draw_readouts(block, _READOUTS, self.readouts) if self.readouts > 1 else None
        )
        return Draw(ensemble.draw(block), self._draw_inputs(ensemble, block), readouts=readouts)

    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        """Return (B * readouts, J, D)."""
        gradients = ensemble.input_gradients(
            draw.state, draw.inputs, draw.readouts, self._weights(draw.inputs)
        )
        return gradients.flatten(2)

    def passes(self, dimension: int) -> Passes:
        """Count one forward pass an input, and one backward for each of the readouts."""
        return Passes(forward=self.num_inputs, backward=self.num_inputs * self.readouts)


@dataclass(frozen=True)
class Dipole(_AtOnePoint):
    """Finite differences along every pixel at one random point: the discriminative dipole of
    section 3.

    g[i] = (f(x + step e_i) - f(x - step e_i)) / (2 step), x ~ N(0, input_std^2 I), as the authors
    computed their published directions, with step 100. It takes 2 D evaluations per network.
    """

    step: float = 100.0  # length of the dipole's arm, in units of the input
    input_std: float = 1.0  # of the random point

    def __post_init__(self) -> None:
        require_positive(step=self.step)
        super().__post_init__()

    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        """Return (B, 1, D)."""
        centre = draw.inputs  # (B, 1, C, H, W)
        size = centre[0, 0].numel()
        columns = []
        for pixels in torch.arange(size, device=centre.device).split(256):
            arms = self.step * one_hot(pixels, size).to(centre.dtype)
            arms = arms.view(-1, *centre.shape[2:])  # (P, C, H, W)
            # (B, 2 P)
            ends = ensemble.outputs(draw.state, torch.cat([centre + arms, centre - arms], dim=1))
            above, below = ends.chunk(2, dim=1)  # (B, P) each
            columns.append((above - below) / (2 * self.step))
        return torch.cat(columns, dim=1)[:, None]

    def passes(self, dimension: int) -> Passes:
        """Count both ends of a dipole for each pixel, and nothing backward."""
        return Passes(forward=2 * dimension)


@dataclass(frozen=True)
class MixedDerivative(_OverInputs):
    """How the input gradient moves with the weights: right singular vectors of d/dtheta d/dx f
    (Lemma 2, eq. 5).

    g = grad_x (r^T grad_theta f_theta(x)) with one probe r ~ N(0, I) a network, averaged over
    Gaussian inputs x as in `SmoothedGradient`. Over the probes, the second moment of g is E
    (d_theta d_x f)^T (d_theta d_x f). With ``num_inputs=1, antithetic=False`` it is taken at one
    random point, without smoothing.
    """

    @property
    def has_input_noise(self) -> bool:
        """Whether the derivative is smoothed; at one random point it is meant as it is."""
        return self.num_inputs > 1

    def draw(self, ensemble: Ensemble, block: int) -> Draw:
        """Draw the weights, the Gaussian inputs and one probe for each network of a block."""
        return Draw(
            ensemble.draw(block),
            self._draw_inputs(ensemble, block),
            ensemble.probes(block, _PROBES),
        )

    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        """Return (B, J, D)."""
        probes = draw.probes or {}  # `draw` always draws some
        return self._weights(draw.inputs) @ ensemble.mixed_derivatives(
            draw.state, draw.inputs, probes
        ).flatten(2)

    def passes(self, dimension: int) -> Passes:
        """Count one forward pass an input, and one on to the weights and back to the input."""
        return Passes(forward=self.num_inputs, mixed=self.num_inputs)
