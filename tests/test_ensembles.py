import itertools
import math
import operator
import random
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from convergence import assert_mean, assert_normal
from examples import Recurrent, compute, perceptron
from hypothesis import given
from hypothesis import strategies as st
from plain_loop import built, require_own_gradients, values
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import nads_core as nc
from nads_core.directions.estimators import Draw
from nads_core.networks import ensembles, evaluator
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.evaluator import default_evaluations
from nads_core.networks.modules import state_of
from nads_core.networks.recording import Recording, without_overwritten
from nads_core.networks.self_check import AuditError
from nads_core.networks.threaded import ThreadedEnsemble
from nads_core.runtime.graphs import waits_raise
from nads_core.runtime.seeds import seed_sequence

SHAPE = (1, 8, 8)


by_name = operator.attrgetter("__name__")


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


def smooth_net():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(108, 5), nn.Tanh(), nn.Linear(5, 1)
    )


class OneLayer(nn.Module):
    """A linear layer whose weights are drawn by ``initialise``."""

    def __init__(self, initialise=nn.init.orthogonal_):
        super().__init__()
        self.linear = nn.Linear(64, 20)
        initialise(self.linear.weight.data)

    def forward(self, x):
        return self.linear(x.flatten(1))


truncated = partial(OneLayer, partial(nn.init.trunc_normal_, std=2.0, a=-1.0, b=1.0))


def trained_a_little():
    network = convnet()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, foreach=True)
    network(torch.randn(8, *SHAPE)).square().sum().backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    return network


def tied_weights():
    first = nn.Linear(64, 64)
    second = nn.Linear(64, 64)
    second.weight = first.weight
    return nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU(), nn.Linear(64, 1))


REPLAYED = {
    "convnet": convnet,
    "smooth": smooth_net,
    "shifted": partial(OneLayer, lambda weight: weight.normal_().mul_(2).add_(1)),
    "fan out": partial(OneLayer, partial(nn.init.kaiming_normal_, mode="fan_out")),
}
CALLED = {
    "orthogonal": OneLayer,
    "on a slice": partial(OneLayer, lambda weight: weight[:10].normal_(0, 3)),
    "copied": partial(OneLayer, lambda weight: weight.copy_(3 * torch.randn(weight.shape))),
    "into given memory": partial(
        OneLayer, lambda weight: torch.normal(0.0, 3.0, weight.shape, out=weight)
    ),
    "trained a little": trained_a_little,
    "tied weights": tied_weights,
    "spectral": lambda: nn.Sequential(nn.Flatten(), spectral_norm(nn.Linear(64, 20))),
}
SIZES = dict.fromkeys(nc.ARCHITECTURES, 32) | {"resnet18": 8, "densenet121": 8}
OURS = {
    name: partial(architecture.build, 1, SIZES[name], 1)
    for name, architecture in nc.ARCHITECTURES.items()
}


# --- drawing: the replay against the factory


@pytest.mark.parametrize("name", ["convnet", "smooth", *(name for name in OURS if name != "vgg11")])
def test_one_replayed_network_is_the_factorys_bitwise(name):
    factory, size = (REPLAYED | OURS)[name], SIZES.get(name, 8)
    ensemble = Ensemble(factory, (1, size, size), seed=3)
    ensemble.block_size = 1
    assert not ensemble.from_factory
    state = ensemble.draw(5)
    with torch.random.fork_rng():
        torch.manual_seed(seed_sequence(3, 5, 0))
        expected = state_of(factory())
    for name, tensor in (state_of(ensemble.template) | state).items():
        assert torch.equal(tensor[0] if name in state else tensor, expected[name]), name


@pytest.mark.parametrize("name", REPLAYED)
def test_a_draw_is_fixed_by_seed_and_block(name):
    factory = REPLAYED[name]
    first, again = (Ensemble(factory, SHAPE, seed=4) for _ in range(2))
    again.draw(0)  # earlier draws do not matter
    torch.rand(3)
    a = first.draw(2)
    b = again.draw(2)
    c = Ensemble(factory, SHAPE, seed=5).draw(2)
    for name, next_block in first.draw(3).items():
        assert torch.equal(a[name], b[name])
        assert not torch.equal(a[name], next_block)
        assert not torch.equal(a[name], c[name])
        assert all(not torch.equal(a[name][0], row) for row in a[name][1:])


def test_weights_inputs_and_probes_of_a_block_are_independent():
    streams = [SHARED.randn(3, stream, 50) for stream in range(3)] + [SHARED.randn(4, 1, 50)]
    for first, second in itertools.combinations(streams, 2):
        assert_mean((first * second).flatten(), 0.0)


@given(seed=st.integers(0, 2**63), block=st.integers(0, 2**40))
def test_seeds_of_different_paths_differ(seed, block):
    changes = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
    seeds = [seed_sequence(seed + a, block + b, c) for a, b, c in changes]
    seeds.append(seed_sequence(seed, 0, block + 2))
    assert len(set(seeds)) == 5
    assert all(0 <= value < 2**63 for value in seeds)


# --- drawing: distributions


def test_truncated_weights():
    networks = built(Ensemble(truncated, SHAPE), truncated, count=64)
    weights = torch.stack([network.linear.weight.detach() for network in networks])
    assert weights.abs().max() <= 1
    # s^2 (1 - 2 a phi(a) / (2 Phi(a) - 1)) at s = 2, a = 1 / s
    assert_mean(weights.flatten().square(), 0.32236)


def test_overwritten_draws_are_left_out_of_vgg_and_its_weights_keep_their_distribution():
    steps = Recording(OURS["vgg11"], seed=1).steps
    live = without_overwritten(steps)
    assert 0 < len(live) < len(steps)
    assert {step.name for step in live} == {step.name for step in steps}
    for name, (tensor, *_) in Ensemble(OURS["vgg11"], (1, 32, 32), seed=2).draw(0).items():
        if tensor.dim() == 4:
            assert_mean(tensor.flatten().square(), 2 / (9 * len(tensor)))
            assert_normal(tensor[:64, :64], (2 / (9 * len(tensor))) ** 0.5)
        elif name.startswith("classifier") and tensor.dim() == 2:
            assert_mean(tensor.flatten().square(), 1 / (3 * tensor.shape[1]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_networks_of_another_type_are_those_of_float32_converted(dtype):
    single, other = (Ensemble(convnet, SHAPE, seed=1, dtype=t) for t in (torch.float32, dtype))
    for name, weights in single.draw(0).items():
        assert torch.equal(weights.to(dtype), other.draw(0)[name])
    if dtype == torch.bfloat16:
        assert torch.equal(single.randn(0, 1, 9).to(dtype), other.randn(0, 1, 9))


SHARED = Ensemble(convnet, SHAPE)


@pytest.mark.parametrize("shape", [(1, 8, 8), (7,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("size", [1, 5, 16, 64])
def test_parts_of_a_block_are_the_whole_bit_for_bit(shape, dtype, evaluation, size):
    def factory():
        return perceptron(math.prod(shape))

    ensemble = Ensemble(factory, shape, dtype=dtype, evaluation=evaluation)
    assert ensemble.block_size == 64
    readouts = 1 if evaluation == "factory" else 2
    estimators = (
        nc.SmoothedGradient(4, readouts=readouts),
        nc.PointGradient(),
        nc.MixedDerivative(3, antithetic=False),
    )
    starts = range(0, 60, size)
    for estimator, block, order in itertools.product(estimators, (2, 3), (1, -1)):
        whole = estimator.draw(ensemble, block)[:60]
        rows = {first: slice(first, min(first + size, 60)) for first in starts[::order]}
        parts = {first: estimator.draw(ensemble.restrict(rows[first]), block) for first in rows}
        joined = Draw.cat([parts[first] for first in starts])
        for one, other in zip(tree_leaves(joined), tree_leaves(whole), strict=True):
            assert one is other or torch.equal(one, other)


# --- evaluating: loop, vmap, and a plain loop over modules


EVALUATED = REPLAYED | CALLED | OURS | {"truncated": truncated}
DEEP = ("vgg11", "resnet18", "densenet121")


@pytest.mark.parametrize(
    ("name", "evaluation"),
    [
        pytest.param(name, kind, marks=[pytest.mark.slow] * (name in DEEP and kind != "vmap"))
        for name in EVALUATED
        for kind in ("loop", "vmap", "graph")
        if kind == "loop" or name in REPLAYED | OURS
    ],
)
def test_every_evaluation_gives_what_separate_modules_give(name, evaluation):
    factory, size = EVALUATED[name], SIZES.get(name, 8)
    options = {"seed": 1, "dtype": torch.float64, "evaluation": evaluation}
    ensemble = Ensemble(factory, (1, size, size), **options)
    # Torch draws truncated normal numbers in one way or the other, by version.
    assert factory is truncated or (ensemble.evaluation == "factory") == (name in CALLED)
    require_own_gradients(ensemble, factory, 1, readouts=(2,) if factory is convnet else ())


def test_a_graph_gives_each_network_its_own_gradients_of_any_shape():
    """Its tensors hold what the last call copied there: other weights, shapes, readouts and
    mixtures of inputs.
    """
    loop, graph = (
        Ensemble(convnet, SHAPE, dtype=torch.float64, evaluation=kind) for kind in ("loop", "graph")
    )
    state = loop.draw(0)
    readouts = loop.draw_readouts(0, 3, 2)
    for inputs in (4, 2, 4):
        images = loop.randn(0, 1, inputs, *SHAPE)
        mixing = torch.randn(3, inputs).to(images)
        for arguments in ((), (readouts,), (readouts, mixing), (None, mixing)):
            ours, theirs = (
                ensemble.input_gradients(state, images, *arguments) for ensemble in (graph, loop)
            )
            assert_close(ours, theirs)
    assert len(graph._graphs) == 8


def test_a_graph_that_no_longer_gives_the_gradients_is_found(monkeypatch):
    """For example because the network has replaced a table that the graph reads."""

    def stale(function, *_):
        result = function()
        return lambda: result

    for capture, wrong in ((evaluator.capture, False), (stale, True)):
        monkeypatch.setattr(evaluator, "capture", capture)
        ensemble = Ensemble(convnet, SHAPE, evaluation="graph")
        state = ensemble.draw_some(2)
        ensemble.input_gradients(state, ensemble.test_images(2, 4))
        with pytest.raises(AuditError, match="CUDA graph") if wrong else nullcontext():
            ensemble.audit(3)


@pytest.mark.skipif(
    not hasattr(torch._C, "_cuda_set_sync_debug_mode"),
    reason="needs a CUDA device, or torch with CUDA",
)
def test_where_warnings_are_errors_waits_are_forbidden_and_allowed_again(monkeypatch):
    """Torch warns when the mode is set, after it has set it."""
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)  # no device is used
    torch.set_warn_always(True)
    try:
        with waits_raise():
            assert torch.cuda.get_sync_debug_mode() == 2
        assert torch.cuda.get_sync_debug_mode() == 0
    finally:
        torch.set_warn_always(False)


def one_number():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0))


# --- nothing else moves


def test_buffers_and_factory_modules_stay_as_they_are():
    ensemble = Ensemble(convnet, SHAPE)
    before = {name: tensor.clone() for name, tensor in state_of(ensemble.template).items()}
    state = ensemble.draw(0)
    images = ensemble.randn(0, 1, 4, *SHAPE)
    ensemble.outputs(state, images)
    ensemble.input_gradients(state, images)
    ensemble.mixed_derivatives(state, images, ensemble.probes(0, 2))
    assert not ensemble.template.training
    for name, tensor in state_of(ensemble.template).items():
        assert torch.equal(tensor, before[name]), name
    assert not state_of(ensemble.template)["1.running_mean"].any()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_layers_that_networks_share_stay_as_they_are(dtype):
    backbone = nn.Linear(64, 5)
    weight = backbone.weight.detach().clone()

    def factory():
        return nn.Sequential(nn.Flatten(), backbone, nn.Tanh(), nn.Linear(5, 64), nn.Linear(64, 1))

    compute(factory, 64, dtype=dtype)
    assert torch.equal(backbone.weight, weight) and backbone.weight.requires_grad
    if dtype == "float64":
        require_own_gradients(Ensemble(factory, SHAPE, dtype=dtype), factory)


class Stopped(nn.Module):
    """A network that raises an error, or has its layers evaluated again in the backward pass."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 5)
        self.last = nn.Linear(5, 1)
        self.error = None

    def forward(self, x):
        if self.error:
            raise self.error
        return self.last(
            checkpoint(lambda x: self.first(x).tanh(), x.flatten(1), use_reentrant=False)
        )


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_network_has_its_own_weights_again_after_an_error(error):
    ensemble = Ensemble(Stopped, SHAPE, evaluation="loop", device="cpu")
    state = ensemble.draw(0)
    images = ensemble.randn(0, 1, 4, *SHAPE)
    network = ensemble.template
    before = dict(network.named_parameters())
    network.error = error("now")
    with pytest.raises(error, match="now"):
        ensemble.input_gradients(state, images)
    after = dict(network.named_parameters())
    assert all(
        after[name] is before[name] and isinstance(after[name], nn.Parameter) for name in before
    )


class Hiding(OneLayer):
    """A network that names some of its parameters only."""

    def named_parameters(self, *args, **options):
        named = super().named_parameters(*args, **options)
        return ((name, parameter) for name, parameter in named if parameter.dim() == 1)


class Workspace(OneLayer):
    """A network that returns a part of the same memory at every call."""

    def __init__(self):
        super().__init__(nn.init.zeros_)
        nn.init.normal_(self.linear.weight)
        self.register_buffer("results", torch.zeros(9, 20))

    def forward(self, x):
        if torch.is_grad_enabled():
            return super().forward(x)
        self.results[: len(x)] = super().forward(x)
        return self.results[: len(x)]


class Unreturned(OneLayer):
    """A network whose `train`, and so its `eval`, returns nothing, as many with frozen layers."""

    def train(self, mode=True):
        super().train(mode)


class Mapped(OneLayer):
    """A network that torch.func evaluates input by input."""

    def __init__(self):
        super().__init__(nn.init.normal_)

    def forward(self, x):
        return torch.func.vmap(self.linear)(x.flatten(1))


class SparseTable(OneLayer):
    """A graph in a plain attribute."""

    def __init__(self):
        super().__init__()
        self.graph = torch.eye(20).roll(1, 0).to_sparse()

    def forward(self, x):
        return torch.sparse.mm(self.graph.to(x.dtype), super().forward(x).T).T


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize(
    "factory",
    [Stopped, one_number, Hiding, Workspace, Unreturned, Mapped, SparseTable],
    ids=by_name,
)
def test_unusual_networks_are_what_separate_modules_are(factory, evaluation):
    ensemble = Ensemble(factory, SHAPE, dtype=torch.float64, evaluation=evaluation)
    require_own_gradients(ensemble, factory)


class Binary(nn.Module):
    """Activations of -1 and 1, whose gradient passes, before a pooling: many pixels are equal."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 80, 3)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(720, 1)

    def forward(self, x):
        hidden = self.first(x)
        hidden = hidden + (hidden.sign() - hidden).detach()
        return self.last(self.pool(hidden).flatten(1))


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
def test_equal_pixels_have_the_gradient_that_torch_gives_them(evaluation):
    ensemble = Ensemble(Binary, (1, 8, 8), dtype=torch.float64, evaluation=evaluation)
    require_own_gradients(ensemble, Binary)
    assert type(ensemble.template.pool) is nn.MaxPool2d
    others = Ensemble(convnet, (1, 8, 8), evaluation=evaluation).template.modules()
    assert not [layer for layer in others if type(layer) is nn.MaxPool2d]


@pytest.mark.parametrize("factory", [convnet, OneLayer], ids=by_name)
def test_global_random_generators_are_left_alone(factory):
    def states():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()

    before = states()
    compute(factory, 260)  # of which some are audited
    assert states() == before


# --- bad arguments


class Particular(OneLayer):
    def forward(self, x):
        assert x.shape[-1] == 28, "expected 28 pixels"
        return super().forward(x)


class SparseBuffer(OneLayer):
    def __init__(self):
        super().__init__()
        self.register_buffer("graph", torch.eye(64).to_sparse())


class MadeLater(OneLayer):
    """A parameter that the first forward pass creates."""

    def __init__(self):
        super().__init__(nn.init.zeros_)
        self.gain = None

    def forward(self, x):
        if self.gain is None:
            self.gain = nn.Parameter(torch.ones(20))
        return self.gain * super().forward(x)


def test_a_gpu_takes_the_next_evaluation_where_a_network_does_not_allow_the_first(monkeypatch):
    """A graph for very many layers, which a forward pass that reads values does not allow; vmap,
    which a recurrent layer does not.
    """
    deep = nn.Sequential(*(nn.Tanh() for _ in range(250)))
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert default_evaluations(deep, cuda) == ("graph", "vmap", "loop")
    assert default_evaluations(deep[:20], cuda) == ("vmap", "loop")
    assert default_evaluations(deep, cpu) == ("loop",)

    def not_captured(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr("nads_core.networks.evaluator.capture", not_captured)
    monkeypatch.setattr(
        "nads_core.networks.ensembles.default_evaluations", lambda *_: ("graph", "vmap", "loop")
    )
    assert Ensemble(convnet, SHAPE).evaluation == "vmap"
    assert Ensemble(Recurrent, SHAPE).evaluation == "loop"
    with pytest.raises(ValueError, match="stream is capturing"):
        Ensemble(convnet, SHAPE, evaluation="graph")


class ReadsGradients(torch.autograd.Function):
    """The identity, whose backward pass reads a number, which fails while a graph is captured."""

    captured = False

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ReadsGradients.captured:
            raise RuntimeError("called a synchronizing CUDA operation")
        return gradient


class ReadingGradients(OneLayer):
    def __init__(self):
        super().__init__(nn.init.normal_)

    def forward(self, x):
        return super().forward(ReadsGradients.apply(x))


def test_a_backward_pass_that_reads_numbers_is_not_evaluated_by_a_graph(monkeypatch):
    def captured(function, *_):
        with monkeypatch.context() as within:
            within.setattr(ReadsGradients, "captured", True)
            function()
        return function

    monkeypatch.setattr(evaluator, "capture", captured)
    monkeypatch.setattr(ensembles, "default_evaluations", lambda *_: ("graph", "loop"))
    assert Ensemble(ReadingGradients, SHAPE).evaluation == "loop"


def exported():
    return torch.export.export(perceptron(64), (torch.zeros(2, *SHAPE),)).module()


WIDTHS = itertools.count(1)


@pytest.mark.parametrize(
    ("factory", "options", "error", "shown"),
    [
        (convnet(), {}, TypeError, "lambda: MyNet.*got Sequential"),
        ("resnet18", {}, TypeError, "got str"),
        (lambda: "a network", {}, TypeError, "got str"),
        (SparseBuffer, {}, TypeError, r"graph \(torch.sparse_coo\): .*to_dense"),
        (lambda: nn.Sequential(torch.jit.script(nn.Linear(8, 1))), {}, TypeError, "torch.jit"),
        (exported, {}, TypeError, "torch.export"),
        (lambda: nn.LazyLinear(1), {}, TypeError, "lazy layers"),
        (
            partial(OneLayer, partial(nn.init.constant_, val=math.nan)),
            {},
            ValueError,
            "weight.* NaN",
        ),
        (MadeLater, {}, ValueError, "creates gain .*__init__"),
        (lambda: perceptron(64, next(WIDTHS)), {}, ValueError, "two different structures"),
        (Particular, {}, ValueError, r"shape \(2, 1, 8, 8\): expected 28 pixels"),
        (lambda: nn.Conv2d(1, 1, 3), {}, ValueError, r"for K = 2 it returned \(2, 1, 6, 6\)"),
        (lambda: nn.Linear(128, 1), {"image_shape": (2, 64)}, ValueError, "rejected inputs"),
        (convnet, {"image_shape": (1, 8, 0)}, ValueError, r"got \(1, 8, 0\)"),
        (convnet, {"output": 3}, ValueError, "output 3 .*3 outputs"),
        (convnet, {"evaluation": "jit"}, ValueError, "evaluation 'jit': choose from .*'factory'"),
        (Recurrent, {"evaluation": "vmap"}, ValueError, "use evaluation='loop'"),
        (OneLayer, {"evaluation": "graph"}, ValueError, "cannot be replayed.*evaluation='graph'"),
    ],
    ids=lambda value: None,
)
@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_rejected(factory, options, error, shown):
    with pytest.raises(error, match=shown):
        Ensemble(factory, **{"image_shape": SHAPE} | options)


def test_several_threads_give_what_one_gives(set_threads):
    estimator = nc.SmoothedGradient(4)
    results = []

    def give(own, block):
        return estimator.contributions(own, estimator.draw(own, block))

    for threads in (1, 3):
        set_threads(threads)
        crew = ThreadedEnsemble(Ensemble(OURS["lenet"], (1, 32, 32), seed=5))
        results.append(crew.map(give, range(5)))
    assert all(map(torch.equal, *results))


def test_a_factory_that_is_called_for_each_network_has_one_thread(set_threads):
    set_threads(2)
    assert ThreadedEnsemble(Ensemble(OneLayer, SHAPE)).size == 1


class Subtracting(OneLayer):
    """Writes to its input."""

    def __init__(self):
        super().__init__(nn.init.normal_)

    def forward(self, x):
        x -= x.mean((1, 2, 3), keepdim=True)
        return super().forward(x.relu_())


@pytest.mark.parametrize("evaluation", ["loop", "vmap", "graph", "factory"])
def test_a_network_may_write_to_its_input(evaluation):
    ensemble = Ensemble(Subtracting, SHAPE, dtype="float64", evaluation=evaluation)
    require_own_gradients(ensemble, Subtracting)
    estimator = nc.Dipole(0.1)  # which evaluates one drawn input many times
    draw = estimator.draw(ensemble, 0)
    dipole = estimator.contributions(ensemble, draw[:3])[:, 0]
    for network, x, vector in zip(built(ensemble, Subtracting), draw.inputs, dipole, strict=False):
        arms = 0.1 * torch.eye(64, dtype=x.dtype).view(-1, *SHAPE)
        expected = (values(network, x + arms) - values(network, x - arms)) / 0.2
        assert_close(vector, expected)


def test_the_first_call_of_a_factory_may_draw_more_than_the_others():
    imported = []

    def factory():
        if not imported:  # as a module that is imported when it is first needed, and draws a table
            imported.append(torch.randn(3).sum().item())
        return convnet()

    ensemble = Ensemble(factory, SHAPE)
    assert not ensemble.from_factory
    other = Ensemble(convnet, SHAPE)
    for name, tensor in ensemble.draw(1).items():
        assert torch.equal(tensor, other.draw(1)[name])
