"""Draws of posteriors have the moments that the posteriors state, and ArviZ reads them where it is installed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core.errors import KindError, MissingPackageError, ParameterError
from meanmap.ep.models.ranking import Ranking
from meanmap.ep.models.regression import Regression
from meanmap.families import Gamma, Normal
from meanmap.io import posterior_draws, to_arviz
from meanmap.learning import KernelDraws


def infer():
    mu = ep.Variable("mu", Normal(0.0, 1.0))
    return ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=2.0)), rng=0)


def test_draws_follow_their_posterior():
    """Within five standard errors of its mean and standard deviation, 4000 draws each."""
    network = mm.bp.DiscreteGraph([("a", "b")], {("a", "b"): [[0.9, 0.1], [0.4, 0.6]]}).query()
    cases = [
        (infer(), "mu", 1.0, np.sqrt(0.5)),
        (Normal([0.0, 3.0], 4.0), "x", [0.0, 3.0], 2.0),
        (network, "b", 0.35, np.sqrt(0.35 * 0.65)),
        (mm.embed([0.0, 1.0, 2.0], mm.kernels.RBF(1.0)), "x", 1.0, np.sqrt(2 / 3)),
    ]
    for posterior, name, mean, sd in cases:
        drawn = posterior_draws(posterior, 4000, rng=1)["posterior"][name]
        assert drawn.shape == (1, 4000, *np.shape(mean))
        assert np.all(np.abs(drawn[0].mean(0) - mean) < 5 * np.asarray(sd) / np.sqrt(4000))
        assert np.all(np.abs(drawn[0].std(0) / sd - 1) < 0.1)
        assert np.array_equal(drawn, posterior_draws(posterior, 4000, rng=1)["posterior"][name])


MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 1.5], [1.5, 2.0]])


@pytest.mark.parametrize(
    "model",
    [
        Regression("test", SimpleNamespace(labels=("dose", "age")), MEAN, COVARIANCE, None, 9, ()),
        Ranking(("dose", "age"), MEAN, COVARIANCE, np.ones(2), 1.0, 0.1, None),
    ],
    ids=["regression", "ranking"],
)
def test_coefficients_are_drawn_together(model):
    drawn = posterior_draws(model, 4000, rng=0)["posterior"]
    assert list(drawn) == ["dose", "age"]
    both = np.array([drawn["dose"][0], drawn["age"][0]])
    assert np.allclose(both.mean(1), MEAN, atol=5 * np.sqrt(2 / 4000))
    assert np.allclose(np.cov(both), COVARIANCE, rtol=0.15)


@pytest.mark.slow
def test_functions_and_programs():
    posterior = mm.embeddings.posterior_embedding(np.linspace(-1, 1, 30), mm.kernels.RBF(0.5))
    at = [-0.5, 0.5]
    drawn = posterior_draws(posterior, 2000, rng=0, points=at)["posterior"]["f"]
    assert drawn.shape == (1, 2000, 2)
    assert np.all(np.abs(drawn[0].mean(0) - posterior.mean(at)) < 5 * posterior.sd(at) / np.sqrt(2000))
    with pytest.raises(ParameterError, match="drawn at points: pass points="):
        posterior_draws(posterior)
    program = ep.models.programs.Program("test", {"rate": Gamma(2.0, 1.0)}, None)
    assert posterior_draws(program, 10, rng=0)["posterior"]["rate"].shape == (1, 10)


def test_bad_input(monkeypatch):
    with pytest.raises(KindError, match="a list has no draws; expected draws of a kernel"):
        posterior_draws([1.0])
    with pytest.raises(ParameterError, match="draws is 0"):
        posterior_draws(Normal(0.0, 1.0), draws=0)
    several = mm.bp.DiscreteGraph([("a", "b")], np.eye(2)).query({"a": [0, 1]})
    with pytest.raises(KindError, match="answer several queries"):
        posterior_draws(several)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingPackageError, match=r"to_arviz needs arviz.*meanmap\[arviz\]"):
        to_arviz(Normal(0.0, 1.0))


def test_arviz_reads_them():
    """Its own means, standard deviations and divergences are ours."""
    arviz = pytest.importorskip("arviz", reason="arviz is not installed here")
    rng = np.random.default_rng(0)
    scales, noise, diverging = rng.gamma(5.0, size=(2, 50)), rng.gamma(3.0, size=(2, 50)), rng.random((2, 50)) < 0.1
    kernel = KernelDraws(scales, noise, diverging, np.ones((2, 50), int), 0)
    read = to_arviz(kernel)
    table = arviz.summary(read)
    assert float(table.loc["lengthscale", "mean"]) == pytest.approx(scales.mean(), abs=0.01)
    assert int(np.sum(read["sample_stats"]["diverging"])) == diverging.sum()
    table = arviz.summary(to_arviz(infer(), draws=4000, rng=0))
    assert float(table.loc["mu", "mean"]) == pytest.approx(1.0, abs=0.05)
    assert float(table.loc["mu", "sd"]) == pytest.approx(np.sqrt(0.5), abs=0.05)


@pytest.mark.parametrize(("family", "seed"), [("gaussian", 41), ("poisson", 42)])
def test_responses_and_log_likelihoods_of_mixed_models(family, seed):
    """Importance weights of the log likelihoods leave a row out as `leave_one_out` does."""
    rng = np.random.default_rng(seed)
    g, x = np.repeat(np.arange(12), 20), rng.normal(size=240)
    eta = 1.0 + 0.3 * x + 0.5 * rng.normal(size=12)[g]
    y = 100 * eta + 30 * rng.normal(size=240) if family == "gaussian" else rng.poisson(np.exp(eta))
    found = mm.fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": g}, family=family)
    groups = posterior_draws(found, draws=4000, rng=seed)
    np.testing.assert_allclose(groups["observed_data"]["y"], y, rtol=1e-12)
    logs, drawn = groups["log_likelihood"]["y"][0], groups["posterior_predictive"]["y"][0]
    assert logs.shape == drawn.shape == (4000, 240)
    assert abs(drawn.mean() - found.predict()["estimate"].mean()) < 5 * drawn.mean(1).std() / np.sqrt(4000)
    left_out = np.log(len(logs)) - np.logaddexp.reduce(-logs, axis=0)
    assert abs(float(left_out.sum() - found.leave_one_out().sum())) < 1.0
    assert set(posterior_draws(mm.fit("truncated(y, lb=-1) ~ x", {"y": abs(x), "x": x}), 10, 0)) == {
        "posterior",
        "log_likelihood",
    }


def test_leave_one_out_of_arviz():
    arviz = pytest.importorskip("arviz", reason="arviz is not installed here")
    rng = np.random.default_rng(43)
    g, x = np.repeat(np.arange(12), 20), rng.normal(size=240)
    found = mm.fit("y ~ x + (1 | g)", {"y": x + rng.normal(size=12)[g] + rng.normal(size=240), "x": x, "g": g})
    loo = arviz.loo(to_arviz(found, draws=2000, rng=0))
    elpd = loo["elpd_loo"] if "elpd_loo" in dir(loo) else loo["elpd"]
    assert float(elpd) == pytest.approx(float(found.leave_one_out().sum()), abs=1.0)
