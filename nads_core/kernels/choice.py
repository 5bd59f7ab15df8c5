"""Which implementation of a kernel runs, and whether it can run here."""

import torch

from nads_core.runtime.arguments import require_choice


def require_kernels(kernels: str, device: torch.device | str) -> None:
    """Raise a ValueError unless ``kernels`` is known and can run on ``device``.

    Args:
        kernels: ``"torch"``, or ``"triton"``, where one launch convolves the inputs of many
            networks.
        device: device of the tensors.
    """
    require_choice("kernels", kernels, ("torch", "triton"))
    if kernels == "torch":
        return
    instead = "leave kernels at 'torch'"
    try:
        import triton
    except ImportError as error:
        raise ValueError(f"kernels='triton' needs Triton ({error}): {instead}") from error
    if torch.device(device).type != "cuda" and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"kernels='triton' needs a GPU, got device {str(device)!r}: "
            f"{instead} (or TRITON_INTERPRET=1)"
        )
