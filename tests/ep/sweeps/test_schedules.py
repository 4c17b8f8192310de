"""Schedules, interruption, resumption and new data: the fixed point is the same whichever way it is reached."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from meanmap import ep
from meanmap.core import InputError, ParameterError
from meanmap.ep.inference.order import along
from meanmap.ep.inference.pace import Pace


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
        np.testing.assert_allclose(sequential[name].mean(), parallel[name].mean(), atol=1e-7)
        np.testing.assert_allclose(sequential[name].var(), parallel[name].var(), atol=1e-7)
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
    assert post["mu"].mean() == pytest.approx(precision_mean / precision, abs=1e-12)
    assert post["mu"].var() == pytest.approx(1 / precision, abs=1e-12)


def test_a_chain_takes_time_in_proportion_to_its_length():
    def walk(n):
        y = np.cumsum(np.random.default_rng(0).normal(size=n))
        x = ep.Variable("x", ep.Normal, plate=n)
        return ep.FactorGraph(ep.Gaussian(x[:-1], x[1:], precision=1.0), ep.Gaussian(x, observed=y, precision=1.0))

    def seconds(n):
        ep.infer(walk(n))  # compiled
        starts = time.process_time(), ep.infer(walk(n)), time.process_time()
        return starts[2] - starts[0]

    # Sixteen times as long: 16 or less if linear, 256 if all members were copied in every step.
    assert seconds(65_536) < 50 * min(seconds(4096) for _ in range(3))


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
    assert runs[0]["mu"].mean() == pytest.approx(runs[1]["mu"].mean(), abs=1e-7)
    assert runs[0].effective_sample_size.keys() == runs[1].effective_sample_size.keys()
    for kept in ("effective_sample_size", "doubt"):
        first, second = (next(iter(getattr(run, kept).values())) for run in runs)
        np.testing.assert_allclose(first, second, rtol=1e-4)


@pytest.mark.parametrize("schedule", ["parallel", pytest.param("sequential", marks=pytest.mark.slow)])
def test_an_interrupted_loop_goes_on_where_it_was(monkeypatch, schedule):
    run = sys.modules["meanmap.ep.inference.run"]
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
    np.testing.assert_allclose(rest["w"].mean(), whole["w"].mean(), atol=1e-6)


def test_an_interruption_before_the_first_sweep_leaves_the_prior(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["meanmap.ep.inference.run"], "compiled_sweep", interrupted)
    post = ep.infer(regression())
    assert (post.report.status, post.report.steps) == ("interrupted", 0)
    np.testing.assert_array_equal(post["w"].mean(), np.zeros(3))


def test_new_data_go_on_from_old_ones():
    full, part = ep.infer(regression()), ep.infer(regression(size=36))
    grown = ep.infer(regression(), start_from=part)
    np.testing.assert_allclose(grown["w"].mean(), full["w"].mean(), atol=1e-6)
    assert grown.log_evidence == pytest.approx(full.log_evidence, abs=1e-6)
    assert grown.report.steps < full.report.steps
    shrunk = ep.infer(regression(size=36), start_from=full)
    np.testing.assert_allclose(shrunk["w"].mean(), part["w"].mean(), atol=1e-6)
    # A factor that was not there before starts flat, beside those that were.
    model = regression()
    more = ep.FactorGraph(*model.factors, ep.Gaussian(model.variables["z"], observed=np.zeros(40), precision=0.1))
    added = ep.infer(more, start_from=full)
    np.testing.assert_allclose(added["w"].mean(), ep.infer(more)["w"].mean(), atol=1e-6)


def test_a_loop_that_does_not_converge_says_so():
    post = ep.infer(regression(), sweeps=2)
    assert (post.report.status, post.report.converged, post.report.steps) == ("stopped before converging", False, 2)


def table_in_its_own_units():
    """Two hundred donors: months since the last donation, donations, volume given, months since the first."""
    rng = np.random.default_rng(0)
    often, recent = np.ceil(rng.gamma(1.0, 5.0, 200)), np.ceil(rng.gamma(1.2, 8.0, 200))
    months = recent + often * rng.uniform(1, 5, 200)
    p = scipy.special.expit(-0.5 - 0.1 * recent + 0.14 * often - 0.023 * months)
    X = np.column_stack([np.ones(200), recent, often, 250 * often, months])
    return X, (rng.uniform(size=200) < p).astype(int)


def wide(X, y, black_box):
    n, d = X.shape
    w = ep.Variable("w", ep.MultivariateNormal(np.zeros(d), np.diag([100.0, *[6.25] * (d - 1)])))
    z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
    outcome = (ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y)) if black_box else ()
    return ep.FactorGraph(ep.Dot(X, w, z), *(outcome or (ep.Logistic(z, observed=y),)))


def test_the_default_schedule_finds_the_fixed_point_from_wide_priors():
    # All rows at once and half of each step went astray here: messages were left out, the evidence was 1e5 off.
    X, y = table_in_its_own_units()
    post = ep.infer(wide(X, y, black_box=True))
    assert post.report.converged
    prior, mode = np.diag([0.01, *[0.16] * 4]), np.zeros(5)
    for _ in range(50):  # Newton, to the mode
        p = scipy.special.expit(X @ mode)
        hessian = prior + (X.T * (p * (1 - p))) @ X
        mode += 0.5 * np.linalg.solve(hessian, X.T @ (y - p) - prior @ mode)
    sds = np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert (np.abs(post["w"].mean() - mode) < 0.25 * sds).all()
    np.testing.assert_allclose(np.sqrt(np.diag(post["w"].cov())), sds, rtol=0.1)
    log_joint = (y * (X @ mode) - np.logaddexp(0, X @ mode)).sum() - mode @ prior @ mode / 2
    laplace = log_joint + (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(hessian)[1]) / 2
    assert post.log_evidence == pytest.approx(laplace, abs=0.3)


def test_a_plate_that_jumps_to_and_fro_is_slowed_down():
    # Two positives of 60 and wide priors: full steps never came to rest.
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(60), rng.normal(size=60)])
    y = np.zeros(60, int)
    y[:1] = 1
    post = ep.infer(wide(X, y, black_box=False))
    assert post.report.converged
    sequential = ep.infer(wide(X, y, black_box=False), schedule="sequential")
    np.testing.assert_allclose(post["w"].mean(), sequential["w"].mean(), atol=1e-4)


def random_walk(order):
    """Labels along a walk whose steps are given in any order."""
    T = len(order) + 1
    y = (np.cumsum(np.random.default_rng(0).normal(size=T)) > 0).astype(int)
    z = ep.Variable("z", ep.Normal, plate=T)
    return ep.FactorGraph(
        ep.Gaussian(z[order], z[order + 1], precision=4.0),
        ep.Gaussian(z[[0]], observed=[0.0], precision=1.0),
        ep.Probit(z, observed=y),
    )


def test_a_chain_is_run_along_from_one_end_to_the_other():
    steps = np.arange(119)
    post = ep.infer(random_walk(steps))
    assert post.report.converged
    assert post.report.steps < 60  # all at once, news travel by one member a sweep
    mixed = ep.infer(random_walk(np.random.default_rng(1).permutation(steps)))
    assert mixed.report.steps == post.report.steps
    np.testing.assert_allclose(mixed["z"].mean(), post["z"].mean(), atol=1e-5)


def test_members_are_ordered_from_one_end():
    z, u = ep.Variable("z", ep.Normal, plate=6), ep.Variable("u", ep.Normal(0.0, 1.0), plate=3)
    branches = ep.Sum(z[[0, 0, 1, 1, 4]], out=z[[1, 4, 2, 3, 5]])
    orders, far = along((branches, ep.Sum(u, out=z[[5, 2, 0]])))
    # From 2, which is as far from 5 as there is: 2-1, then 0-1 and 1-3, then 0-4, then 4-5.
    assert far == 4 + 2  # with the u's at both ends
    depth = {member: at for at, member in enumerate(orders[0])}
    assert depth[0] < depth[1] < depth[4] or depth[4] < depth[1] < depth[0]
    assert along((ep.Probit(z, observed=np.ones(6)),))[1] == 0


def test_a_pace_starts_anew_where_the_same_messages_are_left_out_again_and_again():
    pace = Pace(careful=True)
    first = pace.share
    kept = [pace.after(0.5, lambda: 1.0, b"the same") for _ in range(8)]
    assert kept == [True] * 7 + [False]
    assert pace.may_start_anew(100)
    assert not pace.may_start_anew(3)
    pace.start_anew()
    assert pace.share < first
    assert not pace.may_start_anew(100)
    assert all(pace.after(0.5, lambda: 1.0, bytes([at])) for at in range(20))  # others each time: something goes on


def test_steps_that_turn_back_are_shortened_and_slow_ones_are_not():
    circling, slow = Pace(careful=False), Pace(careful=False)
    for at in range(20):
        circling.after(0.5, lambda: 0.1, b"")
        slow.after(0.5 * 0.99**at, lambda at=at: 0.99**at, b"")
    assert circling.share < 0.5 < slow.share


def test_bad_schedules():
    with pytest.raises(
        ParameterError,
        match=r"schedule is 'serial' \(did you mean 'sequential'\?\); expected one of",
    ):
        ep.infer(regression(), schedule="serial")
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    other = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=1.0)))
    with pytest.raises(InputError, match="shares no factor"):
        ep.infer(regression(), start_from=other)
