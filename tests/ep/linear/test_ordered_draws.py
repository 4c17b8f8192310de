"""Probabilities of ordered labels: `predict` and draws of `expected` beside weighted draws from scratch."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

pytest.importorskip("formulae")

from meanmap.ep.linear import fit

GROUPS, U = np.repeat(np.arange(8), 8), np.linspace(-5, 5, 61)
NEW = {"g": np.array([0, 1, 0, 1]), "c": np.array([1.0, 1.0, 0.0, 0.0])}


def table(seed):
    """Six rows with c = 1, all with the lowest label."""
    rng = np.random.default_rng(seed)
    c = np.zeros(64)
    c[rng.choice(64, 6, replace=False)] = 1
    y = np.digitize(rng.normal(size=8)[GROUPS] + rng.logistic(size=64), [-0.5, 1.5])
    return {"y": np.where(c == 1, 0, y), "g": GROUPS, "c": c}


def by_importance(found, data, count):
    """Mean, sd and ends of 95% of each probability; groups are integrated on a grid."""
    y, c, rng = data["y"], data["c"], np.random.default_rng(1)
    own = found.draws(8000, rng=0).to_numpy()
    own = np.column_stack([own[:, :2].mean(1) - own[:, 2] * c.mean(), np.log(own[:, 1] - own[:, 0]), own[:, 2],
                           np.log(own[:, 3])])  # fmt: skip
    z = rng.normal(size=(count, 4)) / np.sqrt(rng.chisquare(5, (count, 1)) / 5)
    at = own.mean(0) + z @ np.linalg.cholesky(1.7 * np.cov(own.T)).T
    logs = 4.5 * np.log1p((z**2).sum(1) / 5) - (at[:, 0] / 2.5) ** 2 / 2 - (at[:, 2] * c.std() / 2.5) ** 2 / 2
    logs += (at[:, [1, 3]] - 2 * np.log1p(np.exp(2 * at[:, [1, 3]]) / 2.5**2 / 3)).sum(1)
    shown = []
    for k, (middle, log_gap, slope, log_sd) in enumerate(at):
        cuts = middle + np.array([-0.5, 0.5]) * np.exp(log_gap)
        eta = (slope * (c - c.mean()))[:, None] + np.exp(log_sd) * U
        bounds = np.concatenate([np.zeros((1, *eta.shape)), expit(cuts[:, None, None] - eta), np.ones((1, *eta.shape))])
        rows = np.take_along_axis(np.log(np.maximum(np.diff(bounds, axis=0), 1e-300)), y[None, :, None], 0)[0]
        each = np.add.reduceat(rows, np.arange(0, 64, 8), axis=0) - U**2 / 2
        whole = logsumexp(each, axis=1)
        logs[k] += whole.sum()
        u = np.array([rng.choice(U, p=np.exp(each[g] - whole[g])) for g in NEW["g"]])
        new = slope * (NEW["c"] - c.mean()) + np.exp(log_sd) * u
        below = np.column_stack([np.zeros(4), expit(cuts - new[:, None]), np.ones(4)])
        shown.append(np.diff(below, axis=1).ravel())
    weights, values = np.exp(logs - logs.max()), np.array(shown)
    weights /= weights.sum()
    mean = weights @ values
    orders = np.argsort(values, axis=0)
    ends = [
        np.interp([0.025, 0.975], np.cumsum(weights[order]), column[order])
        for column, order in zip(values.T, orders.T, strict=True)
    ]
    return np.column_stack([mean, np.sqrt(weights @ (values - mean) ** 2), np.array(ends)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [72, 77])
def test_a_label_without_higher_ones_has_the_right_probabilities(seed):
    """Ends of `predict` were off by up to .5 standard deviations: it did not use the draws that `expected` uses."""
    data = table(seed)
    found = fit("y ~ c + (1 | g)", data, "cumulative")
    exact = by_importance(found, data, 6000)
    drawn = found.expected(NEW, 30_000, rng=0).reshape(30_000, -1)
    by_draws = np.column_stack([drawn.mean(0), drawn.std(0), *np.quantile(drawn, [0.025, 0.975], axis=0)])
    for shown in (found.predict(NEW).to_numpy(), by_draws):
        away = (shown - exact) / exact[:, 1:2]
        assert np.abs(away[:, 0]).max() < 0.08
        assert np.abs(np.log(shown[:, 1] / exact[:, 1])).max() < 0.13
        assert np.abs(away[:, 2:]).max() < 0.35


def test_predict_and_draws_of_such_labels_agree():
    found = fit("y ~ c + (1 | g)", table(71), "cumulative")
    assert found.model.effect_draws is not None
    table_of, drawn = found.predict(NEW).to_numpy(), found.expected(NEW, 8000, rng=0).reshape(8000, -1)
    np.testing.assert_allclose(drawn.mean(0), table_of[:, 0], atol=0.05 * table_of[:, 1].max())
    np.testing.assert_allclose(drawn.std(0), table_of[:, 1], rtol=0.12)
    away = (np.quantile(drawn, 0.975, axis=0) - table_of[:, 3]) / table_of[:, 1]
    # Both have thousands of draws of a long tail; by the laws of single rows one end was off by more than half.
    assert np.abs(away).max() < 0.45
    # Rows and offsets are those of the others: the probabilities of a row sum to 1.
    np.testing.assert_allclose(table_of[:, 0].reshape(4, 3).sum(1), 1.0, rtol=1e-9)
