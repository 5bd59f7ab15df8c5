"""Dense second moments that one kernel sums, for GPUs."""

from __future__ import annotations

import torch
from torch import Tensor

from nads_core.directions.covariance import DenseMoments
from nads_core.kernels import add_second_moments, require_kernels

_ROWS = 2048  # contributions summed in float32 before they are added to the float64 sums


class FusedMoments(DenseMoments):
    """The sums of `DenseMoments`, from products of rounded numbers that are partly summed in float32.

    The Triton kernel adds up 2,048 contributions in float32 before they join the float64 sums. In its interpreter on a
    CPU that changes the sums by 2e-7 in Frobenius norm, a hundredth or less of what TF32 factors do: float64 all the
    way would take twice the registers, which are used up, and tell nothing more. On a GPU it is not measured yet.

    Contributions are kept until there are enough networks for one launch: the sums don't depend on the batch size.

    Args:
        dimension: D.
        device: where the sums live.
        kernels: ``"triton"``, see `require_kernels`.
        precision: of the products' factors, one of `kernels.PRECISIONS`. With TF32 the NADs of LeNet overlap those
            from float64 by 1 - 4e-7 or more (benchmarks/README.md).
    """

    def __init__(
        self,
        dimension: int,
        device: torch.device | str = "cpu",
        *,
        kernels: str = "triton",
        precision: str = "tf32",
    ):
        super().__init__(dimension, device)
        require_kernels(kernels, device)
        self.kernels, self.precision = kernels, precision
        self._buffer: list[Tensor] = []

    def update(self, contributions: Tensor) -> None:
        """Add networks: (B, J, D), float32 or less precise."""
        contributions = contributions.to(self._seen.device)
        if contributions.dtype in (torch.bfloat16, torch.float16):
            contributions = contributions.float()
        capacity = max(1, _ROWS // contributions.shape[1])
        while len(contributions):
            free = capacity - sum(map(len, self._buffer))
            self._buffer.append(contributions[:free])
            if len(contributions) >= free:
                self._flush()
            contributions = contributions[free:]

    def _flush(self) -> None:
        if self._buffer:
            contributions = torch.cat(self._buffer) if len(self._buffer) > 1 else self._buffer[0]
            add_second_moments(self._seen, self._noise, contributions, precision=self.precision)
            self.num_networks += len(contributions)
            self._buffer.clear()

    def empty(self) -> FusedMoments:
        """Return another accumulator of the same kind, without networks."""
        return FusedMoments(self.dimension, self._seen.device, kernels=self.kernels, precision=self.precision)

    def load_state_dict(self, state: dict) -> None:
        """Restore what `state_dict` returned."""
        super().load_state_dict(state | {"buffer": []})
        self._buffer = [contributions.to(self._seen.device) for contributions in state["buffer"]]
