"""A step of training compared with one core's limit, in float32 and bfloat16:
``python benchmarks/training_step.py``.

On a CPU `train_networks` trains one network per core, each on one thread, so that a core is the
limit. A step is what `nads_book.benchmarks.seconds_per_step` measures: forward, backward and update
for one batch of preset `laptop`. Its operations are counted by PyTorch; the limit is the best of
several square matrix products on one thread, in the same run. It writes
``results/training_step-ARCHITECTURE-PRECISION-cpu.json``.
"""

from __future__ import annotations

import nads_book as nb
import torch
from nads_book.benchmarks import seconds_per_step
from nads_book.benchmarks.roofline import measure_limits
from nads_book.benchmarks.stored import write_result
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import nads_core as nc

SHAPE, CLASSES = (1, 32, 32), 2
PRECISIONS = {"float32": False, "bfloat16": True}


def operations(network: nn.Module, batch_size: int) -> int:
    """Count the floating-point operations of one step: multiplications and additions of layers and
    convolutions.
    """
    images, labels = torch.zeros(batch_size, *SHAPE), torch.zeros(batch_size, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(network.train()(images), labels).backward()
    return counter.get_total_flops()


def main() -> None:
    """Measure all cases, and print a line each."""
    torch.set_num_threads(1)
    limits = measure_limits()
    for name in nc.ARCHITECTURES:
        recipe = nb.experiment(f"fig1-{name}", "laptop").recipe
        flop = operations(
            nc.ARCHITECTURES[name].build(SHAPE[0], SHAPE[1], CLASSES), recipe.batch_size
        )
        for precision, mixed in PRECISIONS.items():
            seconds = seconds_per_step(nc.ARCHITECTURES[name], SHAPE, recipe, mixed_precision=mixed)
            share = flop / seconds / limits.rates[precision]
            result = {
                "problem": f"{name}, batch of {recipe.batch_size}",
                "architecture": name,
                "precision": precision,
                "seconds_per_step": seconds,
                "flop": flop,
                "limit_flop_per_second": limits.rates[precision],
                "share_of_limit": share,
            }
            write_result(f"training_step-{name}-{precision}-cpu", result)
            print(
                f"{name} {precision} {1e3 * seconds:.1f} ms, {share:.0%} of the limit", flush=True
            )


if __name__ == "__main__":
    main()
