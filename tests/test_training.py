import dataclasses
import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from examples import (
    RECIPE,
    Applied,
    Unreturned,
    datasets_and_tests,
    in_float64,
    interrupt,
    perceptron,
    small_network,
)
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import nads_core as nc
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import TrainConfig, train_new, train_one


def views():
    """Weights that lie in the memory of others: a transpose and a slice."""
    network = perceptron(64, 32, 64)
    network[3].weight = nn.Parameter(network[1].weight.t())
    network[1].bias = nn.Parameter(network[3].bias[8:40])
    return network.append(nn.Linear(64, 2))


def odd_network():
    """Tied and frozen weights, and a buffer that is not saved."""
    network = perceptron(64, 64, 64)
    network[3].weight = network[1].weight
    network[1].bias.requires_grad_(False)
    network.register_buffer("unsaved", torch.randn(3), persistent=False)
    return Unreturned(network, nn.Tanh(), nn.Linear(64, 2))


def small_data(seed, count=70, noise_std=0.5):
    direction = nc.fourier_direction((1, seed % 3), 8)
    return nc.separable_dataset(direction, count, margin=2.0, noise_std=noise_std, seed=seed)


QUIET = {"device": "cpu", "progress": False}


def many(factory, datasets, *tests, **options):
    """Train networks on a CPU by the tests' recipe."""
    return nc.train_networks(factory, datasets, *tests, **{"recipe": RECIPE} | QUIET | options)


def one(network, data, test=None, **options):
    return nc.train_network(network, data, test, **{"recipe": RECIPE} | QUIET | options)


def plain_loop(network, images, labels, recipe, seed):
    """Stochastic gradient descent as one would write it by hand."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    trained = [p for p in network.parameters() if p.requires_grad]
    momenta = [torch.zeros_like(p) for p in trained]
    losses = []
    step = 0
    total = recipe.epochs * math.ceil(len(images) / recipe.batch_size)
    network.train()
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(images), generator=generator).split(recipe.batch_size):
            loss = F.cross_entropy(network(images[batch]), labels[batch])
            gradients = torch.autograd.grad(loss, trained)
            norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
            with torch.no_grad():
                for p, g, m in zip(trained, gradients, momenta, strict=True):
                    m.mul_(recipe.momentum).add_(
                        g * min(1, recipe.clip_norm / (norm + 1e-6)) + recipe.weight_decay * p
                    )
                    p -= recipe.learning_rate * (1 - step / total) * m
            losses.append(loss.item())
            step += 1
    return torch.tensor(losses, dtype=torch.float64)


class Auxiliary(nn.Sequential):
    """A network with more than logits in train mode, as GoogLeNet or a detector."""

    def forward(self, x):
        logits = super().forward(x)
        return (logits, logits) if self.training else logits


def of_two_types():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8).double(), nn.Linear(8, 2))


IMAGES, LABELS = small_data(1, count=65)
DATA = [(IMAGES, LABELS)]
MISSING = torch.where(IMAGES == IMAGES.max(), torch.nan, IMAGES)
ONE_NETWORK = small_network()


def trained(network=None, images=IMAGES, labels=LABELS, **options):
    return lambda: one(network or small_network(), (images, labels), **options)


BAD_CALLS = [  # call, and what the error shows
    (trained(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64))), "65 images .*batch_size=32"),
    (trained(labels=LABELS + 1), "from 1 to 2, .* 2 outputs"),
    (trained(labels=LABELS - 1), "from 0, got .*int64"),
    (trained(labels=LABELS.float()), "float32"),
    (trained(labels=LABELS[1:]), r"\(64,\)"),
    (trained(labels=LABELS.numpy()), "ndarray int64"),
    (trained(images=IMAGES[:0], labels=LABELS[:0]), r"\(0, 1, 8, 8\)"),
    (trained(images=(99 * IMAGES).to(torch.uint8)), "uint8"),
    (trained(test=(MISSING, LABELS)), "test images .*NaN"),
    (trained(nc.LOGREG.build(3, 8, 2)), "1 × 8 × 8"),
    (trained(small_network().append(Applied(lambda y: (y, None)))), "returned tuple"),
    (trained(Auxiliary(*small_network())), "returns a tuple.*aux_logits"),
    (trained(nn.Sequential(small_network(), nn.Flatten(0))), r"\(2,\)"),
    (trained(of_two_types()), "torch.float64"),
    (trained(nn.Flatten()), "got none"),
    (lambda: one(small_network(), nc.ImageSet(*DATA[0], ("a", "b"), "")), "ImageSet"),
    (trained(stop_at_full_accuracy=True), "test set"),
    (lambda: many(small_network, []), "'datasets': 0"),
    (lambda: many(small_network, DATA, [(IMAGES, 2 * LABELS)]), "from 0 to 2, .*2 outputs"),
    (lambda: many(lambda: ONE_NETWORK, DATA * 2), "same network twice"),
    (lambda: many(lambda: 3, DATA), "torch.nn.Module"),
    (lambda: many("logref", DATA), "logref.*logreg"),
    (lambda: many(small_network, DATA, network_ids=[1, 2]), "'network_ids': 2"),
    (lambda: many(small_network, DATA, workers=0), "workers .* 0"),
    (lambda: nc.Recipe(momentum=-3.0), "momentum .*-3"),
    (lambda: nc.Recipe(weight_decay=-1.0), "weight_decay .*-1"),
    (lambda: train_one.move(views(), torch.float64), "1.bias and 3.bias .*float64"),
]


@pytest.mark.parametrize(("call", "shown"), BAD_CALLS)
def test_bad_calls_are_rejected(call, shown):
    with pytest.raises((TypeError, ValueError), match=shown):
        call()


class Moved(nn.Sequential):
    """A network that knows where it was sent last."""

    def to(self, device):
        self.place = torch.device(device)
        return super().to(device)


def test_a_network_returns_to_the_device_that_it_came_from():
    """The CPU's second name stands for a GPU. A training that diverges returns its network, too,
    and ends with that epoch.
    """
    looks = []
    network = Moved(small_network())
    network.register_forward_hook(lambda *_: looks.append(1))
    one(network, small_data(0), device="cpu:0")
    assert network.place == torch.device("cpu") != torch.device("cpu:0")
    looks.clear()
    with pytest.raises(ValueError, match="NaN.* at step 0"):
        one(network, (IMAGES * torch.nan, LABELS), recipe=nc.Recipe(epochs=500), device="cpu:0")
    assert network.place == torch.device("cpu") and len(looks) < 100


def test_networks_that_begin_in_place_leave_the_images_as_they_are():
    images = IMAGES.clone()
    network = nn.Sequential(nn.Hardtanh(-0.1, 0.1, inplace=True), small_network())
    one(network, (images, LABELS), (images, LABELS))
    assert torch.equal(images, IMAGES)


def first_network(factory, seed, number):
    """Give network ``number`` as `train_networks` begins it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_sequence(seed, 2, number))
        return factory()


def weights(network):
    """Return all weights and running statistics as one vector."""
    tensors = [*network.parameters(), *network.buffers()]
    return torch.cat([tensor.detach().double().flatten() for tensor in tensors])


@pytest.mark.parametrize("factory", [small_network, odd_network, views])
def test_a_network_trains_as_by_a_plain_loop(factory):
    """By itself and beside another one. Weights that share memory stay tied."""
    train, test = small_data(1), small_data(2)
    factory = partial(in_float64, factory)
    network, expected = (first_network(factory, 5, 4) for _ in range(2))
    result = one(network, train, test, seed=5)
    losses = plain_loop(expected, train[0].double(), train[1], RECIPE, seed=5)
    assert_close(result.losses, losses)
    assert_close(weights(network), weights(expected))
    assert not network.training and result.seconds > 0
    expected.eval()
    for (images, labels), share in ((train, result.train_accuracy), (test, result.test_accuracy)):
        right = expected(images.double()).argmax(1) == labels
        assert_close(share, right.float().mean())
    both = many(factory, [train] * 2, [test] * 2, seed=5, network_ids=[0, 4])
    assert_close(both.losses[1], losses)
    assert both.test_accuracy[1] == result.test_accuracy


def test_an_architecture_is_trained_by_its_name_too():
    first, second, third = (
        many(network, DATA, num_classes=3).losses
        for network in ("logreg", nc.LOGREG, f"{__name__}:eight_by_eight")
    )
    assert torch.equal(first, second) and torch.equal(first, third)


def eight_by_eight():
    return nc.LOGREG.build(1, 8, 3)


def dropping():
    return nn.Sequential(nn.Dropout(), nn.Flatten(), nn.Linear(64, 2))


@pytest.mark.parametrize("workers", [1, 2, "threads"])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_network_does_not_depend_on_what_is_trained_beside_it(workers, as_list):
    """Nor on when the others stop, and workers have the default type of the caller."""
    data, numbers = datasets_and_tests(70, 60), [4, 0, 9]
    fixed = {"seed": 1, "recipe": nc.Recipe(epochs=40), "stop_loss": 0.115}

    def train(*data, **options):
        call = partial(many, dropping, *data, **fixed, **options)
        return in_float64(call) if as_list else call()

    before = torch.get_rng_state()
    with ThreadPoolExecutor(3) as threads:
        pool = threads if workers == "threads" else workers
        given = [[*part] for part in data] if as_list else data
        together = train(*given, network_ids=numbers, workers=pool)
    assert torch.equal(before, torch.get_rng_state())
    assert len({*together.losses.isfinite().sum(1).tolist()}) > 1
    for b, number in enumerate(numbers):
        alone = train(*([part[b]] for part in data), network_ids=[number])
        assert_close(together.losses[b], alone.losses[0], equal_nan=True)
        assert together.test_accuracy[b] == alone.test_accuracy


def test_training_stops_at_a_small_loss():
    train = partial(many, nc.LOGREG, [small_data(1, 1_000)], recipe=nc.Recipe(epochs=8))
    full, stopped = (train(stop_loss=least).losses[0] for least in (None, 0.05))
    done = int(stopped.isfinite().sum())
    windows = full[:60].view(3, 20).mean(1)
    assert 20 < done == 20 * (1 + int((windows <= 0.05).int().argmax())) < len(full)
    assert_close(stopped[:done], full[:done])


def test_training_stops_when_no_test_image_is_wrong():
    data, (images, labels) = (small_data(1, count, noise_std=0.1) for count in (1_000, 300))
    train = partial(many, nc.LOGREG, [data], recipe=nc.Recipe(epochs=8))
    full = train([(images, labels)])
    stopped, wrong = (
        train([(images, answers)], stop_at_full_accuracy=True) for answers in (labels, 1 - labels)
    )
    assert stopped.test_accuracy == full.test_accuracy == 1
    means = full.losses[0].view(8, -1).mean(1)
    ready = [n for n in range(1, 8) if means[n] < min(means[n - 1], train_one._LOW_LOSS)]
    done = len(full.losses[0]) // 8 * (ready[0] + 1)
    assert int(stopped.losses.isfinite().sum()) == done < len(full.losses[0])
    assert_close(stopped.losses[0, :done], full.losses[0, :done])
    assert torch.equal(wrong.losses, full.losses)  # never right, however small the loss


def test_a_training_that_diverges_is_named():
    with pytest.raises(ValueError, match="network 4 of 4 .* NaN or infinite at step 0"):
        many(small_network, [*DATA * 3, (IMAGES * torch.nan, LABELS)])


class Killing(list):
    """Data that end a worker that unpickles them."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_killed_process_is_named():
    with pytest.raises(MemoryError, match="fewer workers"):
        many(small_network, [Killing(DATA[0])] * 2, workers=2)


# Trainings that are interrupted

STRIPES = nc.separable_dataset(torch.eye(64)[0].view(1, 8, 8), 300)


@pytest.mark.parametrize("factory", [dropping, small_network])
def test_an_interrupted_training_resumes_with_the_same_numbers(tmp_path, factory):
    path = tmp_path / "0.part"
    config = TrainConfig(dataclasses.replace(RECIPE, epochs=6), device=torch.device("cpu"))

    def train(path):
        network, result = train_new(factory, 3, STRIPES, STRIPES, config, checkpoint=path)
        return result.losses, result.test_accuracy, weights(network), result.seconds

    whole = train(None)
    interrupt(train, path)
    torch.manual_seed(9)
    assert path.stat().st_size < 60_000  # with one image, not all of them
    torch.save(torch.load(path, weights_only=True) | {"seconds": 1_000.0}, path)
    *resumed, seconds = train(path)
    assert all(map(torch.equal, whole, resumed)) and 1_000 < seconds < 1_100
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"recipe": nc.Recipe(learning_rate=0.1)}, "learning_rate was 0.5, now 0.1"),
        ({"network": small_network(5)}, r"\[3, 1, 3, 3\], now \[5, 1, 3, 3\]"),
        ({"train": (STRIPES[0].mT, STRIPES[1])}, "first image"),
        ({"train": (STRIPES[0], 1 - STRIPES[1])}, "labels was"),
        ({"content": b"half a file"}, "damaged"),
    ],
)
def test_the_checkpoint_of_another_training_is_rejected(tmp_path, change, difference):
    path, options = tmp_path / "0.part", {"network": small_network(), "train": STRIPES} | QUIET
    interrupt(lambda path: nc.train_network(checkpoint=path, **options), path)
    if content := change.pop("content", None):
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"0.part.*{difference}"):
        nc.train_network(checkpoint=path, **options | change)
    assert path.read_bytes() == before
