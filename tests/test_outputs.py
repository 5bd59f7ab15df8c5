"""f(x) as a function of whatever the network returns, and how it is identified."""

import functools
import operator

import examples
import pytest
from examples import perceptron, same
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.runtime.provenance import function_identity

compute = functools.partial(examples.compute, image_shape=(1, 4, 4))
three_logits = functools.partial(perceptron, 16, 8, 3)
ESTIMATORS = {
    "smoothed": nc.SmoothedGradient(4),
    "point": nc.PointGradient(),
    "dipole": nc.Dipole(1.0),
    "mixed": nc.MixedDerivative(4),
}


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
    options = {"estimator": ESTIMATORS[estimator], "evaluation": evaluation}
    expected = compute(lambda: nn.Sequential(three_logits(), Margin()), 32, **options)
    result = compute(three_logits, 32, output=margin, **options)
    assert same(result, expected)


@pytest.mark.parametrize("evaluation", ["loop", "vmap", "factory"])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_network_returns(kind, evaluation):
    wrap, output = KINDS[kind]
    expected = compute(three_logits, 32, output=margin, evaluation=evaluation)
    result = compute(lambda: Wrapped(wrap), 32, output=output, evaluation=evaluation)
    assert_close(result.eigenvalues, expected.eigenvalues)
    assert_close(result.directions[:4], expected.directions[:4], atol=1e-4, rtol=0)


def test_an_index_is_what_it_was():
    indexed, selected = (
        compute(three_logits, 16, output=output, estimator=ESTIMATORS["smoothed"])
        for output in (2, lambda y: y[:, 2])
    )
    assert same(indexed, selected)
    assert indexed.provenance["output"] == 2
    assert selected.provenance["output"].startswith("test_outputs:test_an_index_is_what_it_was")


def test_a_last_layer_of_zeros_in_a_dictionary_is_drawn_afresh():
    def silent():
        network = Wrapped(KINDS["dict"][0])
        nn.init.zeros_(network.body[3].weight)
        return network

    with pytest.raises(ValueError, match="does not depend on its input,.*reinit_readout=True"):
        compute(silent, 16, output=KINDS["dict"][1])
    fresh = compute(silent, 16, output=KINDS["dict"][1], reinit_readout=True)
    assert fresh.eigenvalues[0] > 0 and fresh.provenance["reinit_readout"] is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"'logits': \(2, 3\).*output='logits.0'"),
        ({"output": lambda y: y["logits"]}, r"\(K,\), .*K = 2 it returned \(2, 3\)"),
        ({"output": lambda y: 3.0}, "returned float"),
        ({"output": lambda y: y["logit"]}, r"'logits': \(2, 3\).*'logit'"),
        ({"output": "logits.9"}, r"logits\.9.*\(2, 3\)"),
        ({"output": lambda y: 0 * y["logits"].sum(1), "name": "tiny"}, "of tiny "),
        (
            {"output": KINDS["dict"][1], "estimator": nc.SmoothedGradient(4, readouts=2)},
            "readouts=1",
        ),
    ],
    ids=lambda value: None,
)
def test_an_unsuitable_output_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        compute(lambda: Wrapped(KINDS["dict"][0]), 16, **options)


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
    def run(output, path="run.ckpt", count=64):
        return compute(three_logits, count, output=output, checkpoint=tmp_path / path)

    run(lambda y: y[:, 0] - y[:, 1])
    more = run(lambda y: y[:, 0] - y[:, 1], count=128)
    assert same(more, compute(three_logits, 128, output=margin))
    first, second = (lambda y, last=last: y[:, 0] - y[:, last] for last in (1, 2))
    run(first, "scope.ckpt")
    with pytest.raises(ValueError, match="outputs of its first networks differ"):
        run(second, "scope.ckpt")
