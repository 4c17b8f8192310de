"""Functions that are enormous where their input has no mass."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from meanmap import ep

OBSERVED = np.array([0.3, 0.35, 0.28, 0.4])
Z = np.linspace(-9, 4, 200_001)
POWER = {"jax": 20, "numpy": 20, "python": 401}
FUNCTIONS = {
    "jax": lambda k: (1 - 0.05 * jnp.exp(k)) ** POWER["jax"],
    "numpy": lambda k: (1 - 0.05 * np.exp(k)) ** POWER["numpy"],
    # Python raises an OverflowError where NumPy returns inf.
    "python": lambda k: (1 - 0.05 * math.exp(k)) ** POWER["python"],
}


def exact(power: int) -> tuple[float, float, float]:
    """Mean, standard deviation and log evidence on a grid."""
    logs = stats.norm.logpdf(Z) + stats.norm.logpdf(OBSERVED[:, None], (1 - 0.05 * np.exp(Z)) ** power, 0.1).sum(0)
    weights = np.exp(logs - logs.max())
    total, weights = logs.max() + np.log(weights.sum() * (Z[1] - Z[0])), weights / weights.sum()
    mean = weights @ Z
    return float(mean), float(np.sqrt(weights @ (Z - mean) ** 2)), float(total)


@pytest.mark.parametrize("kind", ["jax", pytest.param("numpy", marks=pytest.mark.slow), "python"])
def test_values_that_overflow_where_there_is_no_mass_leave_no_message_out(kind):
    k, o = ep.Variable("k", ep.Normal(0.0, 1.0)), ep.Variable("o", ep.Normal)
    model = ep.FactorGraph(ep.BlackBox(FUNCTIONS[kind], k, o), ep.Gaussian(o, observed=OBSERVED, precision=100.0))
    post = ep.infer(model)
    assert post.report.status == "converged"
    found = post["k"].mean(), post["k"].sd(), post.log_evidence
    np.testing.assert_allclose(found, exact(POWER[kind]), rtol=1e-4)


@pytest.mark.parametrize("far", [1e56, 1e200, np.inf])
def test_points_without_weight_do_not_count_in_a_projection(far):
    with jax.enable_x64(True):
        x, logs = jnp.array([-1.0, 0.0, 1.0, far]), jnp.array([0.0, 0.0, 0.0, -np.inf])
        found = jax.jit(ep.Normal._project_points)(x, x, logs)
        np.testing.assert_allclose([found.precision_mean, found.precision], [0.0, 3 / 2], atol=1e-6)
