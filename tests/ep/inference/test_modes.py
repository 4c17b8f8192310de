"""Runs that start at the mode, against runs that start without messages."""

import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.inference import modes


def model(kind, rows=300, scale=1.0, prior_sd=1.0):
    rng = np.random.default_rng(2)
    X = scale * rng.normal(size=(rows, 3))
    X[0] = 0.0
    eta = X @ [1.0, -0.5, 0.2] / scale
    w, z = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), prior_sd**2 * np.eye(3))), None
    z = ep.Variable("z", ep.Normal, plate=rows)
    if kind == "labels":
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=rng.random(rows) < 1 / (1 + np.exp(-eta))))
    if kind == "separated":
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=X[:, 0] > 0))
    exposure = rng.uniform(0.5, 2.0, rows)
    return ep.FactorGraph(
        ep.Dot(X, w, z), ep.Poisson(z, observed=rng.poisson(exposure * np.exp(eta)), exposure=exposure)
    )


@pytest.mark.parametrize(
    ("kind", "scale", "prior_sd"), [("labels", 1, 1), ("labels", 1e4, 1), ("counts", 1, 1), ("separated", 1, 100)]
)
def test_the_answer_is_that_of_a_run_that_starts_without_messages(kind, scale, prior_sd, monkeypatch):
    graph = model(kind, scale=scale, prior_sd=prior_sd)
    found = ep.infer(graph)
    monkeypatch.setattr("meanmap.ep.inference.infer.from_mode", lambda graph: None)
    other = ep.infer(graph)
    assert found.report.converged
    assert found.report.steps < other.report.steps
    sd = np.sqrt(np.diag(other["w"].cov()))
    np.testing.assert_allclose(found["w"].mean(), other["w"].mean(), atol=2e-6 * sd.min())
    np.testing.assert_allclose(found["w"].cov() / np.outer(sd, sd), other["w"].cov() / np.outer(sd, sd), atol=1e-5)
    assert found.log_evidence == pytest.approx(other.log_evidence, rel=1e-8, abs=1e-8)


def test_many_rows_begin_with_some_of_them(monkeypatch):
    graph = model("labels", rows=900)
    whole = modes.from_mode(graph)
    monkeypatch.setattr(modes, "_SAMPLE", 100)
    begun = modes.from_mode(graph)
    for name in whole.messages:
        for one, other in zip(whole.messages[name], begun.messages[name], strict=True):
            if one is not None:
                for mine, yours in zip(one.natural, other.natural, strict=True):
                    np.testing.assert_allclose(mine, yours, rtol=1e-2, atol=1e-2 * np.abs(yours).max())


def test_the_mode_is_where_slopes_vanish():
    graph = model("labels")
    started = modes.from_mode(graph)
    X = graph.factors[0].arguments[0].values
    z, y = started.messages["Logistic(z)"][0], graph.factors[1].arguments[1].values
    precision = np.eye(3) + (X * np.asarray(z.precision)[:, None]).T @ X
    w = np.linalg.solve(precision, X.T @ np.asarray(z.precision_mean))
    slope = X.T @ (y - 1 / (1 + np.exp(-X @ w))) - w
    assert np.sqrt(slope @ np.linalg.solve(precision, slope)) < 1e-3  # standard deviations


def test_other_models_have_no_such_start():
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z = ep.Variable("z", ep.Normal, plate=3)
    X = np.eye(3)[:, :2]
    assert modes.from_mode(ep.FactorGraph(ep.Dot(X, w, z), ep.Probit(z, observed=[1, 0, 1]))) is None
    assert modes.from_mode(ep.FactorGraph(ep.Dot(X, w, z), ep.Student(z, observed=[1.0, 0, 1]))) is None
    assert modes.from_mode(ep.FactorGraph(ep.Logistic(z, observed=[1, 0, 1]))) is None
    far = ep.Variable("w", ep.MultivariateNormal(np.full(2, 1e4), np.eye(2)))
    assert modes.from_mode(ep.FactorGraph(ep.Dot(X, far, z), ep.Poisson(z, observed=[1, 0, 1]))) is None
