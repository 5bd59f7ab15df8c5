"""Factories whose networks are not what they seem at first: caches, rare choices, counters, and
random outputs.
"""

import copy
import random
from functools import partial

import examples
import numpy as np
import pytest
import torch
from convergence import normal
from examples import perceptron
from torch import nn

import nads_core as nc
from nads_core.directions.evaluation import audit_number
from nads_core.networks import threaded
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.recording import Recording

SHAPE = (1, 4, 4)
compute = partial(examples.compute, image_shape=SHAPE, device="cpu")
RARE = 0.1
GENERATORS = NUMPYS, PYTHONS = np.random.default_rng(0), random.Random(0)  # of this file
STATELESS = random.SystemRandom()  # which is not watched


def plain(gain=1.0):
    network = perceptron(16, 8, 10)
    network[1].weight.data.mul_(gain)
    return network


def lazy_global():
    networks = []

    def factory():
        if not networks:
            networks.append(plain())
        return networks[0]

    return factory


def copies_of_a_cached_network():
    cached = lazy_global()
    return lambda: copy.deepcopy(cached())


def drawn_again_in_place():
    cached = lazy_global()

    def factory():
        network = cached()
        network[1].reset_parameters()
        network[3].reset_parameters()
        return network

    return factory


def seeded_networks():
    def factory():
        torch.manual_seed(3)
        return plain()

    return factory


CACHES = [lazy_global, copies_of_a_cached_network, drawn_again_in_place, seeded_networks]


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("make", CACHES)
def test_a_cached_network_is_rejected_at_the_first_call(make, evaluation):
    with pytest.raises(ValueError, match="same weights twice"):
        compute(make(), 64, evaluation=evaluation)


def numpy_by_the_seed():
    network = plain()
    generator = np.random.default_rng(torch.initial_seed() % 2**32)
    network[1].weight.data = torch.from_numpy(generator.normal(size=(8, 16))).float()
    return network


def seeded_again():
    torch.manual_seed(torch.initial_seed())
    network = plain()
    nn.init.orthogonal_(network[1].weight)  # which is not replayed
    return network


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("factory", [numpy_by_the_seed, seeded_again])
def test_weights_that_follow_from_the_seed_alone_are_rejected(factory, evaluation):
    with pytest.raises(ValueError, match=r"1\.weight.* one after another"):
        compute(factory, 64, evaluation=evaluation)


def test_a_pool_of_networks_that_are_drawn_again_is_rejected():
    pool = [plain() for _ in range(5)]
    calls = iter(range(10**6))

    def factory():
        network = pool[next(calls) % 5]
        network[1].reset_parameters()
        nn.init.orthogonal_(network[1].weight)  # which is not replayed
        network[3].reset_parameters()
        return network

    with pytest.raises(ValueError, match="one network again"):
        compute(factory, 64)


RARELY = -(1 - 2 * RARE) / 8**0.5  # below it lies this share of the weights of eight features
DECISIONS = {
    "rand": lambda w: torch.rand(1).item() < RARE,
    "item": lambda w: w[0, 0].item() < RARELY,
    "tolist": lambda w: w.tolist()[0][0] < RARELY,
    "numpy": lambda w: w.numpy()[0, 0] < RARELY,
    "view": lambda w: w[1:].numpy()[0, 0] < RARELY,
    "asarray": lambda w: np.asarray(w)[0, 0] < RARELY,
    "from_dlpack": lambda w: np.from_dlpack(w)[0, 0] < RARELY,
    "mask": lambda w: torch.ones(1)[w[0, :1] < RARELY].numel() == 1,
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_choice_by_torchs_numbers_ends_replay_and_occurs_as_often_as_it_should(name):
    def factory():
        network = plain()
        if DECISIONS[name](network[3].weight.detach()):
            network[1].weight.data.mul_(30)
        return network

    ensemble = Ensemble(factory, SHAPE, device="cpu")
    assert ensemble.from_factory
    states = [ensemble.draw(block) for block in range(10)]
    networks = [f.module for state in states for f, _ in ensemble.functions_and_weights(state)]
    sizes = torch.stack([network[1].weight.abs().amax() for network in networks])
    assert (sizes > 1).double().mean() == pytest.approx(RARE, abs=0.04)  # 3.4 standard errors


def test_weights_that_scale_others_end_replay_though_they_are_mostly_the_same():
    def factory():
        network = plain()
        network.gain = nn.Parameter(torch.empty(()).normal_().clamp_(min=2))
        network[1].weight.data.mul_(network.gain.data)
        return network

    assert Ensemble(factory, SHAPE, device="cpu").from_factory


def test_what_python_reads_of_other_tensors_does_not_end_replay():
    def factory():
        network = plain()
        assert sum(torch.linspace(0, 1, 3).tolist()) == 1.5 and np.asarray(torch.ones(2)).sum() == 2
        assert network[1].weight.numel() == 128 and bool(torch.zeros(1)) is False
        return network

    assert not Ensemble(factory, SHAPE, device="cpu").from_factory
    assert Recording(lambda: plain(float(torch.rand(1))), 1).steps is None


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("source", ["generator", "system", "counter"])
def test_a_rare_choice_by_numbers_that_no_seed_fixes_is_found(source, evaluation):
    generator = np.random.default_rng(0)
    calls = iter(range(10**6))
    read = {
        "generator": generator.random,
        # Twice as often: at a tenth, 41 audits miss all in one test of a hundred
        "system": lambda: random.SystemRandom().random() / 2,
        "counter": lambda: (next(calls) + 5) % 10 / 10,
    }[source]
    with pytest.raises(ValueError, match=r"torch\.manual_seed"):
        compute(lambda: plain(30 if read() < RARE else 1), 3_000, evaluation=evaluation)


@pytest.mark.parametrize("generator", GENERATORS, ids=["numpy", "random"])
def test_a_choice_by_a_generator_of_the_file_ends_replay(generator):
    ensemble = Ensemble(lambda: plain(30 if generator.random() < 0 else 1), SHAPE, device="cpu")
    assert ensemble.from_factory


class Counted(nn.Module):
    """A network that changes once it has been called often."""

    def __init__(self):
        super().__init__()
        self.network, self.calls = plain(), 0

    def forward(self, x):
        self.calls += 1
        return self.network(x) * (1 if self.calls < 150 else 3)


@pytest.mark.parametrize(("num_threads", "count"), [(1, 240), (2, 600)])
def test_networks_that_change_during_a_run_are_found_at_its_end(
    num_threads, count, monkeypatch, tmp_path
):
    monkeypatch.setattr(threaded, "num_threads", lambda: num_threads)
    for _ in range(2):  # no second call takes up what the first one has stored
        with pytest.raises(ValueError, match="number .* its own state"):
            compute(Counted, count, checkpoint=tmp_path / "run")
        assert not (tmp_path / "run").exists()
        assert (tmp_path / "run.rejected").exists() or num_threads == 2  # found before it is saved


@pytest.mark.parametrize("called", [False, True])
def test_the_last_networks_of_256_are_audited_and_the_first_that_differs_is_named(
    called, monkeypatch
):
    audited = []
    gains = {}
    odd = 510
    audit = Ensemble.audit

    def recorded(self, index):
        audited.append(index)
        gains["now"] = 1.01 if index == odd else 1
        audit(self, index)

    monkeypatch.setattr(Ensemble, "audit", recorded)

    def factory():
        network = plain(gains.get("now", 1))
        if called:
            nn.init.orthogonal_(network[3].weight)
        gains["now"] = 1  # for one call
        return network

    with pytest.raises(ValueError, match=rf"number {odd}, of torch.manual_seed\(\d+\)"):
        compute(factory, 1_000)
    assert audited[-7:] == [252, 253, 254, 255, 508, 509, 510]


def test_audits_are_rarer_among_many_networks_and_threads_take_turns():
    audited = [index for index in range(8_192) if audit_number(index) is not None]
    ends = [*range(256, 2_049, 256), 4_096, 6_144, 8_192]
    assert audited == [end - place for end in ends for place in (4, 3, 2, 1)]
    assert {audit_number(index) % 4 for index in audited[32:36]} == {0, 1, 2, 3}


class Random(nn.Module):
    """A network that draws in forward, in eval mode too."""

    def __init__(self, draw):
        super().__init__()
        self.first = nn.Linear(16, 8)
        self.last = nn.Linear(8, 1)
        self.draw = draw
        self.generator = getattr(draw, "__self__", None)

    def forward(self, x):
        hidden = torch.tanh(self.first(x.flatten(1)))
        return self.last(hidden if self.draw() > 0.05 else 3 * hidden)


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("source", ["random", "numpy", "attribute", "file", "own generator"])
def test_a_network_that_draws_in_eval_mode_is_found_whatever_it_draws_from(source, evaluation):
    generator = torch.Generator()
    draw = {
        "random": random.random,
        "numpy": np.random.rand,
        "attribute": np.random.default_rng(0).random,
        "file": lambda: NUMPYS.random(),
        "own generator": lambda: torch.rand(1, generator=generator),
    }[source]
    # What moves a generator of the program is seen at once, other draws where outputs differ
    count = 3_000 if source == "own generator" else 64
    with pytest.raises(ValueError, match="second call"):
        compute(lambda: Random(draw), count, evaluation=evaluation)


class LowRank(nn.Linear):
    """A layer whose eval mode adds the product of two factors to its weights."""

    def __init__(self, inputs, outputs, rank=3):
        super().__init__(inputs, outputs)
        self.down = nn.Parameter(torch.randn(rank, inputs))
        self.up = nn.Parameter(torch.randn(outputs, rank))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if self.merged == mode:
            self.weight.data += (-1 if mode else 1) * self.up.data @ self.down.data
            self.merged = not mode
        return self

    def forward(self, x):
        y = nn.functional.linear(x, self.weight, self.bias)
        return y if self.merged else y + x @ self.down.T @ self.up.T


class Scaled(nn.Linear):
    """A layer whose eval mode scales its weights in place, which can be replayed."""

    def train(self, mode=True):
        if mode != self.training:
            self.weight.data.mul_(1 / 3 if mode else 3)
        return super().train(mode)


@pytest.mark.parametrize("layer", [LowRank, Scaled])
def test_weights_are_those_of_eval_mode(layer):
    def factory():
        return nn.Sequential(nn.Flatten(), layer(16, 8), nn.Tanh(), nn.Linear(8, 10))

    ensemble = Ensemble(factory, SHAPE, device="cpu")
    assert ensemble.from_factory == (layer is LowRank)
    networks = [f.fixed | own for f, own in ensemble.functions_and_weights(ensemble.draw(0))]
    weights = torch.stack([network["1.weight"] for network in networks])
    trained = torch.stack([factory()[1].weight.detach() for _ in range(64)])
    assert weights.square().mean() / trained.square().mean() > 8  # 9 for the scaled layer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("no more"), ValueError),
        (KeyError("gain"), ValueError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
    ],
)
def test_what_a_factory_raises_late_names_the_network(error, kind):
    calls = iter(range(10**6))

    def factory():
        if next(calls) == 50:
            raise error
        return plain()

    with pytest.raises(kind, match=rf"number \d+.*{type(error).__name__}"):
        compute(factory, 200, evaluation="factory")


class Late(nn.Module):
    """A network whose forward raises for one network in two hundred or so."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 1)
        self.register_buffer("draw", torch.rand(()))

    def forward(self, x):
        assert self.draw < 0.995, "out of range"
        return self.linear(x.flatten(1))


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
def test_an_assertion_in_forward_names_the_network(evaluation):
    with pytest.raises(ValueError, match=r"(network|number) \d+.*AssertionError: out of range"):
        compute(Late, 3_000, evaluation=evaluation)


def test_the_callers_default_type_stays():
    def factory():
        torch.set_default_dtype(torch.float64)
        return plain()

    try:
        nads = compute(factory, 64)
        assert torch.get_default_dtype() == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    assert nads.certainty.dtype == nads.directions.dtype == torch.float32


def test_a_default_type_of_few_digits_is_rejected_and_networks_of_that_type_can_be_saved(tmp_path):
    torch.set_default_dtype(torch.bfloat16)
    try:
        with pytest.raises(ValueError, match="set_default_dtype"):
            compute(plain, 64)
    finally:
        torch.set_default_dtype(torch.float32)
    nads = compute(plain, 64, dtype=torch.bfloat16)
    nads.save(tmp_path / "x.npz")
    assert torch.equal(nc.NADs.load(tmp_path / "x.npz").certainty, nads.certainty)


@pytest.mark.parametrize("convert", [torch.Tensor.cfloat, torch.Tensor.int])
@pytest.mark.parametrize("evaluation", ["loop", "factory"])
def test_outputs_that_are_no_real_numbers_are_rejected(convert, evaluation):
    class Converted(nn.Linear):
        def forward(self, x):
            return convert(super().forward(x.flatten(1)))

    with pytest.raises(ValueError, match="real floating-point"):
        compute(lambda: Converted(16, 1), 64, evaluation=evaluation)


def test_a_cache_that_is_no_network_stays_fixed():
    tables = []

    def factory():
        if not tables:
            tables.append(torch.randn(16, 16))
        network = plain()
        network.register_buffer("table", tables[0].clone())
        return network

    assert "table" not in Initialisation.of(factory).varying


def edited(gain=1.0, slope=0.01, clip=None, rare=0.0, width=24):
    """Networks that an edit of the factory changes, without a trace in its name."""

    class Clip(nn.Module):
        def forward(self, x):
            return x if clip is None else x.clamp(-clip, clip)

    def network():
        first = nn.Linear(16, width)
        last = nn.Linear(width, 10)
        layers = nn.Sequential(nn.Flatten(), Clip(), first, nn.LeakyReLU(slope), last)
        odd = (torch.rand(()) < 0.5).float() if rare else 0.0
        layers[2].weight.data.mul_(gain + rare * odd)
        return layers

    return network


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ({}, {"gain": 1.003}, "0.3 %"),
        ({}, {"slope": 0.05}, "negative_slope=0.05"),
        ({}, {"clip": 8.0}, "outputs of its first networks"),  # far from most inputs
        ({}, {"width": 25}, "num_parameters"),
        ({"rare": 0.001}, {"rare": 0.05}, "outputs of its first networks"),  # of half of them
    ],
    ids=str,
)
def test_a_checkpoint_of_an_edited_factory_is_rejected_and_the_change_is_named(
    before, after, named, tmp_path
):
    path = tmp_path / "run.ckpt"
    compute(edited(**before), 128, checkpoint=path)
    with pytest.raises(ValueError, match=rf"belongs to another computation \(.*{named}"):
        compute(edited(**after), 256, checkpoint=path)


def test_rounding_and_another_number_of_threads_do_not_look_like_an_edit(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    compute(edited(), 128, checkpoint=path)
    identity = Ensemble.identity

    def rounded(self):
        found = identity(self)
        noise = normal(*found["outputs"].shape)
        return found | {"outputs": found["outputs"] * (1 + 1e-5 * noise)}

    monkeypatch.setattr(Ensemble, "identity", rounded)
    assert compute(edited(), 256, checkpoint=path).provenance["num_networks"] == 256


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_a_factory_is_recognised_in_other_types_too(dtype, tmp_path):
    options = {"checkpoint": tmp_path / "run.ckpt", "dtype": dtype}
    compute(edited(), 128, **options)
    compute(edited(), 192, **options)
    with pytest.raises(ValueError, match="0.4 %"):
        compute(edited(1.004), 256, **options)
