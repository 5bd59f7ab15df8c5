"""Training sets that are made when their network is due, so that few of them are in memory."""

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

from nads_core.data import normalize
from nads_core.training.recipes import Dataset


class NormalizedVersions(list[Dataset]):
    """Normalised versions of labelled images, made by functions of this process whenever one is asked for.

    `train_networks` sends items of a list to its workers one by one.

    Args:
        versions: functions that return images, (N, C, H, W).
        labels: labels of all versions, (N,).
    """

    def __init__(self, versions: Iterable[Callable[[], Tensor]], labels: Tensor):
        self.versions, self.labels = list(versions), labels
        super().__init__([(labels, labels)] * len(self.versions))  # for its length

    def __getitem__(self, b: int) -> Dataset:  # type: ignore[override]  # no slices
        return normalize(self.versions[b]()), self.labels

    def __iter__(self) -> Iterator[Dataset]:
        return (self[b] for b in range(len(self)))
