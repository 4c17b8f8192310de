"""Learned likelihoods against the true ones."""

import numpy as np
import pytest

from meanmap import bp
from meanmap.bp.edges.observations import read_likelihood
from meanmap.core.errors import InputError, KindError, ParameterError, ShapeError

GRID = np.linspace(-1.5, 1.5, 41)[:, None]


def linear_gaussian(seed=0, m=1500, noise=0.7):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    return x, 1.5 * x + 0.4 + noise * rng.normal(size=m)


def correlation(likelihood, y, truth):
    values = likelihood.at(y, GRID)
    assert (values >= 0).all()
    np.testing.assert_allclose(values.max(axis=1), 1)
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(values, truth, strict=True)])


@pytest.mark.parametrize(
    ("kind", "least"), [(bp.NoiseLikelihood, 0.995), (bp.LearnedLikelihood, 0.95), (bp.CentredLikelihood, 0.995)]
)
def test_a_linear_gaussian_likelihood_is_learned(kind, least):
    x, y = linear_gaussian()
    seen = np.array([-1.0, 0.4, 1.5])
    truth = np.exp(-((seen[:, None] - 1.5 * GRID[:, 0] - 0.4) ** 2) / (2 * 0.7**2))
    assert correlation(kind.fit(x, y), seen, truth) > least


def test_noise_is_measured_and_a_straight_line_is_kept_straight():
    likelihood = bp.NoiseLikelihood.fit(*linear_gaussian(1))
    assert abs(likelihood.covariance[0, 0] - 0.49) < 5 * 0.49 * np.sqrt(2 / 1500)
    assert likelihood.regression.features is None


def test_a_curve_is_followed():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1.5, 1.5, 1000)
    likelihood = bp.NoiseLikelihood.fit(x, x**2 + 0.2 * rng.normal(size=1000))
    assert likelihood.regression.features is not None
    values = likelihood.at([1.0], np.array([[-1.0], [0.0], [1.0]]))[0]
    assert values[1] < 0.01 < 0.8 < min(values[0], values[2])


def test_vectors_with_correlated_noise():
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    common = rng.normal(size=2000)
    y = np.stack([x + common, common], axis=1) + 0.1 * rng.normal(size=(2000, 2))
    # The second column tells the noise of the first: only their difference says something about x.
    values = bp.NoiseLikelihood.fit(x, y).at(np.array([[3.0, 2.5]]), GRID)[0]
    assert abs(GRID[values.argmax(), 0] - 0.5) < 0.1


def test_a_guess_does_not_count_the_prior_twice():
    rng = np.random.default_rng(4)
    x = rng.normal(size=4000)
    y = x + 2 * rng.normal(size=4000)
    values = bp.CentredLikelihood.fit(x, y).at([2.0], np.linspace(-4, 6, 201)[:, None])[0]
    # The guess for y = 2 is .4, but the likelihood of x is largest at 2: slope by regression of a guess with r² = .2.
    assert abs(np.linspace(-4, 6, 201)[values.argmax()] - 2.0) < 0.4


def test_labels_are_observations():
    rng = np.random.default_rng(5)
    x = rng.normal(size=800)
    label = np.where(x + 0.3 * rng.normal(size=800) > 0, "up", "down")
    values = bp.LearnedLikelihood.fit(x, label).at(["up", "down"], np.array([[-1.0], [1.0]]))
    assert values[0, 1] > 5 * values[0, 0]
    assert values[1, 0] > 5 * values[1, 1]


def test_guesses_of_whole_groups_left_out_are_not_too_sure():
    """Each of 30 pictures has a shade of its own, which features show: within a picture guessing is easy."""
    rng = np.random.default_rng(6)
    picture = np.repeat(np.arange(20), 25)
    x = rng.normal(size=20)[picture] + 0.5 * rng.normal(size=500)
    features = rng.normal(size=(20, 2))[picture]
    alone, together = (bp.CentredLikelihood.fit(x, features, groups=g) for g in (None, picture))
    # Of a picture that was not seen, features say nothing: its likelihoods should be flat.
    least = [likelihood.at(features[::25], GRID).min(axis=1).mean() for likelihood in (alone, together)]
    assert least[0] < 0.2
    assert least[1] > 0.4
    with pytest.raises(ShapeError, match="groups has shape"):
        bp.CentredLikelihood.fit(x, features, groups=picture[:5])
    with pytest.raises(InputError, match="one group only"):
        bp.CentredLikelihood.fit(x, features, groups=np.zeros(500))


def test_a_tempered_likelihood_is_a_power():
    likelihood = bp.NoiseLikelihood.fit(*linear_gaussian(m=50))
    tempered = bp.Tempered(likelihood, 0.3)
    np.testing.assert_allclose(tempered.at([0.5], GRID), likelihood.at([0.5], GRID) ** 0.3)
    assert tempered.width == 1
    with pytest.raises(ParameterError, match="power is 0"):
        bp.Tempered(likelihood, 0)


def test_bad_observations_are_refused():
    x, y = linear_gaussian(m=50)
    with pytest.raises(ShapeError, match="hidden has 50 points and observed has 49"):
        bp.NoiseLikelihood.fit(x, y[:-1])
    with pytest.raises(ShapeError, match="hidden has 50 points and observed has 49"):
        bp.LearnedLikelihood.fit(x, y[:-1])
    with pytest.raises(ShapeError, match="2 columns; expected 1"):
        bp.NoiseLikelihood.fit(x, y).at(np.zeros((3, 2)), GRID)
    with pytest.raises(KindError, match=r"expected mm\.bp\.NoiseLikelihood"):
        read_likelihood("gaussian")
