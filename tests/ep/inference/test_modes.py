"""Runs that start at the mode, against runs that start without messages."""

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.calling import as_now
from meanmap.ep.inference import modes


def model(kind, rows=300, scale=1.0, prior_sd=1.0, zero=True):
    rng = np.random.default_rng(2)
    X = scale * rng.normal(size=(rows, 3))
    X[0] *= not zero
    eta = X @ [1.0, -0.5, 0.2] / scale
    w, z = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), prior_sd**2 * np.eye(3))), None
    z = ep.Variable("z", ep.Normal, plate=rows)
    if kind == "sigmoid":
        p = ep.Variable("p", ep.Beta, plate=rows)
        labels = ep.Bernoulli(p, observed=rng.random(rows) < 1 / (1 + np.exp(-eta)))
        return ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(lambda z: jax.nn.sigmoid(z), z, p), labels)
    if kind == "labels":
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=rng.random(rows) < 1 / (1 + np.exp(-eta))))
    if kind == "separated":
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=X[:, 0] > 0))
    exposure = rng.uniform(0.5, 2.0, rows)
    return ep.FactorGraph(
        ep.Dot(X, w, z), ep.Poisson(z, observed=rng.poisson(exposure * np.exp(eta)), exposure=exposure)
    )


@pytest.mark.parametrize(
    ("kind", "scale", "prior_sd"),
    [("labels", 1, 1), ("labels", 1e4, 1), ("counts", 1, 1), ("separated", 1, 100), ("sigmoid", 1, 1)],
)
def test_the_answer_is_that_of_a_run_that_starts_without_messages(kind, scale, prior_sd, monkeypatch):
    graph = model(kind, scale=scale, prior_sd=prior_sd, zero=kind != "sigmoid")
    found = ep.infer(graph)
    monkeypatch.setattr("meanmap.ep.inference.infer.from_mode", lambda *_: None)
    other = ep.infer(graph)
    assert found.report.converged
    assert found.report.steps < other.report.steps
    sd = np.sqrt(np.diag(other["w"].cov()))
    np.testing.assert_allclose(found["w"].mean(), other["w"].mean(), atol=2e-6 * sd.min())
    np.testing.assert_allclose(found["w"].cov() / np.outer(sd, sd), other["w"].cov() / np.outer(sd, sd), atol=1e-5)
    assert found.log_evidence == pytest.approx(other.log_evidence, rel=1e-8, abs=1e-8)


def test_a_sigmoid_of_the_predictor_and_its_labels_are_a_logistic_regression():
    """Wide first messages overshot, the more the more rows: 100,000 of 50 columns had not ended after 400 seconds."""
    found, other = (ep.infer(model(kind, zero=False)) for kind in ("sigmoid", "labels"))
    assert found.report.steps < 12
    sd = np.sqrt(np.diag(other["w"].cov()))
    np.testing.assert_allclose(found["w"].mean(), other["w"].mean(), atol=2e-6 * sd.min())
    np.testing.assert_allclose(found["w"].cov() / np.outer(sd, sd), other["w"].cov() / np.outer(sd, sd), atol=1e-5)
    assert found.log_evidence == pytest.approx(other.log_evidence, abs=1e-7)
    mean, variance = np.asarray(other["z"].mean()), np.asarray(other["z"].var())
    t = np.linspace(-10, 10, 2001)
    y = model("labels", zero=False).factors[1].arguments[1].values[:, None]
    # The belief about z is Gaussian; that about p follows from the cavity and the label.
    left = 1 / variance - np.asarray(other.messages["Logistic(z)"][0].precision)
    toward = mean / variance - np.asarray(other.messages["Logistic(z)"][0].precision_mean)
    p = 1 / (1 + np.exp(-(toward / left)[:, None] - t / np.sqrt(left)[:, None]))
    weights = np.exp(-t * t / 2) * np.where(y == 1, p, 1 - p)
    weights /= weights.sum(1, keepdims=True)
    statistics = np.stack([(weights * np.log(p)).sum(1), (weights * np.log1p(-p)).sum(1)])
    np.testing.assert_allclose(found["p"].expected_statistics, statistics, atol=1e-6)


@pytest.mark.parametrize("other", ["prior", "function", "output", "oracle"])
def test_other_functions_do_not_begin_at_the_mode_of_labels(other):
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(2)), ep.Variable("z", ep.Normal, plate=3)
    p = ep.Variable("p", ep.Beta(np.full(3, 2.0), np.full(3, 1.0)) if other == "prior" else ep.Beta, plate=3)
    function = (lambda z: jax.nn.sigmoid(2 * z)) if other == "function" else jax.nn.sigmoid
    oracle = ep.ImportanceSampling() if other == "oracle" else None
    labels = (
        ep.Gaussian(z, observed=np.ones(3), precision=1.0) if other == "output" else ep.Bernoulli(p, observed=[1, 0, 1])
    )
    graph = ep.FactorGraph(ep.Dot(np.eye(3)[:, :2], w, z), ep.BlackBox(function, z, p, oracle=oracle), labels)
    assert modes.from_mode(graph, tuple(map(as_now, (graph.factors[1],)))) is None


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
