"""The log evidence where few events are spread over several levels, against quadrature."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from scipy.special import logsumexp

from meanmap.ep.linear import by_formula, fit
from meanmap.ep.linear.weights import kinds, weighted


def spread(rows, events, levels):
    rng, y = np.random.default_rng([rows, levels]), np.zeros(rows, int)
    y[rng.choice(rows, events, replace=False)] = 1
    return y, np.arange(rows) % levels


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
@pytest.mark.parametrize(("rows", "events", "levels"), [(800, 16, 8), (80_000, 16, 8), (3000, 60, 60)])
def test_few_events_at_each_of_several_levels(family, rows, events, levels):
    """Levels are independent. The log evidence was .3 too low at 8 of them, 2.7 at 60, "converged" without a note."""
    y, level = spread(rows, events, levels)
    found = fit("y ~ 0 + C(level)", {"y": y, "level": level}, family)
    middle, exact = np.log(y.mean()) if family == "poisson" else 0.0, 0.0
    eta = np.linspace(np.log(y.mean()) - 14, np.log(y.mean()) + 7, 10_001)
    for at in range(levels):
        loss = np.exp(eta) if family == "poisson" else np.logaddexp(0, eta)
        height = y[level == at].sum() * eta - (level == at).sum() * loss - ((eta - middle) / 2.5) ** 2 / 2
        exact += logsumexp(height) + np.log((eta[1] - eta[0]) / 2.5) - np.log(2 * np.pi) / 2
    assert found.report.measures["log evidence: standard error"] < 0.01
    assert found.log_evidence == pytest.approx(exact, abs=0.01)
    assert exact - found.log_evidence + found.corrected > 0.1
    assert not [note for note in found.report.notes if "evidence" in note]


@pytest.mark.parametrize(("rows", "first"), [(60, 0), (60, 1), (4000, 1), (4000, 0)])
def test_levels_that_are_compared_with_a_reference(rows, first):
    """Coefficients depend on each other; marginals of a level without events are not good enough to draw from."""
    x, y = np.arange(rows) % 3 == 0, np.zeros(rows, int)
    y[np.concatenate([np.flatnonzero(x)[:first], np.flatnonzero(~x)[: 3 - first]])] = 1
    found = fit("y ~ x", {"y": y, "x": x.astype(float)}, "poisson")
    constant, slope = np.linspace(np.log(y.mean()) - 14, np.log(y.mean()) + 6, 801), np.linspace(-45, 45, 2801)
    eta = [constant[:, None] + slope * (value - x.mean()) for value in (0, 1)]
    height = sum(y[x == at].sum() * eta[at] - (x == at).sum() * np.exp(eta[at]) for at in (0, 1))
    sds = 2.5, 2.5 / x.std()
    height -= ((constant[:, None] - np.log(y.mean())) / sds[0]) ** 2 / 2 + (slope / sds[1]) ** 2 / 2
    cell = (constant[1] - constant[0]) * (slope[1] - slope[0])
    exact = logsumexp(height) + np.log(cell / (2 * np.pi * sds[0] * sds[1]))
    assert found.log_evidence == pytest.approx(exact, abs=0.03)
    assert found.corrected > 0.05


def test_equal_rows_are_looked_at_once():
    rng, n = np.random.default_rng(0), 4000
    level, weight = rng.integers(0, 4, n), rng.integers(1, 3, n)
    data = {"y": rng.poisson(0.1, n), "level": level, "weight": weight, "g": rng.integers(0, 2, n)}
    found = fit("y ~ C(level) + (1 | g)", data, "poisson", weights="weight")
    model = found.model
    predictor, node = model.nodes[0].settled.joint.predictor, model.nodes[0]
    alike = kinds(predictor, model.observed)
    assert alike is not None
    first, times = alike
    assert times.sum() == n
    assert len(first) == len(np.unique(np.stack(list(data.values())), axis=1).T)
    parts = node.settled, model.family, model.observed, model.parameters(node), 40
    once, each = weighted(*parts, alike), weighted(*parts)
    np.testing.assert_allclose(once.logs, each.logs, atol=1e-6)
    assert kinds(predictor.taken(slice(900)), model.observed.taken(slice(900))) is None
    assert fit("y ~ C(level)", {"y": rng.normal(size=n), "level": level}).model.alike is None


def test_the_table_says_what_is_less_certain(monkeypatch):
    """Pareto k above .7 stood in the report alone, beside "converged"."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=200), "y": rng.poisson(2.0, 200)}
    plain = fit("y ~ x", data, "poisson")
    assert plain.report.notes == ()
    monkeypatch.setattr(by_formula, "pareto_shape", lambda logs: 0.82)
    monkeypatch.setattr(by_formula, "correction", lambda *given: (0.0, 0.32))
    found = fit("y ~ x", data, "poisson")
    assert found.report.status == "converged"
    assert "note: Pareto k is 0.82 (above 0.7), but weighted draws are worth 99" in str(found)
    assert "note: the log evidence has a standard error of 0.3 by weighted draws" in str(found)
