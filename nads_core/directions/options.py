"""Options of `compute_nads` that most runs leave as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from nads_core.directions.covariance import DEBIASINGS
from nads_core.networks.architectures import imported
from nads_core.networks.derivatives import Output, OutputAt
from nads_core.runtime.arguments import (
    Facts,
    make_plain,
    require_choice,
    require_integers,
)


@dataclass(frozen=True)
class ComputeOptions:
    """Options of `compute_nads` that most runs leave as they are.

    Args:
        num_directions: number of directions to return; all D by default. With more than 8,192
            pixels at most as many as are known to have a positive eigenvalue, and all vectors are
            kept: 2 numbers per network and pixel.
        debiasing: "shrink", "subtract" or "none", see `covariance.debias`; with more than 8,192
            pixels "shrink" means "subtract".
        equal_weights: whether the vectors of each network are divided by the norm of their mean,
            g_ij / ||g_i||, so that the directions are those of (1/N) sum g g^T / ||g||^2. The norm
            holds the noise of the inputs too: the trace is at most the share of networks that
            respond, less the share of the noise, so use many inputs. This is the robust choice
            where the norms have heavy tails, and a few networks would hold the second moment.
        output: index of the network's output that is f(x); or a function of whatever the network
            returns for B inputs, which returns f of each, (B,):
            ``lambda y: y["logits"][:, 0] - y["logits"][:, 1]``. The value of an input must not
            depend on the other inputs. "module:function" names such a function, and "logits.0" is
            column 0 of ``y["logits"]`` (`OutputAt`). With a function only ``readouts=1`` is
            possible, and threads call it at the same time. The provenance and checkpoints identify
            it by `provenance.function_identity`.
        name: name of the architecture in files, figures and messages; by default that of the
            architecture or factory, which for a lambda is "<lambda>".
        reinit_readout: whether to draw the weights of the last linear layer as `nn.Linear` does.
            For networks which begin with a last layer of zeros, as vision transformers do, and have
            no input gradient before that.
        evaluation: "loop" evaluates one network after another, "vmap" many at once (the default on
            a GPU), "graph" one after another by a CUDA graph (the default there for networks of 200
            layers or more); all load the weights and buffers of all networks into one network.
            "factory" evaluates every network as the factory builds it: slower, but right for
            networks that differ in more than weights and buffers, such as a random permutation in a
            plain attribute, a random activation or a random structure. It takes ``readouts=1``
            only, and is always used where a factory's random numbers cannot be replayed.
        dtype: type of the networks, or its name, such as "float64". Moments are summed in float64.
            ``torch.bfloat16`` nearly halves the time of large networks on CPUs with AVX-512 or
            AMX; on one H200 it was slower (benchmarks/README.md). It draws the numbers of float32,
            rounded.
        batch_size: number of networks evaluated together on a GPU; fitted to its memory by default.
        kernels: "triton" convolves the inputs of many networks by one kernel on a GPU, if a
            convolution has at most 32 channels. On one H200 gradients of LeNets take a quarter of
            the time; the default is "torch" because whole calls gained less than a fifth, with two
            more kernels that were removed since (benchmarks/README.md).
        tolerance: largest error at which a run ends before ``num_networks``: 1 - overlap of the
            first ``num_leading`` directions with their exact subspace, at the upper end of its
            interval (`subspace_error`). Where eigenvalues ``num_leading`` and the next are nearly
            equal, no number of networks separates them: choose a number with a gap after it.
        num_leading: number of directions that ``tolerance`` is about; 10 by default, or all but one
            of fewer.
        num_certain: number of directions; the run ends when as many have a certainty of 0.9
            (`NADs.certainty`).
    """

    num_directions: int | None = None
    debiasing: str = "shrink"
    equal_weights: bool = False
    output: Output | str = 0
    name: str | None = None
    reinit_readout: bool = False
    evaluation: Literal["loop", "vmap", "graph", "factory"] | None = None
    dtype: torch.dtype | str = torch.float32
    batch_size: int | None = None
    kernels: str = "torch"
    tolerance: float | None = None
    num_leading: int | None = None
    num_certain: int | None = None

    def __post_init__(self) -> None:
        require_choice("debiasing", self.debiasing, DEBIASINGS)
        own = vars(self)
        counts = ("num_directions", "batch_size", "num_leading", "num_certain")
        require_integers(**{name: own[name] for name in counts if own[name] is not None})
        make_plain(self)
        if isinstance(self.output, str):
            named = imported if ":" in self.output else OutputAt
            own["output"] = (int if self.output.isdigit() else named)(self.output)


def options_of(keywords: Facts) -> ComputeOptions:
    """Return the options that keywords name; raise a TypeError for others."""
    known = ComputeOptions.__dataclass_fields__
    if unknown := keywords.keys() - known.keys():
        raise TypeError(
            f"unknown options {', '.join(sorted(unknown))}: options are {', '.join(known)}; those "
            "of gradients are fields of the estimator, such as SmoothedGradient(num_inputs=16)"
        )
    return ComputeOptions(**keywords)
