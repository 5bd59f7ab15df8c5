"""Which implementation of a kernel runs, and whether it can run here."""

import torch

from nads_core.runtime.arguments import require_choice

KERNELS = ("torch", "triton")


def require_kernels(kernels: str, device: torch.device | str) -> None:
    """Raise a ValueError unless ``kernels`` is known and can run on ``device``.

    Args:
        kernels: ``"torch"``, or ``"triton"``, where one launch convolves the inputs of many
            networks.
        device: device of the tensors.
    """
    require_choice("kernels", kernels, KERNELS)
    if kernels == "triton":
        _require_triton(torch.device(device))


def _require_triton(device: torch.device) -> None:
    instead = "leave kernels at 'torch'"
    try:
        import triton
    except ImportError as error:
        raise ValueError(f"kernels='triton' needs Triton ({error}): {instead}") from error
    if device.type != "cuda" and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"kernels='triton' needs a GPU, got device {str(device)!r}: "
            f"{instead} (or TRITON_INTERPRET=1)"
        )
