from types import SimpleNamespace

import pytest
import torch
from convergence import assert_mean, assert_rate
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import nads_core as nc
from nads_core.directions import Draw, Estimator, Passes
from nads_core.directions.contributions import fitting_batch
from nads_core.directions.moments import split_halves
from nads_core.networks.ensembles import Ensemble

SHAPE, D = (1, 5, 4), 20
ESTIMATORS = [
    nc.PointGradient(), nc.SmoothedGradient(4), nc.SmoothedGradient(3, antithetic=False), nc.Dipole(),
    nc.MixedDerivative(4), nc.MixedDerivative(1, antithetic=False),
]  # fmt: skip


class Linear(nn.Module):
    """f(x) = w . x + b."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(D, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.flatten(1))


class Quadratic(nn.Module):
    """f(x) = (a . x)(b . x)."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (
            nn.Parameter(torch.empty(D).normal_()),
            nn.Parameter(torch.empty(D).normal_()),
        )

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) @ self.a) * (x.flatten(1) @ self.b)


class Cubic(Quadratic):
    """f(x) = (a . x)^3 + b . x."""

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) @ self.a) ** 3 + x.flatten(1) @ self.b


class Kinks(Quadratic):
    """f(x) = sum_i a_i relu(x_i)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).relu() @ self.a


class OneNeuron(Quadratic):
    """f(x) = relu(a . x)."""

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) @ self.a).relu()


class LinearTwoLayers(nn.Module):
    """f(x) = a . B x."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(D, 3, bias=False), nn.Linear(3, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x.flatten(1)))


def convnet() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 2))


def convnet_with_one_output() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 1))


def drawn(factory, estimator, block: int = 0, count: int = 6) -> tuple[Ensemble, Draw, Tensor]:
    ensemble = Ensemble(factory, SHAPE, seed=1, dtype=torch.float64)
    draw = estimator.draw(ensemble, block)[:count]
    return ensemble, draw, estimator.contributions(ensemble, draw)


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --- closed form


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=repr)
def test_a_linear_network_has_its_weights_as_gradient(estimator):
    _, draw, g = drawn(Linear, estimator)
    close(g, draw.state["linear.weight"].expand(g.shape))


@pytest.mark.parametrize("estimator", ESTIMATORS[4:], ids=repr)
def test_a_linear_network_has_its_probe_as_mixed_derivative(estimator):
    _, draw, g = drawn(Linear, estimator)
    close(g, draw.probes["linear.weight"].expand(g.shape))


def quadratic_parts(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    a, b = draw.state["a"][:, None], draw.state["b"][:, None]  # (B, 1, D)
    return draw.inputs.flatten(2), a, b


def along(vector: Tensor, x: Tensor) -> Tensor:
    return (vector * x).sum(-1, keepdim=True)


@pytest.mark.parametrize(
    "estimator",
    [nc.PointGradient(), nc.SmoothedGradient(3, antithetic=False), nc.Dipole()],
    ids=repr,
)
def test_gradient_of_a_quadratic_network(estimator):
    _, draw, g = drawn(Quadratic, estimator)
    x, a, b = quadratic_parts(draw)
    close(
        g, in_halves(a * along(b, x) + b * along(a, x))
    )  # central differences are exact up to second order


def test_opposite_inputs_cancel_the_gradient_of_an_even_network():
    _, _, g = drawn(Quadratic, nc.SmoothedGradient(4))
    assert not g.any()


def test_mixed_derivative_of_a_quadratic_network():
    _, draw, g = drawn(Quadratic, nc.MixedDerivative(3, antithetic=False))
    x, a, b = quadratic_parts(draw)
    ra, rb = draw.probes["a"][:, None], draw.probes["b"][:, None]
    close(g, in_halves(ra * along(b, x) + a * along(rb, x) + rb * along(a, x) + b * along(ra, x)))


def test_mixed_derivative_of_a_linear_network_with_two_layers():
    _, draw, g = drawn(LinearTwoLayers, nc.MixedDerivative(2))
    first, second = draw.state["first.weight"], draw.state["second.weight"]  # (B, 3, D), (B, 1, 3)
    close(g, draw.probes["second.weight"] @ first + second @ draw.probes["first.weight"])


@pytest.mark.parametrize("step", [0.3, 1.0, 100.0])
def test_dipoles_of_a_network_with_kinks(step):
    _, draw, g = drawn(Kinks, nc.Dipole(step=step))
    x, a, _ = quadratic_parts(draw)
    share = ((x + step) / (2 * step)).clamp(0, 1)  # of the arm where x_i > 0
    close(g, a * share)


def test_dipoles_of_a_cubic_network_see_third_derivatives():
    _, draw, g = drawn(Cubic, nc.Dipole(step=2.0))
    x, a, b = quadratic_parts(draw)
    close(g, b + 3 * a * along(a, x) ** 2 + 2.0**2 * a**3)


def test_opposite_inputs_smooth_one_neuron_without_noise():
    _, draw, g = drawn(OneNeuron, nc.SmoothedGradient(6))
    close(g, (draw.state["a"][:, None] / 2).expand_as(g))  # the gate is open for x or for -x


@pytest.mark.parametrize("antithetic", [True, False])
def test_smoothed_gradient_of_a_cubic_network(antithetic):
    std = 0.5
    ensemble, draw, g = drawn(
        Cubic, nc.SmoothedGradient(2000, input_std=std, antithetic=antithetic), count=2
    )
    a, b = draw.state["a"], draw.state["b"]
    expected = b + 3 * std**2 * a.square().sum(1, keepdim=True) * a  # E 3 a (a . x)^2 + b
    gradients = ensemble.input_gradients(draw.state, draw.inputs).flatten(2)  # (2, 2000, D)
    gradients = (gradients[:, ::2] + gradients[:, 1::2]) / 2 if antithetic else gradients
    close(g, gradients.unflatten(1, (2, -1)).mean(2))
    for index in range(2):
        assert_mean(gradients[index], expected[index])


def test_dipoles_of_more_pixels_than_one_chunk():
    estimator, shape = nc.Dipole(), (2, 17, 20)
    ensemble = Ensemble(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(680, 1)), shape, dtype=torch.float64
    )
    draw = estimator.draw(ensemble, 0)[:2]
    close(estimator.contributions(ensemble, draw), draw.state["1.weight"])


# --- naive twins


def naive(estimator, module: nn.Module, x: Tensor, probe: dict[str, Tensor] | None) -> Tensor:
    """One network's vector before averaging, one input at a time: (K, C, H, W) -> (K, D)."""
    rows = []
    for point in x:
        if isinstance(estimator, nc.Dipole):
            arms = torch.eye(D, dtype=x.dtype).view(D, *SHAPE) * estimator.step
            slopes = [
                (module((point + arm)[None]) - module((point - arm)[None]))[0, 0]
                / (2 * estimator.step)
                for arm in arms
            ]
            rows.append(torch.stack(slopes).detach())
            continue
        point = point.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(module(point[None])[0, 0], point, create_graph=True)
        if probe is None:
            rows.append(gradient.detach().flatten())
            continue
        row = []
        for slope in gradient.flatten():
            parts = torch.autograd.grad(
                slope, list(module.parameters()), retain_graph=True, allow_unused=True
            )
            row.append(
                sum(
                    (p * r).sum()
                    for p, r in zip(parts, probe.values(), strict=True)
                    if p is not None
                )
            )
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators_against_one_input_at_a_time(estimator):
    _, draw, g = drawn(convnet, estimator, block=1, count=3)
    for b in range(3):
        module = convnet().double()
        module.load_state_dict({name: tensor[b] for name, tensor in draw.state.items()})
        probe = (
            None
            if draw.probes is None
            else {name: draw.probes[name][b] for name, _ in module.named_parameters()}
        )
        rows = naive(estimator, module, draw.inputs[b], probe)
        if getattr(estimator, "antithetic", False):
            rows = torch.stack([(rows[i] + rows[i + 1]) / 2 for i in range(0, len(rows), 2)])
        close(g[b], in_halves(rows), 1e-8)


def in_halves(rows: Tensor) -> Tensor:
    """(..., K, D) -> (..., 1 or 2, D): an estimator that averages contributes two halves at most."""
    return torch.stack(split_halves(rows), dim=-2)[..., : rows.shape[-2], :]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_vmap_gives_the_same_contributions(estimator):
    ensemble, draw, g = drawn(convnet, estimator)
    batched = Ensemble(convnet, SHAPE, seed=1, dtype=torch.float64, evaluation="vmap")
    close(estimator.contributions(batched, draw), g)


# --- properties


@pytest.mark.parametrize(
    ("estimator", "count"), list(zip(ESTIMATORS, (1, 2, 2, 1, 2, 1), strict=True)), ids=repr
)
def test_number_of_contributions(estimator, count):
    _, draw, g = drawn(convnet, estimator)
    assert g.shape == (6, count, D)
    assert len(draw) == 6


@pytest.mark.parametrize("estimator", [*ESTIMATORS, nc.SmoothedGradient(4, readouts=2)], ids=repr)
def test_an_estimator_says_what_it_does(estimator, monkeypatch):
    """Passes are counted where they are made: evaluations, ways back from each readout, and mixed derivatives."""
    counts = {"forward": 0, "backward": 0, "mixed": 0}

    def outputs(ensemble, state, images):
        counts["forward"] += images.shape[1]
        return evaluate(ensemble, state, images)

    def input_gradients(ensemble, state, images, readouts=None, mixing=None):
        counts["forward"] += images.shape[1]
        counts["backward"] += images.shape[1] * (1 if readouts is None else readouts.shape[1])
        return differentiate(ensemble, state, images, readouts, mixing)

    def mixed_derivatives(ensemble, state, images, probes):
        counts["forward"] += images.shape[1]
        counts["mixed"] += images.shape[1]
        return differentiate_twice(ensemble, state, images, probes)

    evaluate, differentiate, differentiate_twice = (
        Ensemble.outputs, Ensemble.input_gradients, Ensemble.mixed_derivatives,
    )  # fmt: skip
    for replacement in (outputs, input_gradients, mixed_derivatives):
        monkeypatch.setattr(Ensemble, replacement.__name__, replacement)
    _, _, g = drawn(convnet_with_one_output, estimator, count=3)
    assert g.shape == (3 * estimator.readouts, estimator.num_contributions, D)
    assert Passes(**counts) == estimator.passes(D)


class Doubled(Estimator):
    """The minimal estimator."""

    def draw(self, ensemble, block):
        return nc.PointGradient().draw(ensemble, block)

    def contributions(self, ensemble, draw):
        return 2 * nc.PointGradient().contributions(ensemble, draw)


def test_an_estimator_of_ones_own_is_one_gradient_a_network_unless_it_says_more():
    own, point = Doubled(), nc.PointGradient()
    for name in ("readouts", "num_contributions"):
        assert getattr(own, name) == getattr(point, name)
    assert own.passes(D) == point.passes(D) == Passes(forward=1, backward=1)

    class Several(Doubled):
        readouts = 3

    assert Several().passes(D) == Passes(forward=1, backward=3)
    with pytest.raises(TypeError, match="abstract"):
        Estimator()


@pytest.mark.parametrize("given", [nc.SmoothedGradient, object(), "point"])
def test_what_is_no_estimator_is_rejected(given):
    with pytest.raises(TypeError, match="SmoothedGradient"):
        nc.compute_nads(
            convnet, 70, estimator=given, image_shape=SHAPE, device="cpu", progress=False
        )


class Scaled(Estimator):
    """An estimator without a repr of its own."""

    def __init__(self, scale):
        self.scale = scale

    draw = Doubled.draw

    def contributions(self, ensemble, draw):
        return self.scale * nc.PointGradient().contributions(ensemble, draw)


def test_an_estimator_without_a_repr_resumes_from_its_checkpoint(tmp_path):
    options = {"image_shape": SHAPE, "device": "cpu", "progress": False}
    path, kept = (
        tmp_path / "state.ckpt",
        Scaled(2),
    )  # `kept` stays alive, so that no other has its address
    nc.compute_nads(convnet, 64, estimator=kept, checkpoint=path, **options)
    resumed = nc.compute_nads(convnet, 128, estimator=Scaled(2), checkpoint=path, **options)
    assert resumed.provenance["estimator"] == "Scaled(scale=2)"
    assert torch.equal(
        resumed.eigenvalues, nc.compute_nads(convnet, 128, estimator=kept, **options).eigenvalues
    )
    with pytest.raises(ValueError, match="estimator"):
        nc.compute_nads(convnet, 256, estimator=Scaled(3), checkpoint=path, **options)


def test_a_gpu_evaluates_fewer_networks_of_an_estimator_with_more_inputs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (8 * 10**10, 0))
    on_a_gpu = SimpleNamespace(
        device=torch.device("cuda"), image_shape=(1, 32, 32), num_parameters=10**6, block_size=2
    )
    batch = {
        estimator: fitting_batch(on_a_gpu, estimator)
        for estimator in (nc.PointGradient(), nc.MixedDerivative(), nc.Dipole(),
                          *(nc.SmoothedGradient(n, readouts=r) for n, r in ((16, 1), (16, 8), (64, 1))))
    }  # fmt: skip
    sixteen = 10**10 // (4 * (3 * 10**6 + 16 * 64 * 1024 * 40))
    assert batch[nc.SmoothedGradient(16)] == batch[nc.MixedDerivative(16)] == sixteen
    assert batch[nc.SmoothedGradient(64)] < batch[nc.SmoothedGradient(16, readouts=8)] < sixteen
    assert 1 < batch[nc.Dipole()] < sixteen < batch[nc.PointGradient()]


@pytest.mark.parametrize(
    "estimator", [nc.SmoothedGradient(6, 2.5), nc.MixedDerivative(6, 2.5)], ids=repr
)
def test_inputs_come_in_opposite_pairs_of_the_given_deviation(estimator):
    inputs = estimator.draw(Ensemble(convnet, SHAPE), 0).inputs
    assert torch.equal(inputs[:, ::2], -inputs[:, 1::2])
    assert_mean(inputs[:, ::2].flatten(), 0.0)
    assert_mean(inputs[:, ::2].flatten().square(), 2.5**2)
    assert_mean((inputs[:, 0] * inputs[:, 2]).flatten(), 0.0)  # pairs are independent


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_draw_is_fixed_by_seed_and_block(estimator):
    first, second = (estimator.draw(Ensemble(convnet, SHAPE, seed=2), 3) for _ in range(2))
    other = estimator.draw(Ensemble(convnet, SHAPE, seed=2), 4)
    assert torch.equal(first.inputs, second.inputs)
    assert not torch.equal(first.inputs, other.inputs)
    if first.probes is not None:
        for name in first.probes:
            assert torch.equal(first.probes[name], second.probes[name])
            assert not torch.equal(first.probes[name], other.probes[name])
            assert_mean(first.probes[name].flatten().square(), 1.0)


@given(cuts=st.lists(st.integers(1, 5), max_size=8), index=st.sampled_from(range(len(ESTIMATORS))))
def test_contributions_of_a_joined_draw_are_those_of_its_parts(cuts, index):
    estimator, ensemble, draw, g = PREPARED[index]
    ends = [0]
    for cut in cuts:
        ends.append(min(len(draw), ends[-1] + cut))
    parts = [draw[a:b] for a, b in zip(ends, [*ends[1:], len(draw)], strict=True) if b > a]
    joined = Draw.cat(parts)
    assert torch.equal(joined.inputs, draw.inputs)
    assert all(torch.equal(joined.state[name], draw.state[name]) for name in draw.state)
    assert torch.equal(torch.cat([estimator.contributions(ensemble, part) for part in parts]), g)
    assert torch.equal(estimator.contributions(ensemble, joined), g)


PREPARED = [(estimator, *drawn(convnet, estimator)) for estimator in ESTIMATORS]


# --- convergence


@pytest.mark.parametrize("antithetic", [True, False])
def test_noise_of_the_smoothed_gradient_falls_with_the_number_of_inputs(antithetic):
    counts = [4, 16, 64]
    errors = []
    for replication in range(40):
        ensemble = Ensemble(Cubic, SHAPE, seed=replication, dtype=torch.float64)
        row = []
        for count in counts:
            estimator = nc.SmoothedGradient(count, antithetic=antithetic)
            draw = estimator.draw(ensemble, 0)[:20]
            a = draw.state["a"]
            expected = draw.state["b"] + 3 * a.square().sum(1, keepdim=True) * a
            scale = a.norm(dim=1, keepdim=True) ** 3
            row.append(
                (((estimator.contributions(ensemble, draw).mean(1) - expected) / scale) ** 2)
                .mean()
                .sqrt()
            )
        errors.append(torch.stack(row))
    assert_rate(counts, torch.stack(errors), -0.5)


# --- bad arguments


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (nc.PointGradient, {"input_std": 0.0}, "input_std must be positive, got 0.0"),
        (nc.PointGradient, {"input_std": float("nan")}, "input_std must be positive, got nan"),
        (nc.SmoothedGradient, {"num_inputs": 0}, "num_inputs must be a positive integer, got 0"),
        (
            nc.SmoothedGradient,
            {"num_inputs": 3},
            "num_inputs must be an even integer when antithetic, got 3",
        ),
        (
            nc.SmoothedGradient,
            {"num_inputs": 2.5, "antithetic": False},
            "num_inputs must be an? .*integer.*, got 2.5",
        ),
        (
            nc.SmoothedGradient,
            {"num_inputs": "many"},
            "num_inputs must be a positive integer, got 'many'",
        ),
        (nc.SmoothedGradient, {"input_std": -1.0}, "input_std must be positive, got -1.0"),
        (nc.MixedDerivative, {"num_inputs": -2}, "num_inputs must be a positive integer, got -2"),
        (
            nc.MixedDerivative,
            {"num_inputs": 5},
            "num_inputs must be an even integer when antithetic, got 5",
        ),
        (nc.Dipole, {"step": 0.0}, "step must be positive, got 0.0"),
        (nc.Dipole, {"input_std": -1.0}, "input_std must be positive, got -1.0"),
    ],
    ids=str,
)
def test_bad_arguments(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        estimator(**options)
