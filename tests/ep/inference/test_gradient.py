"""Gradients of the log evidence beside closed forms and differences of runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.core.errors import InputError, KindError, ParameterError

X = np.random.default_rng(0).normal(size=(12, 1))
Y = X[:, 0] + np.random.default_rng(1).normal(size=12) > 0


def differences(run, priors, at, step=1e-4):
    """Of log evidence, by a run on each side for each number of `at`."""
    found = []
    for i in range(len(at)):
        up, down = np.array(at), np.array(at)
        up[i] += step
        down[i] -= step
        found.append((run(priors(up)).log_evidence - run(priors(down)).log_evidence) / (2 * step))
    return np.array(found)


def rbf(theta):
    """Of a Gaussian process: amplitude and lengthscale, in logarithms."""
    squares = (X - X.T) ** 2
    K = jnp.exp(2 * theta[0] - squares / (2 * jnp.exp(2 * theta[1])))
    return {"f": ep.MultivariateNormal(jnp.full(12, theta[2]), K + 1e-4 * jnp.eye(12))}


def run_classified(priors):
    f = ep.Variable("f", priors["f"])
    z = ep.Variable("z", ep.Normal, plate=12)
    return ep.infer(ep.FactorGraph(ep.Dot(np.eye(12), f, z), ep.Probit(z, observed=Y)), tolerance=1e-10, sweeps=200)


def run_counts(priors):
    """Normal and Gamma unknowns, one in a plate whose members share a prior, in functions and ready factors."""
    rate = ep.Variable("rate", priors["rate"])
    shift = ep.Variable("shift", priors["shift"], plate=3)
    return ep.infer(
        ep.FactorGraph(
            ep.Density(lambda r: 4 * jnp.log(r) - 2.5 * r, rate, name="counts"),
            ep.Density(lambda s, y: -jnp.cosh(s - y), shift, [0.3, -1.0, 2.0], name="shifts"),
        ),
        tolerance=1e-10,
        sweeps=200,
    )


def families(theta):
    return {"rate": ep.Gamma(theta[0], theta[1]), "shift": ep.Normal(theta[2], theta[3])}


def run_ties(priors):
    """Linear factors, whose belief is joint, below a function."""
    a, b = ep.Variable("a", priors["a"]), ep.Variable("b", priors["b"])
    total = ep.Variable("total", ep.Normal)
    return ep.infer(
        ep.FactorGraph(
            ep.Sum(a, b, out=total),
            ep.Density(lambda s: -jnp.logaddexp(0.0, -2 * s), total, name="label"),
            ep.Gaussian(a, observed=1.0),
        ),
        tolerance=1e-10,
        sweeps=200,
    )


def scales(theta):
    return {"a": ep.Normal(theta[0], theta[1]), "b": ep.Normal(0.0, theta[2])}


CASES = {
    "a Gaussian process of labels": (run_classified, rbf, [0.3, -0.2, 0.1]),
    "families and plates": (run_counts, families, [2.0, 1.5, 0.4, 0.8]),
    "linear factors": (run_ties, scales, [0.2, 1.5, 0.7]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_runs(name):
    run, priors, at = CASES[name]
    with jax.enable_x64(True):
        post = run(priors(np.array(at)))
        expected = differences(run, priors, at)
    found = post.evidence_gradient(priors, np.array(at))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_parameters_may_be_a_dictionary():
    w = ep.Variable("w", ep.Normal(1.0, 4.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(w, observed=3.0)))
    found = post.evidence_gradient(lambda p: {"w": ep.Normal(p["m"], p["v"])}, {"m": 1.0, "v": 4.0})
    assert found["m"] == pytest.approx(2 / 5, abs=1e-12)
    assert found["v"] == pytest.approx((4 / 5 - 1) / 10, abs=1e-12)


def test_other_priors_are_refused():
    w = ep.Variable("weight", ep.Normal(0.0, 4.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(w, observed=3.0)))
    with pytest.raises(ParameterError, match="not the one of this run"):
        post.evidence_gradient(lambda v: {"weight": ep.Normal(0.0, v)}, 3.9)
    with pytest.raises(ParameterError, match="did you mean 'weight'"):
        post.evidence_gradient(lambda v: {"weigth": ep.Normal(0.0, v)}, 4.0)
    with pytest.raises(KindError, match="gives 'weight' a Gamma; the run had Normal"):
        post.evidence_gradient(lambda v: {"weight": ep.Gamma(1.0, v)}, 4.0)
    with pytest.raises(KindError, match="expected a dictionary of priors"):
        post.evidence_gradient(lambda v: ep.Normal(0.0, v), 4.0)  # pyright: ignore[reportArgumentType]
    early = ep.infer(
        ep.FactorGraph(ep.Density(lambda w, y: -jnp.cosh(w - y), w, np.arange(9.0), name="mine")), sweeps=1
    )
    with pytest.raises(InputError, match="has no gradient"):
        early.evidence_gradient(lambda v: {"weight": ep.Normal(0.0, v)}, 4.0)
