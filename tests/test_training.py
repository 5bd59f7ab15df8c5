import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import nads_core as nc
from nads_core.ensembles import Ensemble
from nads_core.seeds import seed_sequence

SHAPE = (1, 8, 8)


def small_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2)
    )


def small_data(seed: int, count: int = 70, noise_std: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    direction = nc.fourier_direction((1, seed % 3), 8)
    return nc.separable_dataset(direction, count, margin=2.0, noise_std=noise_std, seed=seed)


def plain_loop(network, images, labels, recipe, seed):
    """Stochastic gradient descent as one would write it by hand."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    momenta = [torch.zeros_like(p) for p in network.parameters()]
    losses, step, total = [], 0, recipe.epochs * math.ceil(len(images) / recipe.batch_size)
    network.train()
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(images), generator=generator).split(recipe.batch_size):
            loss = F.cross_entropy(network(images[batch]), labels[batch])
            gradients = torch.autograd.grad(loss, list(network.parameters()))
            norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
            with torch.no_grad():
                for p, g, m in zip(network.parameters(), gradients, momenta, strict=True):
                    m.mul_(recipe.momentum).add_(g * min(1, recipe.clip_norm / (norm + 1e-6)) + recipe.weight_decay * p)
                    p -= recipe.learning_rate * (1 - step / total) * m
            losses.append(loss.item())
            step += 1
    return losses


RECIPE = nc.Recipe(epochs=3, learning_rate=0.4, batch_size=32, momentum=0.9, weight_decay=5e-3, clip_norm=0.3)


def test_many_networks_train_as_a_plain_loop_trains_each():
    datasets, tests = [small_data(seed) for seed in range(3)], [small_data(seed + 10) for seed in range(3)]
    result = nc.train_networks(
        small_network, datasets, tests, recipe=RECIPE, seed=5, dtype=torch.float64, device="cpu", progress=False
    )
    ensemble = Ensemble(small_network, SHAPE, seed=5, device="cpu", dtype=torch.float64)
    state = ensemble.stack(3)
    for b, (images, labels) in enumerate(datasets):
        network = small_network().double()
        network.load_state_dict({name: tensor[b].clone() for name, tensor in state.items()})
        losses = plain_loop(network, images.double(), labels, RECIPE, seed=5)
        torch.testing.assert_close(result.losses[b], torch.tensor(losses, dtype=torch.float64), rtol=1e-8, atol=1e-8)
        network.eval()
        right = network(tests[b][0].double()).argmax(1) == tests[b][1]
        assert float(result.test_accuracy[b]) == pytest.approx(float(right.double().mean()))


def test_one_network_trains_as_a_plain_loop_does():
    images, labels = small_data(0)
    torch.manual_seed(0)
    network, twin = small_network().double(), small_network().double()
    twin.load_state_dict(network.state_dict())
    result = nc.train_network(network, (images.double(), labels), recipe=RECIPE, seed=2, device="cpu", progress=False)
    losses = plain_loop(twin, images.double(), labels, RECIPE, seed=2)
    torch.testing.assert_close(result.losses, torch.tensor(losses, dtype=torch.float64), rtol=1e-8, atol=1e-8)
    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)
    assert not network.training


def test_an_easy_task_is_learnt_and_an_impossible_one_is_not():
    result = nc.train_networks(
        nc.LOGREG, [small_data(1, 500)] * 2, [small_data(1, 400), (small_data(1, 400)[0], torch.arange(400) % 2)],
        recipe=nc.Recipe(epochs=3), device="cpu", progress=False,
    )  # fmt: skip
    assert nc.accuracy_interval(float(result.test_accuracy[0]), 400)[0] > 0.95
    low, high = nc.accuracy_interval(float(result.test_accuracy[1]), 400, z=4)
    assert low < 0.5 < high
    assert int(result.iterations_to(0.3)[0]) > 0 and int(result.iterations_to(-1.0)[0]) == -1


def test_iterations_to_counts_the_first_window_below():
    losses = torch.tensor([3.0, 1.0, 1.0, 0.0, 0.0])
    result = nc.TrainingResult(torch.tensor(1.0), None, losses)
    assert int(result.iterations_to(1.0, window=1)) == 2
    assert int(result.iterations_to(0.5, window=2)) == 4
    assert int(result.iterations_to(0.1, window=4)) == -1


def test_the_same_seed_gives_the_same_training_and_leaves_torchs_generator_alone():
    before = torch.get_rng_state()
    runs = [
        nc.train_networks(small_network, [small_data(0)], recipe=RECIPE, seed=s, device="cpu", progress=False).losses
        for s in (1, 1, 2)
    ]
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    assert torch.equal(before, torch.get_rng_state())


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_interval_holds_the_accuracy(correct, extra):
    accuracy, count = correct / (correct + extra), correct + extra
    low, high = nc.accuracy_interval(accuracy, count)
    assert 0 <= low <= accuracy <= high <= 1
    assert high - low > nc.accuracy_interval(accuracy, 4 * count)[1] - nc.accuracy_interval(accuracy, 4 * count)[0]


def test_the_interval_covers_as_often_as_it_says():
    generator = torch.Generator().manual_seed(0)
    draws = (torch.rand(2_000, 200, generator=generator) < 0.8).double().mean(1)
    covered = sum(low <= 0.8 <= high for low, high in (nc.accuracy_interval(float(a), 200) for a in draws)) / 2_000
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2_000) + 0.01  # counts are discrete


def test_bad_input_is_refused():
    images, labels = small_data(0)
    with pytest.raises(ValueError, match="integer labels"):
        nc.train_network(small_network(), (images, labels.double()), progress=False)
    with pytest.raises(ValueError, match="differ in shape"):
        nc.train_networks(small_network, [(images, labels), (images[:9], labels[:9])], progress=False)
    with pytest.raises(ValueError, match="one of each"):
        nc.train_networks(small_network, [(images, labels)], [], progress=False)
    with pytest.raises(ValueError, match="must be positive"):
        nc.Recipe(epochs=0)
    with pytest.raises(ValueError, match="NaN or infinite at step"):
        nc.train_network(small_network(), (images * float("nan"), labels), recipe=RECIPE, device="cpu", progress=False)
