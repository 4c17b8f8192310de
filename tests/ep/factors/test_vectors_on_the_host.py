"""Python functions of vectors that JAX cannot trace get whole vectors, one call each, in plates too."""

import numpy as np
import pytest

from meanmap import ep


@pytest.mark.parametrize("rows", [None, 3])
def test_a_density_of_a_vector_alone(rows):
    """Normal times normal: half of the variance, and the mean between both."""
    shapes = set()

    def log_density(theta):
        shapes.add(np.shape(theta))
        return -0.5 * float(np.sum((np.asarray(theta) - 1.0) ** 2))

    theta = ep.Variable("theta", ep.MultivariateNormal(np.array([0.0, 2.0]), np.eye(2)), plate=rows)
    post = ep.infer(ep.FactorGraph(ep.Density(log_density, theta)), rng=0)
    assert shapes == {(2,)}
    mean, cov = np.asarray(post["theta"].mean()), np.asarray(post["theta"].cov())
    np.testing.assert_allclose(mean, np.broadcast_to([0.5, 1.5], mean.shape), atol=0.05)
    np.testing.assert_allclose(cov, np.broadcast_to(0.5 * np.eye(2), cov.shape), atol=0.05)


def test_a_vector_beside_a_number():
    def log_density(scale, theta):
        assert np.shape(theta) == (2,)
        assert np.shape(scale) == ()
        return -0.5 * float(np.sum(np.asarray(theta)) - scale) ** 2

    theta = ep.Variable("theta", ep.MultivariateNormal(np.zeros(2), np.eye(2)))
    scale = ep.Variable("scale", ep.Normal(1.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(log_density, scale, theta)), rng=0)
    # All is normal: the sum less the scale has the mean -1 and the variance 3, and is seen with the variance 1.
    assert post["scale"].mean() == pytest.approx(1 - 1 / 4, abs=0.05)
    np.testing.assert_allclose(post["theta"].mean(), [1 / 4, 1 / 4], atol=0.05)
