import contextlib
import copy
import dataclasses
import math
import os
import random
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from types import SimpleNamespace

import nads_book as nb
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import nads_core as nc
from nads_core.runtime.files import save_checkpoint
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import state as checkpoints
from nads_core.training import steps
from nads_core.training import train_many as train_many_module
from nads_core.training import train_one as single
from nads_core.training.family import NetworkFamily

SHAPE = (1, 8, 8)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def small_network(width=3):
    return nn.Sequential(
        nn.Conv2d(1, width, 3),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9 * width, 2),
    )


class Unreturned(nn.Sequential):
    """A network whose `train` returns nothing, as that of many networks with frozen layers."""

    def train(self, mode=True):
        super().train(mode)


def odd_network():
    """Tied and frozen weights, and a buffer that is not saved."""
    first = nn.Linear(64, 64)
    second = nn.Linear(64, 64)
    last = nn.Linear(64, 2)
    second.weight = first.weight
    first.bias.requires_grad_(False)
    last.register_buffer("unsaved", torch.randn(3), persistent=False)
    return Unreturned(nn.Flatten(), first, nn.Tanh(), second, nn.Tanh(), last)


def small_data(seed, count=70, noise_std=0.5):
    direction = nc.fourier_direction((1, seed % 3), 8)
    return nc.separable_dataset(direction, count, margin=2.0, noise_std=noise_std, seed=seed)


RECIPE = nc.Recipe(
    epochs=3, learning_rate=0.4, batch_size=32, momentum=0.9, weight_decay=5e-3, clip_norm=0.3
)
QUIET = {"device": "cpu", "progress": False}


def train_many(factory, datasets, *tests, **options):
    """Train networks on a CPU by the tests' recipe."""
    return nc.train_networks(factory, datasets, *tests, **{"recipe": RECIPE} | QUIET | options)


def train_one(network, data, *test, **options):
    return nc.train_network(network, data, *test, **{"recipe": RECIPE} | QUIET | options)


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
    return losses


class Pair(nn.Linear):
    def forward(self, x):
        return super().forward(x.flatten(1)), None


def of_two_types(first):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8, dtype=first), nn.Linear(8, 2))


IMAGES, LABELS = small_data(1, count=65)
GRAPH = {"method": "graph", "workers": 2}
PLANES = nc.SeparableDatasets(torch.eye(64).view(64, 1, 8, 8)[:2], 20)
DATA = [(IMAGES, LABELS)]
MISSING = torch.where(IMAGES == IMAGES.max(), torch.nan, IMAGES)
ONE_NETWORK = small_network()


class Growing:
    """Datasets that are made on demand, the second larger than the first."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return small_data(0, 40 + index)


def one(factory, images=IMAGES, labels=LABELS, *test):
    return lambda: train_one(factory(), (images, labels), *test)


def many(factory, data=None, *tests, **options):
    return lambda: train_many(factory, DATA if data is None else data, *tests, **options)


def normalising():
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 2))


BAD_CALLS = [  # call, and what the error shows
    (one(normalising), "65 images .*batch_size=32"),
    (one(small_network, IMAGES, LABELS + 1), "from 1 to 2, .* 2 outputs"),
    (one(small_network, IMAGES, LABELS - 1), "from 0, got .*int64"),
    (one(small_network, IMAGES, LABELS.float()), "float32"),
    (one(small_network, IMAGES, LABELS[1:]), r"\(64,\)"),
    (one(small_network, IMAGES, LABELS.numpy()), "ndarray int64"),
    (one(small_network, IMAGES[:0], LABELS[:0]), r"\(0, 1, 8, 8\)"),
    (one(small_network, (99 * IMAGES).to(torch.uint8)), "uint8"),
    (one(small_network, IMAGES, LABELS, (IMAGES, LABELS.float())), "test must be .*float32"),
    (one(small_network, IMAGES, LABELS, (MISSING, LABELS)), "test images .*NaN"),
    (one(lambda: Pair(64, 2)), "tuple"),
    (one(lambda: nn.Sequential(small_network(), nn.Flatten(0))), r"\(2,\)"),
    (one(lambda: of_two_types(torch.cfloat)), "complex"),
    (one(lambda: of_two_types(torch.float64)), "torch.float64"),
    (one(nn.Flatten), "got none"),
    (lambda: train_one(small_network(), nb.load_images("generated", num_images=4)), "ImageSet"),
    (lambda: train_one(small_network(), DATA[0], stop_losses=1.0), "stop_losses"),
    (lambda: nc.train_network(small_network(), DATA[0]), "no recipe"),
    (lambda: nc.train_networks(small_network, DATA), "no recipe"),
    (many(small_network, [*DATA, (IMAGES, LABELS.float())]), "every dataset .*float32"),
    (many(small_network, DATA, [(IMAGES, 2 * LABELS)]), "from 0 to 2, .*2 outputs"),
    (many(lambda: of_two_types(torch.cfloat)), "complex"),
    (many(lambda: ONE_NETWORK, DATA * 2), "same network twice"),
    (many(lambda: 3), "torch.nn.Module"),
    (many("logref"), "logref.*logreg"),
    (many(small_network, stop_at_full_accuracy=True), "test set"),
    (many(small_network, [*DATA, small_data(0)]), "differ in shape"),
    (many(small_network, Growing(), **GRAPH), "differ in shape"),
    (many(small_network, network_ids=[1, 2]), "one per network"),
    (many(small_network, method="fast"), "'fast'"),
    (many(small_network, workers=0), "workers .* 0"),
    (lambda: nc.Recipe(momentum=-3.0), "momentum .*-3"),
    (lambda: nc.Recipe(weight_decay=-1.0), "weight_decay .*-1"),
]


class Moved(nn.Sequential):
    """A network that knows where it was sent last."""

    def to(self, device):
        self.place = torch.device(device)
        return super().to(device)


@pytest.mark.parametrize("rate", [0.4, math.inf])
def test_a_network_returns_to_the_device_that_it_came_from(rate):
    """The CPU's second name stands for a GPU. A training that diverges returns its network, too."""
    network, recipe = Moved(small_network()), dataclasses.replace(RECIPE, learning_rate=rate)
    with contextlib.nullcontext() if rate < 1 else pytest.raises(ValueError, match="NaN"):
        train_one(network, small_data(0), recipe=recipe, device="cpu:0")
    assert network.place == torch.device("cpu") != torch.device("cpu:0")


class Auxiliary(nn.Sequential):
    """A network with more than logits in train mode, as GoogLeNet or a detector."""

    def __init__(self, form):
        super().__init__(*small_network())
        self.form = form

    def forward(self, x):
        logits = super().forward(x)
        return self.form(logits) if self.training else logits


@pytest.mark.parametrize(
    "form", [lambda x: (x, x), lambda x: {"out": x}, lambda x: SimpleNamespace(logits=x)]
)
def test_more_than_logits_in_train_mode_is_named_with_a_remedy(form):
    with pytest.raises(ValueError, match="returns a (tuple|dict|SimpleNamespace).*aux_logits"):
        train_one(Auxiliary(form), small_data(0))


@pytest.mark.parametrize(("call", "shown"), BAD_CALLS)
def test_bad_calls_are_rejected(call, shown):
    with pytest.raises((TypeError, ValueError), match=shown):
        call()


def test_networks_that_begin_in_place_leave_the_images_as_they_are():
    images = IMAGES.clone()
    network = nn.Sequential(nn.Hardtanh(-0.1, 0.1, inplace=True), small_network())
    train_one(network, (images, LABELS), (images, LABELS))
    assert torch.equal(images, IMAGES)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool])
def test_labels_of_any_integer_type_give_the_same_training(dtype):
    first, second = (
        train_many(small_network, data, data)
        for data in ([(IMAGES, LABELS)], [(IMAGES, LABELS.to(dtype))])
    )
    assert torch.equal(first.losses, second.losses)
    assert torch.equal(first.test_accuracy, second.test_accuracy)


def first_weights(factory, seed, number):
    """Give network ``number`` as `train_networks` begins it."""
    torch.manual_seed(seed_sequence(seed, 2, number))
    return factory()


def datasets_and_directions():
    directions = torch.stack([nc.fourier_direction((1, k), 8) for k in range(3)])
    draw = lambda count, seed: nc.SeparableDatasets(directions, count, 2.0, 0.5, seed)  # noqa: E731
    return draw(70, 0), draw(60, 1)


@pytest.mark.parametrize("factory", [small_network, odd_network])
@pytest.mark.parametrize(
    ("method", "as_list"), [("loop", True), ("processes", False), ("graph", False)]
)
def test_many_networks_train_as_a_plain_loop_trains_each(method, as_list, factory):
    datasets, tests = datasets_and_directions()
    given = ([*datasets], [*tests]) if as_list else (datasets, tests)
    numbers = [4, 0, 9]
    seen = {}
    options = {"seed": 5, "network_ids": numbers, "dtype": torch.float64, "workers": 2}
    options |= {"method": method, "measure": weights, "on_result": seen.__setitem__}
    before = torch.get_rng_state()
    result = train_many(factory, *given, **options)
    assert torch.equal(before, torch.get_rng_state())
    assert result.losses.shape == (3, 9)
    assert result.seconds.shape == (3,) and (result.seconds > 0).all()
    assert [seen[b].losses.tolist() for b in range(3)] == result.losses.tolist()
    with torch.random.fork_rng():
        for b, number in enumerate(numbers):
            network = first_weights(factory, 5, number).double()
            images, labels = datasets[b]
            losses = plain_loop(network, images.double(), labels, RECIPE, seed=5)
            expected = torch.tensor(losses, dtype=torch.float64)
            assert_close(result.losses[b], expected, rtol=1e-8, atol=1e-8)
            assert_close(result.measured[b], weights(network), rtol=1e-8, atol=1e-8)
            network.eval()
            for (images, labels), accuracy in (
                (tests[b], result.test_accuracy),
                (datasets[b], result.train_accuracy),
            ):
                right = network(images.double()).argmax(1) == labels
                assert float(accuracy[b]) == pytest.approx(float(right.double().mean()))


def test_an_architecture_is_trained_by_its_name_too():
    first, second, third = (
        train_many(network, PLANES, num_classes=3).losses
        for network in ("logreg", nc.LOGREG, f"{__name__}:eight_by_eight")
    )
    assert torch.equal(first, second) and torch.equal(first, third)


def eight_by_eight():
    return nc.LOGREG.build(1, 8, 3)


def dropping():
    class Network(nn.Sequential):
        def forward(self, x):
            return super().forward(F.dropout(x, training=self.training))

    return Network(nn.Flatten(), nn.Linear(64, 2))


@pytest.mark.parametrize("factory", [dropping, small_network])
def test_a_network_does_not_depend_on_what_is_trained_beside_it(factory):
    datasets, _ = datasets_and_directions()
    options = {"seed": 1}
    if factory is small_network:  # which stop early
        options |= {"recipe": nc.Recipe(epochs=20), "stop_loss": 0.3}

    def losses(numbers, **more):
        chosen = [datasets[n] for n in numbers]
        more |= {"network_ids": numbers, "workers": 3}
        return train_many(factory, chosen, **options | more).losses

    alone = losses([2])[0]
    for more in ({}, {"method": "processes"}, {"method": "graph"}):
        together = losses([0, 1, 2], **more)
        assert_close(together[2], alone, equal_nan=True)
        assert not torch.allclose(together[1], alone, equal_nan=True)
    config = nc.TrainConfig(RECIPE, stop_loss=options.get("stop_loss"))
    family = NetworkFamily(factory, SHAPE, config)
    assert family.at_once() == family.at_once(3) == 1


class Skipping(nn.Sequential):
    """Skip a layer at random, as Python or a generator of the network decides."""

    def __init__(self, own):
        super().__init__(nn.Flatten(), nn.Linear(64, 64), nn.Linear(64, 2))
        if own:
            self.generator = np.random.default_rng(0)

    def forward(self, x):
        number = self.generator.random() if hasattr(self, "generator") else random.random()
        flatten, first, last = self
        return last(flatten(x) if number < 0.5 else first(flatten(x)))


@pytest.mark.parametrize("own", [False, True])
def test_a_graph_does_not_repeat_random_numbers_of_python(monkeypatch, own):
    train_many(partial(Skipping, own), DATA, method="loop")
    monkeypatch.setattr(steps, "capture", lambda function, *_: (function(), function)[1])
    with pytest.raises(ValueError, match="method='loop'"):
        train_many(partial(Skipping, own), DATA, method="graph")
    train_many(small_network, DATA, method="graph")


def test_small_networks_share_a_step_by_default():
    family = NetworkFamily(small_network, SHAPE, nc.TrainConfig(RECIPE))
    assert (family.at_once(), family.at_once(3), family.at_once(1)) == (8, 3, 1)
    large = dataclasses.replace(family, factory=lambda: nn.Linear(1_000, 400))
    assert large.at_once() == 1


@pytest.mark.parametrize(
    ("device", "epochs", "count", "method"),
    [
        ("cuda", 1, 1, "graph"),
        ("cuda", 10_000, 2, "graph"),
        ("cpu", 1, 2, "loop"),
        ("cpu", 10_000, 1, "loop"),
        ("cpu", 10_000, 2, "processes"),
    ],
)
def test_the_method_follows_from_the_device_and_the_steps(
    device, epochs, count, method, monkeypatch
):
    monkeypatch.setattr(train_many_module, "num_cores", lambda: 2)
    config = SimpleNamespace(device=torch.device(device), recipe=nc.Recipe(epochs=epochs))
    assert train_many_module._choose_method(config, DATA * count) == method


@pytest.mark.parametrize(
    ("factory", "precise"), [(small_network, True), (small_network, False), (odd_network, True)]
)
def test_networks_side_by_side_are_those_of_separate_trainings(factory, precise):
    """Groups of two of three networks; the last batch of an epoch is smaller."""
    options = {"device": DEVICE, "network_ids": [4, 0, 7], "measure": weights}
    options |= {"dtype": torch.float64} if precise else {"mixed_precision": False}
    for data in (datasets_and_directions()[0], [small_data(seed) for seed in range(3)]):
        ours, theirs = (
            train_many(factory, data, data, method=method, workers=workers, **options)
            for method, workers in (("graph", 2), ("loop", None))
        )
        difference = (ours.losses - theirs.losses).abs() / theirs.losses
        assert difference.shape == (3, 9) and difference.max() < (1e-6 if precise else 1e-3)
        for one, other in zip(ours.measured, theirs.measured, strict=True):
            assert_close(one, other, rtol=1e-4, atol=1e-5)
        assert torch.equal(ours.test_accuracy, theirs.test_accuracy)
        assert torch.equal(ours.train_accuracy, theirs.train_accuracy)


def weights(network):
    """Return all weights and running statistics as one vector."""
    return torch.cat(
        [tensor.detach().double().flatten().cpu() for tensor in network.state_dict().values()]
    )


def test_filters_whose_channels_lie_last_are_the_same_network():
    network = small_network()
    twin = copy.deepcopy(network)
    steps._flatten(network, False)
    vector, gradients = steps._flatten(twin, True)
    assert twin[0].weight.is_contiguous(memory_format=torch.channels_last)
    x = torch.randn(5, *SHAPE)
    for one in (network, twin):
        one(x).square().sum().backward()
    assert_close(twin(x), network(x))
    for p, q in zip(network.parameters(), twin.parameters(), strict=True):
        assert_close(q.grad, p.grad)
    vector -= gradients
    assert_close(twin[0].weight, network[0].weight - network[0].weight.grad)


def test_training_stops_at_a_small_loss():
    data = [small_data(1, 1_000)]
    recipe = nc.Recipe(epochs=8)
    full = train_many(nc.LOGREG, data, recipe=recipe)
    stopped = train_many(nc.LOGREG, data, recipe=recipe, stop_loss=0.2)
    reached = int(full.iterations_to(0.2)[0])
    assert 0 < reached == int(stopped.iterations_to(0.2)[0])
    done = int(stopped.losses.isfinite().sum())
    assert reached <= done < reached + 20 < full.losses.shape[1] == stopped.losses.shape[1]
    assert_close(stopped.losses[0, :done], full.losses[0, :done])


def test_training_stops_when_no_test_image_is_wrong():
    train = small_data(1, 1_000, noise_std=0.1)
    test = small_data(1, 300, noise_std=0.1)
    options = {"recipe": nc.Recipe(epochs=8)}
    full = train_many(nc.LOGREG, [train], [test], **options)
    options["stop_at_full_accuracy"] = True
    stopped = train_many(nc.LOGREG, [train], [test], **options)
    assert stopped.test_accuracy == full.test_accuracy == 1
    means = full.losses[0].view(8, -1).mean(1)
    ready = [n for n in range(1, 8) if means[n] < means[n - 1] and means[n] < single._LOW_LOSS]
    done = len(full.losses[0]) // 8 * (ready[0] + 1)
    assert int(stopped.losses.isfinite().sum()) == done < len(full.losses[0])
    assert_close(stopped.losses[0, :done], full.losses[0, :done])
    network = first_weights(partial(nc.LOGREG.build, 1, 8, 2), 0, 0)
    alone = train_one(network, train, test, **options)
    assert_close(alone.losses, stopped.losses[0], equal_nan=True)
    assert alone.test_accuracy == 1 and not network.training
    wrong = test[0], 1 - test[1]  # never right, however small the loss
    assert torch.equal(train_many(nc.LOGREG, [train], [wrong], **options).losses, full.losses)


@pytest.mark.parametrize("method", ["loop", "processes", "graph"])
def test_a_time_limit_ends_what_takes_longer(method):
    datasets, _ = datasets_and_directions()
    ready = []
    options = {"recipe": nc.Recipe(epochs=100_000), "timeout": 0.3, "workers": 1}
    with pytest.raises(nc.TrainingTimeout):
        train_many(small_network, datasets, method=method, on_result=ready.append, **options)
    assert not ready


@pytest.mark.parametrize(("method", "workers"), [("loop", None), ("processes", 1), ("graph", 2)])
def test_a_training_that_diverges_is_named_and_those_before_it_are_kept(method, workers):
    missing = IMAGES * float("nan"), LABELS
    ready = []
    options = {"method": method, "workers": workers, "on_result": lambda b, _: ready.append(b)}
    with pytest.raises(ValueError, match="network 4 of 4 .* NaN or infinite at step 0"):
        train_many(small_network, [*DATA * 3, missing], **options)
    assert ready == ([0, 1] if method == "graph" else [0, 1, 2])


def test_a_training_that_diverges_ends_with_that_epoch():
    looks = []
    network = small_network()
    network.register_forward_hook(lambda *_: looks.append(1))
    with pytest.raises(ValueError, match="at step 0"):
        train_one(network, (IMAGES * float("nan"), LABELS), recipe=nc.Recipe(epochs=500))
    assert len(looks) < 100  # not all epochs


def test_groups_that_do_not_fit_into_memory_are_halved(monkeypatch):
    groups = []
    train = NetworkFamily.train

    def limited(family, members, **options):
        groups.append([each.network_id for each in members])
        if len(members) > fitting:
            raise torch.OutOfMemoryError("simulated")
        return train(family, members, **options)

    monkeypatch.setattr(NetworkFamily, "train", limited)
    fitting = 2
    train_many(small_network, DATA * 5, method="graph", workers=5)
    assert groups == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4]]
    fitting = 0
    groups[:] = []
    with pytest.raises(torch.OutOfMemoryError, match="simulated"):
        train_many(small_network, DATA * 5, method="graph", workers=5)
    assert groups == [[0, 1, 2, 3, 4], [0, 1], [0]]


def test_a_killed_process_is_named():
    with pytest.raises(MemoryError, match="fewer workers"):
        train_many(
            small_network, DATA * 2, method="processes", workers=2, measure=lambda _: os._exit(1)
        )


def test_what_others_finished_before_a_process_was_killed_is_kept(monkeypatch):
    """Also what ends after the killed one, while the parent stores what was ready."""
    tasks, futures, ready = [], [Future() for _ in range(3)], []
    futures[1].set_exception(BrokenProcessPool())

    class Pool:
        def submit(self, *task):
            tasks.append(partial(*task))
            if len(tasks) == 1:
                futures[0].set_result(tasks[0]())
            return futures[len(tasks) - 1]

        def shutdown(self, kill_workers):
            pass

    def store(b, result):
        ready.append(b)
        if b == 0:
            futures[2].set_result(tasks[2]())

    monkeypatch.setattr("nads_core.training.processes.process_pool", lambda _: Pool())
    with pytest.raises(MemoryError, match="fewer workers"):
        train_many(small_network, DATA * 3, method="processes", workers=3, on_result=store)
    assert ready == [0, 2]


def test_iterations_to_counts_the_first_window_below():
    losses = torch.tensor(30 * [3.0] + 30 * [1.0])
    result = nc.TrainingResult(torch.tensor(1.0), None, losses, torch.tensor(1.0))
    assert [int(result.iterations_to(loss)) for loss in (3.0, 2.0, 1.0, 0.9)] == [20, 40, 50, -1]


def test_the_interval_covers_as_often_as_it_says():
    generator = torch.Generator().manual_seed(0)
    draws = (torch.rand(2_000, 200, generator=generator) < 0.8).double().mean(1).tolist()
    bounds = [nc.accuracy_interval(accuracy, 200) for accuracy in draws]
    covered = sum(low <= 0.8 <= high for low, high in bounds) / 2_000
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2_000) + 0.01  # counts are discrete


# Trainings that are interrupted


@pytest.mark.parametrize("method", ["loop", pytest.param("processes", marks=pytest.mark.slow)])
def test_an_interrupted_training_goes_on_from_its_last_epoch_with_the_same_numbers(
    tmp_path, monkeypatch, method
):
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    data = nc.SeparableDatasets(torch.eye(64)[:2].view(2, 1, 8, 8), 300)
    options = {"recipe": nc.Recipe(epochs=6, momentum=0.9), "method": "loop"}
    whole = train_many(dropping, data, data, **options)
    states = [nc.TrainingState(tmp_path / f"{b}.part") for b in range(2)]
    saved = nc.TrainingState.save_if_due
    calls = []

    def killing(self, *arguments):
        saved(self, *arguments)
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(nc.TrainingState, "save_if_due", killing)
        train_many(dropping, data, data, states=states, **options)
    assert [state.path.exists() for state in states] == [True, False]
    again = train_many(dropping, data, data, states=states, **options | {"method": method})
    # Workers may have other threads.
    assert_close(again.losses, whole.losses, rtol=1e-4, atol=1e-5)
    assert_close(again.test_accuracy, whole.test_accuracy, rtol=0, atol=0.02)
    states[0].forget()
    assert not states[0].path.exists()


def test_seconds_of_earlier_calls_are_added(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    state = nc.TrainingState(tmp_path / "0.part", seconds=3.0)
    trainee = steps.Trainee(small_network(), DATA[0], nc.TrainConfig(RECIPE, device="cpu"))
    assert state.restore(trainee) == []
    state.save_if_due(trainee, [torch.ones(1)], 2.0)
    resumed = nc.TrainingState(state.path)
    assert resumed.restore(trainee) == [1.0] and resumed.seconds == 5.0


STRIPES = nc.separable_dataset(torch.eye(64)[0].view(1, 8, 8), 300)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"recipe": nc.Recipe(epochs=3, learning_rate=0.1)}, "learning_rate was 0.5, now 0.1"),
        ({"seed": 1}, "seed was 0, now 1"),
        ({"dtype": torch.float64}, "'torch.float32', now 'torch.float64'"),
        ({"factory": partial(small_network, 5)}, r"\[3, 1, 3, 3\], now \[5, 1, 3, 3\]"),
        ({"data": (STRIPES[0][:200], STRIPES[1][:200])}, r"\[300, 1, 8, 8\], now \[200, 1, 8, 8\]"),
        ({"data": (STRIPES[0].mT, STRIPES[1])}, "first image"),
        ({"data": (STRIPES[0], 1 - STRIPES[1])}, "labels was"),
    ],
    ids=lambda value: None,
)
def test_the_state_of_another_training_is_rejected(tmp_path, monkeypatch, change, difference):
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)

    def train(factory=small_network, data=STRIPES, **options):
        options = {"recipe": nc.Recipe(epochs=3), "method": "loop", "states": [state]} | options
        return train_many(factory, [data], **options)

    state = nc.TrainingState(tmp_path / "0.part")
    whole = train()
    assert torch.equal(train().losses, whole.losses)  # of the same training
    with pytest.raises(ValueError, match=f"0.part.*{difference}"):
        train(**change)
    assert state.path.stat().st_size < 60_000  # with one image, not all of them


@pytest.mark.parametrize(
    ("content", "shown"), [(b"half a file", "0.part"), (None, "0.part.*earlier version")]
)
def test_damaged_and_earlier_states_are_named(tmp_path, content, shown):
    state = nc.TrainingState(tmp_path / "0.part")
    if content:
        state.path.write_bytes(content)
    else:
        save_checkpoint(state.path, {"tensors": {}, "losses": torch.ones(1), "seconds": 1.0})
    with pytest.raises(ValueError, match=shown):
        train_many(dropping, DATA, states=[state], method="loop")
    assert state.path.exists()
