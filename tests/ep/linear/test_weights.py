"""Importance weights of the joint Gaussian, against exact posteriors on a grid."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, weights
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.grouped import integrates_groups
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.predictor import Predictor, Prior
from meanmap.ep.linear.sites import settle
from meanmap.ep.linear.weights import affordable, weighted
from meanmap.ep.weighted_draws import pareto_shape

NONE = np.zeros(0)
BERNOULLI = FAMILIES["bernoulli", "logit"]


def error(found):
    """The standard error of the log of a mean of weights."""
    return np.sqrt((1 / found.effective - 1) / len(found.logs))


def test_groups_are_integrated_given_what_is_shared():
    """Weights are the exact marginal posterior of the shared effect over its belief, up to a constant."""
    rng = np.random.default_rng(0)
    index, x = np.repeat(np.arange(5), 6), rng.normal(size=30)
    observed = Observed.of((rng.random(30) < 1 / (1 + np.exp(-x - rng.normal(size=5)[index]))).astype(float))
    predictor = Predictor((Block.fixed(x[:, None]), Block(index, np.ones((30, 1)), 5)))
    prior = Prior((np.zeros(1), np.zeros(1)), (4 * np.eye(1), np.eye(1)))
    settled = settle(predictor, prior, BERNOULLI, observed, NONE, tolerance=1e-9)
    assert integrates_groups(settled)
    found = weighted(settled, BERNOULLI, observed, NONE, 20)
    drawn, logs = found.draws, found.logs
    mean, variance = settled.joint.mean[0], settled.joint.within(0)[0, 0, 0]
    u = np.linspace(-8, 8, 801)
    exact = []
    for b in drawn[:, 0]:
        eta = b * x[:, None] + u
        log_p = observed.response[:, None] * eta - np.logaddexp(0, eta)
        by_group = np.stack([log_p[index == group].sum(0) for group in range(5)]) - u**2 / 2
        exact.append(np.log(np.exp(by_group).sum(1)).sum() - b**2 / 8 + (b - mean) ** 2 / (2 * variance))
    np.testing.assert_allclose(logs - logs.mean(), np.array(exact) - np.mean(exact), atol=2e-4)

    # Two draws on either side of the mean, and what they say of the evidence is what a grid says.
    np.testing.assert_allclose(drawn[:10] + drawn[10:], 2 * mean)
    line = np.linspace(-6, 8, 201)
    height = []
    for b in line:
        log_p = observed.response[:, None] * (b * x[:, None] + u) - np.logaddexp(0, b * x[:, None] + u)
        by_group = np.stack([log_p[index == group].sum(0) for group in range(5)]) - u**2 / 2
        height.append(np.log(np.exp(by_group).sum(1) * (u[1] - u[0]) / np.sqrt(2 * np.pi)).sum() - b**2 / 8)
    evidence = np.log(np.exp(height).sum() * (line[1] - line[0]) / np.sqrt(8 * np.pi))
    assert abs(settled.log_evidence - evidence) > 0.005
    many = weighted(settled, BERNOULLI, observed, NONE, 400)
    np.testing.assert_allclose(settled.log_evidence + many.gain, evidence, atol=3 * error(many))
    assert error(many) < 0.01


def test_factors_that_cross_are_drawn_but_the_largest():
    """With two groups of the other factor, the exact evidence is an integral over two numbers."""
    rng = np.random.default_rng(1)
    one, two = rng.integers(0, 12, 40), rng.integers(0, 2, 40)
    predictor = Predictor((Block(two, np.ones((40, 1)), 2), Block(one, np.ones((40, 1)), 12)))
    observed = Observed.of((rng.random(40) < 0.7).astype(float))
    prior = Prior((np.zeros(1), np.zeros(1)), (np.eye(1), 4 * np.eye(1)))
    settled = settle(predictor, prior, BERNOULLI, observed, NONE)
    assert integrates_groups(settled)
    found = weighted(settled, BERNOULLI, observed, NONE, 400)
    assert found.draws.shape == (400, 0)
    v, u = np.linspace(-5, 5, 81), np.linspace(-14, 14, 281)
    total = -(v[:, None] ** 2) / 2 - v**2 / 2
    for group in range(12):
        inner = np.zeros((81, 81, 281))
        for row in np.flatnonzero(one == group):
            eta = (v[:, None, None] if two[row] == 0 else v[None, :, None]) + u
            inner += observed.response[row] * eta - np.logaddexp(0, eta)
        total += np.log(np.exp(inner - u**2 / 8).sum(2) * 0.1 / np.sqrt(8 * np.pi))
    evidence = np.log(np.exp(total).sum() * 0.125**2 / (2 * np.pi))
    assert abs(settled.log_evidence - evidence) > 0.02
    np.testing.assert_allclose(settled.log_evidence + found.gain, evidence, atol=3 * error(found))
    assert error(found) < 0.01


def test_all_effects_are_drawn_where_groups_have_many():
    rng = np.random.default_rng(1)
    index, design = rng.integers(0, 3, 40), np.column_stack([np.ones(40), rng.normal(size=(40, 3))])
    predictor = Predictor((Block(index, design, 3), Block.fixed(np.ones((40, 1)))))
    observed = Observed.of(rng.poisson(2.0, 40))
    prior = Prior((np.zeros(4), np.zeros(1)), (np.eye(4), np.eye(1)))
    poisson = FAMILIES["poisson", "log"]
    settled = settle(predictor, prior, poisson, observed, NONE)
    assert not integrates_groups(settled)
    found = weighted(settled, poisson, observed, NONE, 300)
    assert found.effective > 0.6
    assert pareto_shape(found.logs) < 0.7
    np.testing.assert_allclose(found.draws.std(0), np.sqrt(settled.joint.within(1).ravel()), rtol=0.15)
    assert abs(found.gain) < 0.1


def test_draws_are_as_many_as_time_allows():
    rng = np.random.default_rng(1)
    predictor = Predictor((Block(rng.integers(0, 10, 40), np.ones((40, 1)), 10),))
    observed = Observed.of(rng.poisson(2.0, 40))
    poisson = FAMILIES["poisson", "log"]
    settled = settle(predictor, Prior((np.zeros(1),), (np.eye(1),)), poisson, observed, NONE)
    assert [affordable(settled, 40 * 9 * n, 4, 64) for n in (0, 10, 1000)] == [4, 10, 64]


def test_the_shape_of_tails():
    rng = np.random.default_rng(0)
    for shape in (0.3, 1.0):
        found = np.mean([pareto_shape(-shape * np.log(rng.random(4000))) for _ in range(20)])
        assert abs(found - shape) < 0.1
    assert pareto_shape(np.zeros(400)) == -np.inf


def test_separable_labels_under_a_wide_prior_are_right():
    """The joint Gaussian has .64 to .79 of the exact standard deviation, and .95 under the prior of 2.5."""
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        x, other = rng.normal(size=(2, 50))
        data = {"x": x, "other": other, "y": (x > 0.1).astype(int)}
        found = fit("y ~ x", data, "bernoulli", priors={"x": (0.0, 100.0)})
        spread = 100 * x.std()
        slope, constant = np.linspace(-2 * spread, 5 * spread, 1500), np.linspace(-12, 12, 300)
        z, sign = (x - x.mean()) / x.std(), 2 * data["y"] - 1
        height = -((slope / spread) ** 2) / 2 - (constant[:, None] / 2.5) ** 2 / 2
        for at in range(50):
            height = height - np.logaddexp(0, -sign[at] * (constant[:, None] + slope * z[at]))
        share = np.exp(height - height.max()).sum(0)
        share /= share.sum()
        exact = np.sqrt(share @ (slope - share @ slope) ** 2) / x.std()
        joint = found.shared.plain[1]
        assert joint < 0.85 * exact
        assert found.to_frame().sd["x"] == pytest.approx(exact, rel=0.02)
        assert found.report.status == "converged"
        weak = fit("y ~ x + other", data, "bernoulli")
        assert weak.report.status == "converged"


@pytest.mark.parametrize("heavy", [False, True])
def test_some_of_many_rows_say_what_all_say(monkeypatch, heavy):
    """Within the standard error that they state, also beside rows that few others resemble."""
    rng, n = np.random.default_rng(2), 100_000
    X = np.column_stack([np.ones(n), rng.standard_t(3, n) if heavy else rng.normal(size=n), rng.random(n) < 0.01])
    y = (rng.random(n) < 1 / (1 + np.exp(1 - X @ [0.0, 0.2, 1.0]))).astype(float)
    settled = settle(
        Predictor((Block.fixed(X),)), Prior((np.zeros(3),), (4 * np.eye(3),)), BERNOULLI, Observed.of(y), NONE
    )
    some = weighted(settled, BERNOULLI, Observed.of(y), NONE, 40)
    monkeypatch.setattr(weights, "_TIMES", np.inf)
    every = weighted(settled, BERNOULLI, Observed.of(y), NONE, 40)
    np.testing.assert_array_equal(some.draws, every.draws)
    assert 0 < some.error < 1e-3
    assert every.error == 0
    assert np.sqrt(np.mean((some.logs - every.logs) ** 2)) < 3 * some.error


def test_all_of_many_rows_are_read_where_some_do_not_suffice():
    """Five events in 100,000 rows leave a wide and skewed posterior."""
    rng, y = np.random.default_rng(3), np.zeros(100_000)
    y[:5] = 1
    X = np.column_stack([np.ones(len(y)), rng.normal(size=len(y))])
    predictor, prior = Predictor((Block.fixed(X),)), Prior((np.zeros(2),), (100 * np.eye(2),))
    settled = settle(predictor, prior, BERNOULLI, Observed.of(y), NONE)
    found = weighted(settled, BERNOULLI, Observed.of(y), NONE, 40)
    assert found.error == 0
    eta, away = X @ found.draws.T, found.draws - settled.joint.mean
    exact = y @ eta - np.log1p(np.exp(eta)).sum(0) - (found.draws**2).sum(1) / 200
    ratio = exact + ((away @ np.linalg.inv(settled.joint.within(0)[0])) * away).sum(1) / 2
    np.testing.assert_allclose(found.logs - found.logs.mean(), ratio - ratio.mean(), atol=1e-5)
