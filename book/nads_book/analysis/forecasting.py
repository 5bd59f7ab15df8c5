"""Prediction of how many directions more networks would determine, from the checkpoint of a run."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.eigenpairs import EigenProblem
from nads_core.directions.moments import DenseMoments, HalfSamples, effective_share
from nads_core.directions.run import DENSE_LIMIT
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.runtime.arguments import require_integers

_FEWEST = 16  # networks


@dataclass(frozen=True)
class Forecast:
    """Predicted result of a number of networks.

    Args:
        num_networks: N.
        num_certain: number of directions with a certainty of at least 0.9.
        seconds: time that N networks take, at the rate of the checkpoint's run.
    """

    num_networks: int
    num_certain: int
    seconds: float


def forecast(
    checkpoint: str | os.PathLike[str],
    num_networks: Sequence[int] | None = None,
) -> list[Forecast]:
    """Predict how many directions would be certain after more networks, from the networks of a run
    so far.

    The certificates are those of `compute_nads`, for a smaller error: the levels of the spectrum
    stand as the run shows them. Where it has smoothed over gaps, and in the tail that is below the
    floor of its shrinking, more networks determine more than is predicted here.

    Args:
        checkpoint: checkpoint of a run of `compute_nads`.
        num_networks: numbers of networks N; by default the run's own, and 2, 4, 8 and 16 times as
            many.

    Returns:
        One forecast for each N.

    Raises:
        ValueError: for fewer networks than the checkpoint has, for images of more than 8,192
            pixels, or if the checkpoint has fewer than 16 networks.
    """
    saved = read_checkpoint(Path(checkpoint))
    shape = tuple(saved["description"]["image_shape"])
    if math.prod(shape) > DENSE_LIMIT:
        raise ValueError(
            f"a forecast needs a run of at most {DENSE_LIMIT:,} pixels (got {math.prod(shape):,})"
        )
    known = ARCHITECTURES.get(saved["description"]["architecture"])
    symmetries = known.symmetries_at(shape[1], shape[0]) if known else ()
    moments, half_samples = restored(saved)
    if moments.num_networks < _FEWEST:
        raise ValueError(
            f"the checkpoint has {moments.num_networks} networks: a forecast needs {_FEWEST}"
        )
    done = (
        moments.num_networks // half_samples.halves().shape[1]
    )  # each readout of a network counts in the moments
    num_networks = [done * 2**k for k in range(5)] if num_networks is None else num_networks
    for count in num_networks:
        require_integers(least=done, num_networks=count)  # those of the checkpoint, or more
    forecasts, share = [], effective_share(*saved["powers"][:3].tolist())
    for count in num_networks:
        growth = count / done
        problem = EigenProblem(
            moments,
            half_samples,
            moments.dimension,
            shape,
            symmetries=symmetries,
            effective_share=share,
            growth=growth,
        )
        pairs = problem.eigenpairs()
        forecasts.append(Forecast(count, pairs.uncertainty.num_certain, growth * saved["seconds"]))
    return forecasts


def restored(saved: dict[str, Any]) -> tuple[DenseMoments, HalfSamples]:
    """Return the moments of all networks, and the first networks, of a checkpoint that holds D x D
    moments.
    """
    moments, first = DenseMoments(math.prod(saved["description"]["image_shape"])), HalfSamples()
    for group in saved["moments"]:
        part = moments.empty()
        part.load_state_dict(group)
        moments.merge(part)
    first.load_state_dict(saved["first_networks"])
    return moments, first
