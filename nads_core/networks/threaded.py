"""Threads that evaluate different networks of one ensemble at once, where copies share nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import count, starmap
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from nads_core.networks.ensembles import Ensemble
from nads_core.networks.interleaving import interleaved
from nads_core.networks.self_check import same_outputs
from nads_core.runtime.threads import LARGE, num_threads, one_thread, threads_for

logger = logging.getLogger(__name__)

_PAUSES = 8  # parts of one evaluation, between which another one is inserted
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ThreadedEnsemble:
    """Threads that work on different networks at once, each with a clone of one ensemble.

    There are as many as the caller gave torch, each with a single thread of torch
    (`runtime.threads`). Results do not depend on their number. There is a single one on a GPU,
    where the factory builds every network, which draws from torch's one global generator, and for
    networks that cannot be copied or share something with their copies
    (`_can_clone`): operations of large networks then have all threads.

    Args:
        ensemble: ensemble that the threads draw from and evaluate.
    """

    def __init__(self, ensemble: Ensemble):
        alone = ensemble.device.type != "cpu" or ensemble.evaluation != "loop"
        self._ensemble, self._thread, threads = ensemble, threading.local(), num_threads()
        self.size = 1 if alone else threads
        with one_thread():
            if self.size > 1 and not _can_clone(ensemble):
                logger.warning(
                    "one thread evaluates the networks: "
                    "copies of a network share something, or have locks"
                )
                self.size = 1
        self._begun = count()  # threads
        self._pool = ThreadPoolExecutor(self.size, initializer=self._start_thread)

    def _start_thread(self) -> None:
        torch.set_num_threads(1)  # of this thread of Python alone
        self._thread.number = next(self._begun)

    @cached_property
    def ensembles(self) -> list[Ensemble]:
        """One of each thread, copied when the first networks are evaluated."""
        alone = self.size == 1
        return [self._ensemble if alone else self._ensemble.clone() for _ in range(self.size)]

    def map(
        self, function: Callable[[Ensemble, _Item], _Result], items: Iterable[_Item]
    ) -> list[_Result]:
        """Return ``function(ensemble, item)`` for each item, in order; raise the first error."""
        if self.size == 1:
            with threads_for(LARGE if self._ensemble.block_size == 1 else 0):
                return [function(self._ensemble, item) for item in items]
        with one_thread():
            own = self.ensembles
            return list(
                self._pool.map(lambda item: function(own[self._thread.number], item), items)
            )


def _can_clone(ensemble: Ensemble) -> bool:
    """Whether threads can evaluate clones at once.

    One clone evaluates a network, and another one two of them, in turns after every instruction
    of the network's code. Their values and gradients must be those of the ensemble, which evaluates
    one after the other: what a module, a class or a hook keeps is shared by all copies of a
    network, and may stay for the next network while another thread is inside.
    """
    state, images = ensemble.draw_some(2), ensemble.test_images(2, 2)

    def evaluated(each: Ensemble, *rows: int) -> list[Tensor]:
        found = []
        for row in rows:
            own = {name: tensor[row : row + 1] for name, tensor in state.items()}
            inputs = images[row : row + 1]
            # gradients first: a result that is kept with its graph cannot be copied
            found += [each.input_gradients(own, inputs), each.outputs(own, inputs)]
        return found

    def sequential() -> list[list[Tensor]]:
        return [evaluated(ensemble, 0), evaluated(ensemble, 1, 0)]

    def alike(results: list[list[Tensor]] | None) -> bool:
        pairs = zip(tree_leaves(results), tree_leaves(expected), strict=True)
        return results is not None and all(starmap(same_outputs, pairs))

    start = time.perf_counter()
    expected = sequential()
    patience = 1 + 10 * (time.perf_counter() - start)
    try:
        one, other = ensemble.clone(), ensemble.clone()
    except Exception:  # of deepcopy
        return False
    interleave = partial(
        interleaved, lambda: evaluated(one, 0), lambda: evaluated(other, 1, 0), patience
    )
    results, steps = interleave()
    pauses = sorted({steps * part // _PAUSES for part in range(1, _PAUSES)} - {0})
    separate = alike(results) and all(alike(interleave(pause).results) for pause in pauses)
    if not separate and not alike(sequential()):
        raise ValueError(
            "copies of a network share something that an evaluation leaves changed: keep it in self"
        )
    return separate
