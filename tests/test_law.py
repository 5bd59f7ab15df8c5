"""The law with the filters' gain: what a filter responds to, and predicted and measured
accuracies.
"""

import operator

import numpy as np
import pytest
import torch
from nads_book.analysis.prediction import (
    GainCorrection,
    Responses,
    filter_gain,
    predicted_accuracy,
    signal_to_noise,
)
from nads_book.experiments import load_nads, load_study
from numpy.testing import assert_allclose

GENERATOR = torch.Generator().manual_seed(0)


def test_the_gain_is_that_of_the_best_filter():
    direction = load_nads("lenet").directions[[40]]
    patches = torch.nn.functional.unfold(direction, 5)[0]
    best = torch.linalg.eigh(patches @ patches.T).eigenvectors[:, -1].view(1, 1, 5, 5)
    heard = float(torch.nn.functional.conv2d(direction, best).square().sum())
    assert heard == pytest.approx(float(filter_gain(direction)[0]), rel=1e-4)
    others = torch.randn(100, 1, 5, 5, generator=GENERATOR)
    others /= others.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    responses = torch.nn.functional.conv2d(direction, others).square().sum((2, 3))
    assert float(responses.max()) <= heard + 1e-6


def test_responses_of_a_covariance_are_those_of_its_eigenpairs():
    nads = load_nads("lenet")
    random = torch.randn(5, 1, 32, 32, generator=GENERATOR)
    directions = torch.cat(
        [nads.directions[[3, 200]], random / random.flatten(1).norm(dim=1).view(-1, 1, 1, 1)]
    )
    covariance = ((nads.basis * nads.eigenvalues) @ nads.basis.T).double()
    for num_train, noise_std in ((100, 1.0), (10_000, 3.0)):
        found = Responses.of(covariance, directions).signal_to_noise(num_train, noise_std)
        expected = signal_to_noise(nads, directions, num_train, noise_std)
        assert_allclose(found, expected, rtol=1e-3)


def test_a_fit_finds_the_powers_that_made_accuracies():
    rng = np.random.default_rng(0)
    ratios = rng.uniform(0.2, 1.5, 50)
    gains = rng.uniform(1, 10, 50)
    true = GainCorrection((-0.5, 0.4, -0.2))
    fit = GainCorrection.fit(ratios, gains, true.accuracies(ratios, gains))
    assert_allclose(fit.powers, true.powers, atol=1e-6)
    with pytest.raises(ValueError, match="three accuracies .*got 0"):
        GainCorrection.fit(ratios, gains, np.full(50, 0.5))


def test_what_was_predicted_follows_from_what_was_known():
    study = load_study("law.json")
    trained = load_study("law-trained.json")
    prediction = study["prediction"]
    families = study["candidates"]["families"]
    seen = (
        np.concatenate([families[family][name] for family in ("fig6-lenet", "fig1-lenet")])
        for name in ("independent", "gain", "accuracy")
    )
    powers = GainCorrection.fit(*seen)
    assert_allclose(powers.powers, prediction["powers"], atol=1e-3)
    nads = load_nads("lenet", prediction["nads"]["version"])
    assert nads.fingerprint == prediction["nads"]["fingerprint"]
    names = ("z", "gain", "index", "law", "with_gain")
    z, gain, index, law, with_gain = (
        np.array([row[name] for row in prediction["rows"]]) for name in names
    )
    assert_allclose(filter_gain(nads.directions[index]), gain, rtol=1e-3)
    assert_allclose(predicted_accuracy(z), law, atol=1e-4)
    corrected = GainCorrection(tuple(prediction["powers"])).accuracies(z, gain)
    assert_allclose(corrected, with_gain, atol=1e-4)
    of_row = operator.itemgetter("index", "num_train", "noise_std")
    assert set(map(of_row, trained["rows"])) <= set(map(of_row, prediction["rows"]))


def test_stored_law_along_published_directions_is_that_of_the_shipped_nads(published):
    study = load_study("law-published.json")
    for name, one in study["laws"].items():
        nads = load_nads(name, one["version"])
        keys = one["key"]
        first = slice(0, 40)
        stored = Responses(np.array(one["energies"]), np.array(one["squares"]), 1.0)
        law = signal_to_noise(nads, published(name).float()[keys[first]], 10_000, 1.0)
        assert stored.signal_to_noise(10_000, 1.0)[first] == pytest.approx(law, rel=1e-3)
    assert {row["index"] for row in study["rows"]} <= set(study["laws"]["vgg11"]["key"])
