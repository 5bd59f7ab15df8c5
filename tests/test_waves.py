import nads_book as nb
import numpy as np
import pytest
from nads_book.analysis import waves


@pytest.mark.stored
@pytest.mark.parametrize("name", ["logreg", "lenet", "vgg11", "resnet18", "densenet121"])
def test_strata_divide_the_grid_by_equal_steps_of_log_energy(name):
    energies, parts = waves.predicted_energies(name), waves.strata(name)
    assert sorted(k for part in parts for k in part) == sorted(nb.grid_frequencies())
    spans = [(min(energies[k] for k in part), max(energies[k] for k in part)) for part in parts]
    assert all(low > high for (low, _), (_, high) in zip(spans, spans[1:], strict=False))
    logs = np.log([*energies.values()])
    assert all(np.log(high / low) <= np.ptp(logs) / waves.NUM_STRATA + 1e-9 for low, high in spans)


@pytest.mark.parametrize("name", ["lenet", "vgg11", "resnet18", "densenet121"])
@pytest.mark.parametrize("count", [8, 16, 33, 130])
def test_any_beginning_is_a_sample_of_every_stratum(name, count):
    order, parts = waves.stratified_frequencies(name), waves.strata(name)
    assert sorted(order) == sorted(nb.grid_frequencies())
    drawn = [len(set(order[:count]) & set(part)) for part in parts]
    full = [number == len(part) for number, part in zip(drawn, parts, strict=True)]
    remaining = [number for number, exhausted in zip(drawn, full, strict=True) if not exhausted]
    assert min(drawn) >= 1 and max(remaining, default=0) - min(remaining, default=0) <= 1
    weights = waves.sampling_weights(name, order[:count])
    assert weights.sum() == pytest.approx(130) and (weights >= 1).all()


def test_weights_undo_what_the_strata_prefer():
    """Weighted samples of few easy and fewer hard waves have the mean of all waves on average."""
    name, rng = "vgg11", np.random.default_rng(0)
    energies = waves.predicted_energies(name)
    truth = {k: 0.5 + 0.5 * (energy > 0.01) for k, energy in energies.items()}
    parts = waves.strata(name)
    result = []
    for _ in range(400):
        sample = [part[i] for part in parts for i in rng.permutation(len(part))[:3]]
        weights = waves.sampling_weights(name, sample)
        result.append(np.average([truth[k] for k in sample], weights=weights))
    plain = np.mean([truth[k] for part in parts for k in part[:3]])
    expected = np.mean([*truth.values()])
    assert abs(np.mean(result) - expected) < 4 * np.std(result) / 20 + 1e-3 < abs(plain - expected)


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="nothing is predicted for 'alexnet'"):
        waves.predicted_energies("alexnet")
    with pytest.raises(ValueError, match="not on the published grid"):
        waves.sampling_weights("vgg11", [(1, 1)])
