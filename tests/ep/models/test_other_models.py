"""Gaussian processes, rankings and programs against dense algorithms and plain sums over grids.

By day most of these are judged by the examples of their docstrings alone: each costs seconds of compiling.
"""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from meanmap import ep, kernels
from meanmap.core import InputError, ParameterError, ShapeError


def textbook(K, y, sweeps=40):
    """Gaussian-process classification with a probit link by EP: Rasmussen & Williams (2006), algorithm 3.5."""
    n = len(y)
    nu, tau = np.zeros(n), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            S = K - K @ np.linalg.solve(np.diag(1 / np.maximum(tau, 1e-12)) + K, K)
            m = S @ nu
            t, v = 1 / S[i, i] - tau[i], m[i] / S[i, i] - nu[i]
            mean, var = v / t, 1 / t
            z = y[i] * mean / np.sqrt(1 + var)
            ratio = np.exp(scipy.stats.norm.logpdf(z) - scipy.special.log_ndtr(z))
            new = mean + y[i] * var * ratio / np.sqrt(1 + var)
            new_var = var - var**2 * ratio / (1 + var) * (z + ratio)
            tau[i] = 1 / new_var - t
            nu[i] = new / new_var - v
    return nu, tau


@pytest.mark.slow
def test_gaussian_process_classification_is_that_of_textbooks():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, size=15))
    y = np.where(np.sin(2 * x) + 0.3 * rng.normal(size=15) > 0, 1, -1)
    kernel, new = kernels.RBF(0.8), np.array([-2.5, 0.1, 4.0])
    fit = ep.models.gp_classification(x, y, kernel=kernel, variance=4.0, intercept_sd=0.5, link="probit")
    cover = lambda a, b: 4 * kernel(a, b) + 0.25  # noqa: E731
    K = cover(x, x)
    nu, tau = textbook(K, y)
    solved = np.linalg.inv(K + np.diag(1 / tau))
    law = fit.latent(new)
    cross = cover(new, x)
    np.testing.assert_allclose(law.mean(), cross @ solved @ (nu / tau), atol=2e-3)
    np.testing.assert_allclose(law.var(), 4.25 - np.einsum("ni,ij,nj->n", cross, solved, cross), atol=2e-3)
    one = scipy.stats.norm.cdf(law.mean() / np.sqrt(1 + law.var()))
    np.testing.assert_allclose(fit.predict_proba(new)[:, 1], one)
    assert fit.report.converged
    assert "the best of 1" in str(fit)
    assert "relative error" in fit._repr_html_()
    assert json.loads(json.dumps(fit.to_dict()))["classes"] == [-1, 1]


@pytest.mark.slow
def test_the_evidence_chooses_a_kernel_and_pictures_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.linalg.norm(X, axis=1) > 1.1, "out", "in")
    fit = ep.models.gp_classification({"a": X[:, 0], "b": X[:, 1]}, y)
    assert len(fit.tried) == 12
    assert fit.log_evidence == max(evidence for *_, evidence in fit.tried)
    assert fit.predict(np.array([[0.0, 0.0], [2.0, 2.0]])).tolist() == ["in", "out"]
    assert (fit.predict(X) == y).mean() > 0.95
    assert fit.plot(X, y).figure.axes[1].get_ylabel() == "P(out)"
    new = {"b": [0.5, 2.0], "a": [0.0, 1.0]}  # found by name
    np.testing.assert_allclose(fit.predict_proba(new), fit.predict_proba([[0.0, 0.5], [1.0, 2.0]]))
    line = ep.models.gp_classification(X[:, 0], X[:, 0] > 0.2)
    assert line.plot(X[:, 0], X[:, 0] > 0.2).get_ylabel() == "P(True)"
    with pytest.raises(ShapeError, match="X has 1 columns; expected 2, as in the fit: a, b"):
        fit.predict(X[:, :1])


def test_a_ranking_is_that_of_a_sum_over_all_skills():
    winners, losers = ["ann", "ann", "bob", "ann", "bob"], ["bob", "cy", "cy", "bob", "cy"]
    draws = [False, False, False, False, True]
    fit = ep.models.ranking(winners, losers, draws)
    assert fit.players == ("ann", "bob", "cy")
    assert fit.margin == pytest.approx(np.sqrt(0.5) * scipy.stats.norm.ppf(0.6))
    grid = np.linspace(-5, 5, 101)
    skills = dict(zip(fit.players, np.meshgrid(grid, grid, grid, indexing="ij"), strict=True))
    log_joint = sum(scipy.stats.norm.logpdf(skill) for skill in skills.values())
    for a, b, drawn in zip(winners, losers, draws, strict=True):
        gap = skills[a] - skills[b]
        low, high = (-fit.margin, fit.margin) if drawn else (fit.margin, np.inf)
        log_joint = log_joint + np.log(
            scipy.special.ndtr((high - gap) / np.sqrt(0.5)) - scipy.special.ndtr((low - gap) / np.sqrt(0.5)) + 1e-300
        )
    law = np.exp(log_joint)
    assert fit.log_evidence == pytest.approx(np.log(law.sum() * 0.1**3), abs=0.02)
    law /= law.sum()
    means = np.array([(law * skill).sum() for skill in skills.values()])
    np.testing.assert_allclose(fit.mean, means, atol=0.02)
    sds = [np.sqrt((law * (skill - m) ** 2).sum()) for skill, m in zip(skills.values(), means, strict=True)]
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), sds, rtol=0.03)
    gap = (skills["ann"] - skills["cy"] - fit.margin) / np.sqrt(0.5)
    chances = fit.probability("ann", "cy")
    assert chances["win"] == pytest.approx((law * scipy.special.ndtr(gap)).sum(), abs=0.01)
    assert sum(chances.values()) == pytest.approx(1)
    assert fit.games.tolist() == [3, 4, 3]
    assert "3 players from 5 games" in str(fit)
    assert json.loads(json.dumps(fit.to_dict()))["players"] == ["ann", "bob", "cy"]
    assert fit.plot().get_xlabel().startswith("skill")
    with pytest.raises(InputError, match=r"'ana' \(did you mean 'ann'\?\) has played no game here; 3 players have\."):
        fit.probability("ana", "bob")
    with pytest.raises(ParameterError, match="'bob' cannot play against themselves"):
        fit.probability("bob", "bob")


@pytest.mark.slow
def test_the_compound_gamma_is_that_of_a_sum():
    x = np.array([1.0, -2.0, 0.5])
    fit = ep.models.compound_gamma(x)
    # The rate integrated out: p(τ) = 1/(1 + τ)² for shapes and rates 1.
    u = np.linspace(-40, 12, 50_001)
    t = np.exp(u)
    log_joint = u - 2 * np.log1p(t) + 1.5 * u - t * (x @ x) / 2 - 1.5 * np.log(2 * np.pi)
    law = np.exp(log_joint)
    assert fit.log_evidence == pytest.approx(np.log(law.sum() * (u[1] - u[0])), abs=1e-8)
    law /= law.sum()
    assert fit["precision"].mean() == pytest.approx(law @ t, rel=1e-8)
    assert fit["precision"].mean_in("log") == pytest.approx(law @ u, abs=1e-7)
    # And the rate given the precision is Gamma(2, 1 + τ).
    assert fit["rate"].mean() == pytest.approx(law @ (2 / (1 + t)), rel=1e-6)
    with pytest.raises(KeyError, match="the parameters are 'precision', 'rate'"):
        fit["scale"]


TIMES = np.linspace(0, 3, 20)
SEEN = 2 * np.exp(-1.5 * TIMES) + 0.1 * np.random.default_rng(0).normal(size=20)


@pytest.mark.slow
def test_a_program_of_two_numbers_is_that_of_a_sum():
    fit = ep.models.simulator(
        lambda size, rate, t: size * jnp.exp(-rate * t),
        {"size": ep.Normal(0.0, 9.0), "rate": ep.Gamma(2.0, 2.0)},
        TIMES,
        observed=SEEN,
        noise_sd=0.1,
    )
    size, rate = np.linspace(1, 3, 401)[:, None], np.linspace(0.5, 3, 501)
    log_joint = scipy.stats.norm.logpdf(size, 0, 3) + scipy.stats.gamma.logpdf(rate, 2, scale=0.5)
    for t, y in zip(TIMES, SEEN, strict=True):
        log_joint = log_joint + scipy.stats.norm.logpdf(y, size * np.exp(-rate * t), 0.1)
    law = np.exp(log_joint - log_joint.max())
    evidence = np.log(law.sum() * 0.005**2) + log_joint.max()
    law /= law.sum()
    for name, x in (("size", size), ("rate", rate)):
        mean = (law * x).sum()
        assert fit[name].mean() == pytest.approx(mean, rel=1e-5)
        assert fit[name].sd() == pytest.approx(np.sqrt((law * (x - mean) ** 2).sum()), rel=0.01)
    assert fit.log_evidence == pytest.approx(evidence, abs=1e-4)
    assert str(fit).splitlines()[-1].startswith("rate")
    assert json.loads(json.dumps(fit.to_dict()))["parameters"]["size"]["positive"] == pytest.approx(1)


@pytest.mark.slow
def test_a_plain_python_program_is_the_same():
    prior = {"rate": ep.Gamma(2.0, 2.0)}
    plain = ep.models.simulator(lambda r, t: 2 * math.exp(-r * t), prior, TIMES, observed=SEEN, noise_sd=0.1)
    traced = ep.models.simulator(lambda r, t: 2 * jnp.exp(-r * t), prior, TIMES, observed=SEEN, noise_sd=0.1)
    assert plain["rate"].mean() == pytest.approx(traced["rate"].mean(), rel=1e-8)
    assert plain.log_evidence == pytest.approx(traced.log_evidence, abs=1e-8)


def drawing_program(**options):
    """15 observations of a number with noise that the program draws, and the belief about the number."""
    observed = np.random.default_rng(0).normal(1.0, 0.54, size=15)
    prior = {"a": ep.Normal(0.0, 4.0)}
    program = lambda key, a: a + 0.5 * jax.random.normal(key)  # noqa: E731
    return observed, ep.models.simulator(program, prior, observed=observed, noise_sd=0.2, random=True, rng=0, **options)


@pytest.mark.slow
def test_a_program_that_draws_is_a_normal_mean():
    observed, fit = drawing_program()
    variance = 1 / (1 / 4 + 15 / 0.29)
    assert abs(fit["a"].mean() - variance * observed.sum() / 0.29) < 0.1 * np.sqrt(variance)
    assert fit["a"].sd() == pytest.approx(np.sqrt(variance), rel=0.1)


@pytest.mark.slow
def test_student_noise_is_a_gaussian_of_unknown_precision():
    y, scale, degrees = np.array([0.3, -1.0, 6.0]), 0.7, 3.0
    z = ep.Variable("z", ep.Normal(0.0, 4.0), plate=3)
    direct = ep.infer(ep.FactorGraph(ep.Student(z, observed=y, scale=scale, degrees=degrees)))
    tau = ep.Variable("tau", ep.Gamma(degrees / 2, degrees * scale**2 / 2), plate=3)
    mixed = ep.infer(ep.FactorGraph(ep.Gaussian(z, observed=y, precision=tau)))
    np.testing.assert_allclose(direct["z"].mean(), mixed["z"].mean(), atol=1e-8)
    np.testing.assert_allclose(direct["z"].var(), mixed["z"].var(), atol=1e-8)
    assert direct.log_evidence == pytest.approx(mixed.log_evidence, abs=1e-8)


@pytest.mark.slow
def test_evidence_that_is_not_defined_is_said():
    """Few points a message make improper ones, and the evidence stands; fewer leave messages out, and there is none."""
    observed, fit = drawing_program(messages=ep.Stratified(200))
    assert fit.report.converged
    assert any("improper messages" in note for note in fit.report.notes)
    spread = 0.29 * np.eye(15) + 4.0
    exact = -(observed @ np.linalg.solve(spread, observed) + np.linalg.slogdet(2 * np.pi * spread)[1]) / 2
    assert fit.log_evidence == pytest.approx(exact, abs=0.2)
    _, fit = drawing_program(messages=ep.Stratified(50))
    assert not fit.report.converged
    assert np.isnan(fit.log_evidence)
    assert any("there is no log evidence: it would need the messages that were left out" in n for n in fit.report.notes)
