"""f(x) as a function of whatever the network returns, how it is identified, and the name of
the architecture.
"""

import functools
import operator

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.runtime.provenance import function_identity

SHAPE = (1, 4, 4)
OPTIONS = {"image_shape": SHAPE, "device": "cpu", "progress": False}
ESTIMATORS = {
    "smoothed": nc.SmoothedGradient(4),
    "point": nc.PointGradient(),
    "dipole": nc.Dipole(1.0),
    "mixed": nc.MixedDerivative(4),
}


def three_logits():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))


class Answer(dict):
    """A dictionary with attributes, as the models of some libraries return."""

    logits = property(operator.itemgetter("logits"))


class Wrapped(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.body = three_logits()
        self.wrap = wrap

    def forward(self, x):
        return self.wrap(self.body(x))


class Margin(nn.Module):
    """The margin as a layer: what a function of the output has to agree with."""

    def forward(self, y):
        return y[:, 0] - y[:, 1]


def margin(logits):
    return logits[:, 0] - logits[:, 1]


KINDS = {
    "dict": (lambda y: {"loss": None, "logits": y}, lambda y: margin(y["logits"])),
    "tuple": (lambda y: (y.sum(), y), lambda y: margin(y[1])),
    "model output": (lambda y: Answer(logits=y), lambda y: margin(y.logits)),
    "image": (lambda y: y[:, :, None, None].expand(-1, -1, 2, 2), lambda y: margin(y[:, :, 1, 0])),
}


@pytest.mark.parametrize("evaluation", ["loop", "vmap", "factory"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_margin_as_function_and_as_layer_give_the_same_numbers(estimator, evaluation):
    options = OPTIONS | {"estimator": ESTIMATORS[estimator], "evaluation": evaluation}
    expected = nc.compute_nads(lambda: nn.Sequential(three_logits(), Margin()), 32, **options)
    result = nc.compute_nads(three_logits, 32, output=margin, **options)
    assert torch.equal(result.eigenvalues, expected.eigenvalues)
    assert torch.equal(result.directions, expected.directions)


@pytest.mark.parametrize("evaluation", ["loop", "vmap", "factory"])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_network_returns(kind, evaluation):
    wrap, output = KINDS[kind]
    options = OPTIONS | {"evaluation": evaluation}
    expected = nc.compute_nads(three_logits, 32, output=margin, **options)
    result = nc.compute_nads(lambda: Wrapped(wrap), 32, output=output, **options)
    assert_close(result.eigenvalues, expected.eigenvalues)
    assert_close(result.directions[:4], expected.directions[:4], atol=1e-4, rtol=0)


def test_an_index_is_what_it_was():
    options = {**OPTIONS, "estimator": nc.SmoothedGradient(4)}
    indexed = nc.compute_nads(three_logits, 16, output=2, **options)
    selected = nc.compute_nads(three_logits, 16, output=lambda y: y[:, 2], **options)
    assert torch.equal(indexed.directions, selected.directions)
    assert indexed.provenance["output"] == 2
    assert selected.provenance["output"].startswith("test_outputs:test_an_index_is_what_it_was")


def test_a_last_layer_of_zeros_in_a_dictionary_is_drawn_afresh():
    def silent():
        network = Wrapped(KINDS["dict"][0])
        nn.init.zeros_(network.body[3].weight)
        return network

    with pytest.raises(ValueError, match="does not depend on its input,.*reinit_readout=True"):
        nc.compute_nads(silent, 16, output=KINDS["dict"][1], **OPTIONS)
    fresh = nc.compute_nads(silent, 16, output=KINDS["dict"][1], reinit_readout=True, **OPTIONS)
    assert fresh.eigenvalues[0] > 0 and fresh.provenance["reinit_readout"] is True


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, r"'logits': \(2, 3\).*output='logits.0'"),
        ({"output": lambda y: y["logits"]}, ValueError, r"\(K,\), .*K = 2 it returned \(2, 3\)"),
        ({"output": lambda y: 3.0}, ValueError, "returned float"),
        ({"output": lambda y: y["logit"]}, ValueError, r"'logits': \(2, 3\).*'logit'"),
        ({"output": "logits.9"}, ValueError, r"logits\.9.*\(2, 3\)"),
        (
            {"output": KINDS["dict"][1], "estimator": nc.SmoothedGradient(4, readouts=2)},
            ValueError,
            "readouts=1",
        ),
    ],
    ids=lambda value: None,
)
def test_an_unsuitable_output_is_named(options, error, message):
    with pytest.raises(error, match=message):
        nc.compute_nads(lambda: Wrapped(KINDS["dict"][0]), 16, **(OPTIONS | options))


# --- identity


def test_the_identity_of_a_function_follows_its_code():
    first, same, other = (lambda y: y[:, 0]), (lambda y: y[:, 0]), lambda y: y[:, 1]
    assert function_identity(first) == function_identity(same) != function_identity(other)
    assert function_identity(margin).startswith("test_outputs:margin#")

    objects = {
        operator.itemgetter("a"): "operator:itemgetter",
        functools.partial(margin): "functools:partial",
    }
    assert [function_identity(each) for each in objects] == list(objects.values())


def test_a_checkpoint_resumes_with_the_same_function_only(tmp_path):
    def run(output, path="run.ckpt", count=64, name="three logits"):
        options = OPTIONS | {"checkpoint": tmp_path / path, "name": name}
        return nc.compute_nads(three_logits, count, output=output, **options)

    run(lambda y: y[:, 0] - y[:, 1])
    more = run(lambda y: y[:, 0] - y[:, 1], count=128)
    expected = nc.compute_nads(three_logits, 128, output=margin, **OPTIONS)
    assert torch.equal(more.directions, expected.directions)
    first, second = (lambda y, last=last: y[:, 0] - y[:, last] for last in (1, 2))
    run(first, "scope.ckpt")
    for shown, call in (
        ("output was '.*', now '.*'", lambda: run(lambda y: y[:, 0] - y[:, 2])),
        ("outputs of its first networks differ", lambda: run(second, "scope.ckpt")),
        ("architecture was 'three logits', now 'three'", lambda: run(first, name="three")),
    ):
        with pytest.raises(ValueError, match=f"belongs to another computation .*{shown}"):
            call()


# --- names


def test_the_name_of_a_lambda():
    for factory in (lambda: three_logits(), nc.LOGREG):
        named = nc.compute_nads(factory, 16, name="tiny", **OPTIONS)
        assert named.provenance["architecture"] == "tiny"
    with pytest.raises(ValueError, match="of tiny "):
        nc.compute_nads(three_logits, 8, name="tiny", output=lambda y: 0 * y.sum(1), **OPTIONS)
