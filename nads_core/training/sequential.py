"""Training many networks one after another, each on the whole device."""

from __future__ import annotations

from nads_core.training.call import Call
from nads_core.training.result import TrainingDiverged, TrainingTimeout


def train_in_turn(call: Call) -> None:
    """Train the networks of a call; none is begun that would not be ready in time."""
    typical = 0.0  # seconds that a network takes
    for b, number in enumerate(call.numbers):
        if call.seconds_left < typical:
            raise TrainingTimeout(f"{b} of {call.count} networks are trained; the next would take {typical:.0f} s")
        try:
            result = call.settings.train(
                number, call.datasets[b], call.test_dataset(b), call.measure(b),
                state=call.state(b), timeout=call.seconds_left,
                label=call.label if call.count == 1 else f"network {b + 1} of {call.count}", progress=call.progress,
            )  # fmt: skip
        except TrainingDiverged as error:
            raise call.diverged(b, error) from error
        typical = float(result.seconds or 0)
        call.on_result(b, result)
