"""Schedules, interruption, resumption and new data: the fixed point is the same whichever way it is reached."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from meanmap import ep
from meanmap.core import InputError, ParameterError


def regression(n=40, d=3, seed=0, size=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.uniform(size=n) < scipy.special.expit(X @ np.linspace(-1, 2, d))).astype(int)
    X, y = X[:size], y[:size]
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(d)), ep.Variable("z", ep.Normal, plate=len(y))
    return ep.FactorGraph(ep.Dot(X, w, z), ep.Probit(z, observed=y, name="labels"))


def ranking():
    """Games of four players: selections, a shared variable, factors without a plate, and plates of several lengths."""
    skill = ep.Variable("skill", ep.Normal([0.0, 0.5, -0.5, 1.0], 1.0))
    margin, bias = ep.Variable("margin", ep.Normal, plate=6), ep.Variable("bias", ep.Normal(0.0, 0.5))
    winners, losers = [0, 0, 1, 3, 3, 2], [1, 2, 2, 0, 1, 1]
    return ep.FactorGraph(
        ep.Sum(skill[winners], skill[losers], bias, out=margin, weights=(1, -1, 1), precision=2.0),
        ep.Interval(margin, 0.0, noise=0.0, name="won"),
        ep.Probit(skill[[0, 3]], observed=[0, 1], name="cup"),
        ep.Gaussian(bias, observed=0.3, precision=4.0),
    )


@pytest.mark.parametrize("model", [regression, pytest.param(ranking, marks=pytest.mark.slow)])
def test_both_schedules_find_the_same_fixed_point(model):
    parallel, sequential = (ep.infer(model(), schedule=s, tolerance=1e-9) for s in ("parallel", "sequential"))
    for post in (parallel, sequential):
        assert post.report.converged
    for name in parallel:
        np.testing.assert_allclose(sequential[name].mean, parallel[name].mean, atol=1e-7)
        np.testing.assert_allclose(sequential[name].variance, parallel[name].variance, atol=1e-7)
    assert sequential.log_evidence == pytest.approx(parallel.log_evidence, abs=1e-6)
    assert sequential.report.steps < parallel.report.steps


def test_a_sequential_sweep_of_sites_is_that_of_textbooks():
    # One sweep over three sites on one number, in order, by the formulas of Rasmussen & Williams (2006), section 3.6.
    mu = ep.Variable("mu", ep.Normal(0.0, 4.0))
    y = np.array([1, 1, 0])
    post = ep.infer(ep.FactorGraph(ep.Probit(mu, observed=y)), schedule="sequential", sweeps=1)
    precision, precision_mean = 1 / 4.0, 0.0
    for sign in 2 * y - 1:  # in the first sweep each site's cavity is the belief so far
        m, v = precision_mean / precision, 1 / precision
        t = sign * m / np.sqrt(1 + v)
        ratio = np.exp(-t * t / 2) / np.sqrt(2 * np.pi) / scipy.special.ndtr(t)
        mean = m + sign * v * ratio / np.sqrt(1 + v)
        variance = v - v**2 * ratio / (1 + v) * (t + ratio)
        precision, precision_mean = 1 / variance, mean / variance
    assert post["mu"].mean == pytest.approx(precision_mean / precision, abs=1e-12)
    assert post["mu"].variance == pytest.approx(1 / precision, abs=1e-12)


@pytest.mark.slow
def test_sampled_messages_have_one_fixed_point_too():
    # The same draws serve a member in every sweep of either schedule.
    mu = ep.Variable("mu", ep.Normal(0.0, 4.0))
    site = ep.Density(lambda m, y: -2 * jnp.log1p((y - m) ** 2 / 4), mu, [0.5, -0.2, 1.0])
    runs = [
        ep.infer(ep.FactorGraph(site), ep.Stratified(100), schedule=s, tolerance=1e-9, rng=3, improper="allow")
        for s in ("parallel", "sequential")
    ]
    assert all(run.report.converged for run in runs)
    assert runs[0]["mu"].mean == pytest.approx(runs[1]["mu"].mean, abs=1e-7)
    assert runs[0].effective_sample_size.keys() == runs[1].effective_sample_size.keys()
    for kept in ("effective_sample_size", "doubt"):
        first, second = (next(iter(getattr(run, kept).values())) for run in runs)
        np.testing.assert_allclose(first, second, rtol=1e-4)


@pytest.mark.parametrize("schedule", ["parallel", pytest.param("sequential", marks=pytest.mark.slow)])
def test_an_interrupted_loop_goes_on_where_it_was(monkeypatch, schedule):
    run = sys.modules["meanmap.ep.run"]
    name = "compiled_sweep" if schedule == "parallel" else "compiled_sequential_sweep"
    original, calls = getattr(run, name), []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*arguments)

    whole = ep.infer(regression(), schedule=schedule)
    monkeypatch.setattr(run, name, interrupted)
    post = ep.infer(regression(), schedule=schedule)
    monkeypatch.undo()
    assert (post.report.status, post.report.steps) == ("interrupted", 3)
    assert np.isfinite(post.log_evidence)
    rest = ep.infer(regression(), schedule=schedule, start_from=post)
    assert rest.report.converged
    assert rest.report.steps < whole.report.steps
    np.testing.assert_allclose(rest["w"].mean, whole["w"].mean, atol=1e-6)


def test_an_interruption_before_the_first_sweep_leaves_the_prior(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["meanmap.ep.run"], "compiled_sweep", interrupted)
    post = ep.infer(regression())
    assert (post.report.status, post.report.steps) == ("interrupted", 0)
    np.testing.assert_array_equal(post["w"].mean, np.zeros(3))


def test_new_data_go_on_from_old_ones():
    full, part = ep.infer(regression()), ep.infer(regression(size=36))
    grown = ep.infer(regression(), start_from=part)
    np.testing.assert_allclose(grown["w"].mean, full["w"].mean, atol=1e-6)
    assert grown.log_evidence == pytest.approx(full.log_evidence, abs=1e-6)
    assert grown.report.steps < full.report.steps
    shrunk = ep.infer(regression(size=36), start_from=full)
    np.testing.assert_allclose(shrunk["w"].mean, part["w"].mean, atol=1e-6)
    # A factor that was not there before starts flat, beside those that were.
    model = regression()
    more = ep.FactorGraph(*model.factors, ep.Gaussian(model.variables["z"], observed=np.zeros(40), precision=0.1))
    added = ep.infer(more, start_from=full)
    np.testing.assert_allclose(added["w"].mean, ep.infer(more)["w"].mean, atol=1e-6)


def test_a_loop_that_does_not_converge_says_so():
    post = ep.infer(regression(), sweeps=2)
    assert (post.report.status, post.report.converged, post.report.steps) == ("stopped before converging", False, 2)


def test_bad_schedules():
    with pytest.raises(ParameterError, match="schedule is 'serial'; expected one of 'parallel', 'sequential'"):
        ep.infer(regression(), schedule="serial")
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    other = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=1.0)))
    with pytest.raises(InputError, match="shares no factor"):
        ep.infer(regression(), start_from=other)
