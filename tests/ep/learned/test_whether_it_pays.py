"""Learning without an oracle of one's own: only where asking would take longer."""

import math
from itertools import count
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.learned import just_in_time


def model_of(function, rows=40):
    """A logistic regression, with the function between scores and probabilities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    y = (X @ [2.0, -1.0] + rng.logistic(size=rows) > 0).astype(int)
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z, p = ep.Variable("z", ep.Normal, plate=rows), ep.Variable("p", ep.Beta, plate=rows)
    return ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(function, z, p, name="f"), ep.Bernoulli(p, observed=y))


@pytest.mark.parametrize("function", [jax.nn.sigmoid, lambda z: 1 / (1 + math.exp(-z))], ids=["JAX", "Python"])
def test_a_quick_function_is_not_learned_and_the_report_says_so(function):
    """A run took 64 seconds instead of 4, and its standard deviations were in doubt."""
    model = model_of(function)
    exact, post = ep.infer(model), ep.infer(model, ep.Learned(), rng=0)
    assert post.report.status == "converged"
    assert post.report.counts["f: predicted"] == 0
    assert sum("learning was switched off" in note for note in post.report.notes) == 1
    np.testing.assert_allclose(post["w"].mean(), exact["w"].mean(), rtol=1e-6)


def test_an_oracle_that_takes_longer_is_learned(monkeypatch):
    monkeypatch.setattr(just_in_time, "_PREDICTED", 0.0)
    monkeypatch.setattr(just_in_time, "_SETTINGS", 0.0)
    learned = ep.Learned(initial=20)
    assert ep.infer(model_of(jax.nn.sigmoid), learned, rng=0).report.counts["f: predicted"] > 0


def test_what_was_asked_in_earlier_runs_counts(monkeypatch):
    """Problem after problem, asking takes as long as learning once."""
    clock = count()
    monkeypatch.setattr(just_in_time, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(just_in_time, "_SETTINGS", 60.0)
    learned, model = ep.Learned(initial=20), model_of(jax.nn.sigmoid)
    # A second for the ten messages that are asked first: 40 for ten sweeps of 40 rows, and 60 more in a second run.
    predicted = [ep.infer(model, learned, rng=0).report.counts["f: predicted"] for _ in range(2)]
    assert predicted[0] == 0
    assert predicted[1] > 0


def log_label(a, b, x, y):
    score = float(a) + float(b) * x
    return y * score - math.log1p(math.exp(score))


@pytest.mark.slow
def test_rows_of_two_unknowns_are_called_for_as_often_as_without_learning():
    """They were called for 277,000 times instead of 106,000: first sweeps were as accurate as last ones."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=20)
    y = (rng.uniform(size=20) < 1 / (1 + np.exp(-0.5 - 1.5 * x))).astype(float)
    unknown = [ep.Variable(name, ep.Normal(0.0, 4.0)) for name in "ab"]
    model = ep.FactorGraph(ep.Density(log_label, *unknown, x, y, name="f"))
    calls = [
        ep.infer(model, way, rng=0).report.counts["f: evaluations of its function"] for way in (None, ep.Learned())
    ]
    assert calls[1] < 1.1 * calls[0]
