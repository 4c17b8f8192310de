import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core.errors import ParameterError, ShapeError
from meanmap.families import Beta, MultivariateNormal, Normal
from meanmap.features import Fourier
from meanmap.kernels import MeanVariance


def test_product_of_gaussians_of_means_and_variances(tuples):
    kernel = MeanVariance((1.5, 0.2), (2.0, 0.05))
    expected = np.ones((40, 40))
    for law, mean_width, variance_width in zip(tuples, (1.5, 0.2), (2.0, 0.05), strict=True):
        expected *= np.exp(-((law.mean()[:, None] - law.mean()) ** 2) / (2 * mean_width**2))
        expected *= np.exp(-((law.var()[:, None] - law.var()) ** 2) / (2 * variance_width**2))
    np.testing.assert_allclose(kernel(tuples), expected, atol=1e-13)
    assert np.linalg.eigvalsh(kernel(tuples)).min() > -1e-12
    named = MeanVariance({"z": 1.5, "p": 0.2}, {"z": 2.0, "p": 0.05})
    np.testing.assert_allclose(named({"z": tuples[0], "p": tuples[1]}), expected, atol=1e-13)
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            jax.jit(lambda x: kernel(x))(jax.tree.map(jnp.asarray, tuples)), expected, atol=1e-12
        )


def test_bags_and_vectors(bags):
    means = np.array([bag.mean(axis=0) for bag in bags])
    variances = np.array([bag.var(axis=0) for bag in bags])
    difference = ((means[:, None] - means) ** 2 / np.array([1.0, 2.0]) ** 2).sum(-1)
    difference += ((variances[:, None] - variances) ** 2).sum(-1)
    np.testing.assert_allclose(MeanVariance([1.0, 2.0])(bags), np.exp(-difference / 2), atol=1e-13)
    laws = MultivariateNormal(means, np.eye(2) * np.ones((12, 1, 1)))
    assert MeanVariance()(laws)[0, 1] == pytest.approx(np.exp(-((means[0] - means[1]) ** 2).sum() / 2))


def test_widths_at_median_distances(tuples):
    kernel = MeanVariance.at_scale_of(tuples, coordinate="x")
    upper = np.triu_indices(40, 1)
    for law, mean_width, variance_width in zip(tuples, kernel.mean_width, kernel.variance_width, strict=True):
        assert mean_width == pytest.approx(np.median(np.abs(law.mean()[:, None] - law.mean())[upper]))
        assert variance_width == pytest.approx(np.median(np.abs(law.var()[:, None] - law.var())[upper]))
    named = MeanVariance.at_scale_of({"z": tuples[0], "p": tuples[1]})
    assert named.names == ("p", "z")
    assert named.coordinate == ("logit", "x")
    assert MeanVariance.at_scale_of(tuples[0]).mean_width.shape == (1,)


def test_fourier_features_approximate_it(tuples):
    kernel = MeanVariance.at_scale_of(tuples)
    phi = Fourier.draw(kernel, like=tuples, n_features=6000, rng=0)(tuples)
    assert np.sqrt(np.mean((phi @ phi.T - kernel(tuples)) ** 2)) < 0.015


def test_bad_settings_are_named():
    with pytest.raises(ShapeError, match="mean_width has 2 entries but x has 1 columns"):
        MeanVariance([1.0, 2.0])(Normal([0.0], 1.0))
    with pytest.raises(ParameterError, match="different variables"):
        MeanVariance({"a": 1.0}, {"b": 1.0})
    with pytest.raises(ParameterError, match="coordinate of x is 'log'"):
        MeanVariance(coordinate="log")(Beta([1.0], 1.0))
