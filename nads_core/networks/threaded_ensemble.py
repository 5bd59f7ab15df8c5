"""Threads that work on different networks at once: small operations gain nothing from a second thread of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import torch

from nads_core.networks.ensembles import Ensemble

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ThreadedEnsemble:
    """As many threads as torch has, each with a duplicate of one ensemble and a single thread of torch.

    Results do not depend on the number of threads. On a GPU, and where the factory has to be called for every network
    (which goes by torch's one global generator), there is a single worker.

    Args:
        ensemble: ensemble that the threads draw from and evaluate.
    """

    def __init__(self, ensemble: Ensemble):
        alone = ensemble.device.type != "cpu" or ensemble.evaluation == "vmap" or not ensemble.replays
        self.size = 1 if alone else torch.get_num_threads()
        self.device, self._ensemble = ensemble.device, ensemble
        self._duplicates: SimpleQueue[Ensemble] = SimpleQueue()
        if self.size > 1:
            self._pool = ThreadPoolExecutor(self.size)
            for _ in range(self.size):
                self._duplicates.put(ensemble.duplicate())

    def map(self, function: Callable[[Ensemble, _Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Return ``function(ensemble, item)`` for each item, in their order; the first error is raised."""
        if self.size == 1:
            return [function(self._ensemble, item) for item in items]
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return list(self._pool.map(lambda item: self._work(function, item), items))
        finally:
            torch.set_num_threads(threads)

    def _work(self, function: Callable[[Ensemble, _Item], _Result], item: _Item) -> _Result:
        own = self._duplicates.get()
        try:
            return function(own, item)
        finally:
            self._duplicates.put(own)
