"""Priors that are wider than a number has digits: right where the likelihood determines the answer, else in doubt."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep


def posterior(log_factor, *variances):
    unknowns = [ep.Variable(name, ep.Normal(0.0, v)) for name, v in zip("ab", variances, strict=False)]
    return ep.infer(ep.FactorGraph(ep.Density(log_factor, *unknowns, name="mine")))


def near_1(a):
    return -((a - 1) ** 2) / 2


@pytest.mark.parametrize("variance", [1e32, 1e64, 1e100, 1e200, 1e300])
def test_a_likelihood_determines_what_the_prior_does_not(variance):
    found = posterior(near_1, variance)
    assert found.report.status == "converged"
    np.testing.assert_allclose([found["a"].mean(), found["a"].var()], 1.0, rtol=1e-9)
    assert found.log_evidence == pytest.approx(-0.5 * np.log(variance), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log_factor", "variances"),
    [(lambda a: -jnp.abs(a - 3), (1e300,)), (lambda a, b: near_1(a) + near_1(b), (1e200, 1e200))],
)
def test_what_is_not_found_is_in_doubt(log_factor, variances):
    found = posterior(log_factor, *variances)
    assert found.report.status != "converged"
    assert not float(found.doubt["mine"]) < 1
