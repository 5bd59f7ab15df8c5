"""`compute_nads`: from an architecture to its directions, by way of estimator, moments and
eigenvectors.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal

import torch

from nads_core.directions.accumulation import accumulate
from nads_core.directions.estimators import Estimator
from nads_core.directions.nads import NADs
from nads_core.directions.options import options_of
from nads_core.directions.run import Configuration, prepare
from nads_core.directions.solving import nads_of, solve
from nads_core.networks.architectures import Architecture, Factory
from nads_core.networks.ensembles import require_image_shape
from nads_core.networks.self_check import AuditError
from nads_core.runtime import distributed
from nads_core.runtime.arguments import Shape, plain, require_integers
from nads_core.runtime.threads import one_thread


def compute_nads(
    architecture: Architecture | Factory | str,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    image_shape: Shape = (1, 32, 32),
    symmetries: tuple[str, ...] | Literal["test"] | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input
    gradients.

    Inside a process group of torch.distributed the processes share the networks, and all return the
    same NADs.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network
    contributes.

    Args:
        architecture: one of ours, any function that returns a newly initialised network, or a name:
            "lenet", "torchvision:convnext_tiny", "timm:vit_tiny_patch16_224?img_size=32",
            "module:function".
        num_networks: number of networks to draw, N; with a stopping criterion the largest number.
        estimator: `SmoothedGradient`, `PointGradient`, `Dipole` or `MixedDerivative`. The default
            is ``SmoothedGradient(num_inputs=16)``, with ``readouts=8`` if the network ends in a
            linear layer of at least 8 features, drawn around 0, and the input has at most 8,192
            pixels.
        image_shape: shape of the input: (C, H, W) of images, (C, L) of sequences, (F,) of rows of a
            table.
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged
            over; by default those that the architecture declares, "test" for a factory of images or
            sequences (which "flip_columns" reverses), none for rows of a table, fewer than 16
            networks or more than 8,192 pixels. With "test" those that the networks do not
            contradict (`symmetry_tests`); the provenance has the results. A stopping criterion is
            then checked without them.
        seed: seed of every weight and input. Network i does not depend on how many are drawn, nor
            on ``batch_size``.
        device: device of the networks; by default a GPU if there is one.
        checkpoint: file that stores the state, in whose name ``{run}`` stands for a short
            fingerprint of everything that determines the numbers. An interrupted call resumes from
            it, with the same result as an uninterrupted one; a finished one is extended by a call
            with more networks.
        progress: whether to show a progress bar.
        **options: fields of `ComputeOptions`, by keyword: ``num_directions``, ``debiasing``,
            ``dtype`` and others. With ``tolerance`` or ``num_certain`` the run ends before
            ``num_networks``; the provenance has the final value, and a warning is issued if it does
            not meet the criterion.

    Returns:
        Directions in order of preference, with their eigenvalues: those of the estimate of C,
        without the noise of the inputs unless ``debiasing`` is "none". The provenance holds the
        effective number of networks, ``(sum |g|^2)^2 / sum |g|^4``. Where it is below 0.15
        ``num_networks``, a few networks hold the second moment: a warning is issued, and
        certainties are those that the effective number supports. Eigenvalues are in float32; in
        float64 where the mean square of the first gradients is outside of [1e-24, 1e24].

    Raises:
        TypeError: if ``architecture`` is neither an Architecture nor a function that returns a
            module, or there is no such option.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for bad arguments, a network that rejects its input, returns NaN or ignores its
            input, a factory that returns the same weights every time or fails, networks that differ
            in more than their weights and buffers (the message names the network and the
            difference), random numbers that torch does not seed, or a checkpoint that is damaged,
            of another computation or of a factory that was edited. The checkpoint of a run whose
            later networks show that it is wrong is renamed to end with ".rejected".
        MemoryError: at once, if more than 8,192 pixels and so many networks need more memory than
            is free (`GramMoments.needed_bytes`).
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a
            file that the message names.

    Example:
        >>> from nads_core import LOGREG
        >>> compute_nads(LOGREG, 64, progress=False).certainty.max() < 0.1  # all are equivalent
        tensor(True)
    """
    require_integers(num_networks=num_networks)
    if (default := torch.get_default_dtype()) not in (torch.float32, torch.float64):
        remedy = "torch.set_default_dtype(torch.float32), and dtype= for the networks"
        raise ValueError(
            f"certainties are not computed in the default type {default}: call {remedy}"
        )
    image_shape = require_image_shape(image_shape)
    settings = options_of(options)
    with one_thread():
        asked = Configuration(
            architecture,
            plain(num_networks),
            image_shape,
            estimator,
            symmetries,
            seed,
            device,
            settings,
        )
        run = prepare(asked)
        state = run.new_state(Path(checkpoint).expanduser() if checkpoint else None)
        notes = run.notes()
        try:
            count = accumulate(run.evaluator, state, asked.num_networks, run.rule, progress)
            run.evaluator.audit_threads(count)
        except AuditError:
            state.reject()
            raise
        if progress and distributed.rank() == 0:
            print("computing directions and intervals ...", file=sys.stderr)
        pairs, of_pairs = solve(run, state, count)
        return nads_of(run, state, pairs, notes | of_pairs)
