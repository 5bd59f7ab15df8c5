"""The first step over the learning rate (`nads_book.studies.first_step_rates`)."""

import pytest
import torch
from nads_book.studies import first_step_rates, geometry
from nads_book.studies.first_step_rates import CLIPS, FIRST_IDENTITY, RATES, traces
from torch import nn
from torch.testing import assert_close


@pytest.mark.parametrize("kind", ["right", "random"])
def test_traces_are_those_of_plain_training(kind):
    """Two optimisers of PyTorch take one step, with labels and their opposites."""
    unit = {"seed": 0, "network": "lenet", "data": "wave", "labels": kind}
    found = traces(unit, CLIPS, 3, (torch.empty(0), torch.empty(0)))
    inputs, generator = geometry.inputs_of(FIRST_IDENTITY + 3)
    images, labels = first_step_rates.batch_of("wave", (), generator)
    along = images.flatten(1) @ first_step_rates.direction("wave").flatten()
    assert_close(along, 2.0 * labels - 1, rtol=1e-4, atol=1e-4)  # D(v) with margin 1
    if kind == "random":
        labels = torch.randint(2, labels.shape, generator=generator)

    def trace(network):
        gradients = geometry.input_gradients(network, inputs, images)
        return float(gradients[0] @ gradients[1])

    assert found[0] == trace(geometry.built("lenet", FIRST_IDENTITY + 3))
    for i, clip in enumerate(CLIPS):
        after = []
        for y in (labels, 1 - labels):
            network = geometry.built("lenet", FIRST_IDENTITY + 3)
            optimiser = torch.optim.SGD(network.parameters(), lr=RATES[-1])
            nn.functional.cross_entropy(network(images), y).backward()
            if clip is not None:
                norm = nn.utils.clip_grad_norm_(network.parameters(), clip)
                assert kind == "random" or norm > clip  # so that clipping is tested
            optimiser.step()
            after.append(trace(network))
        expected = sum(after) / 2
        assert float(found[1 + (i + 1) * len(RATES) - 1]) == pytest.approx(expected, rel=1e-4)
