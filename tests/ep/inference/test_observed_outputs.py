"""Outputs of functions that are observed through factors with unknown numbers of their own: beside grids."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from meanmap import ep
from meanmap.ep.inference import few_numbers
from meanmap.ep.inference.beside import by_draws
from tests.ep.inference.few import added, on_a_grid
from tests.ep.inference.test_drawn import check


def saturating(v, k, s):
    return v * s / (k + s)


def unknowns(plate, family=ep.Normal):
    v, k = ep.Variable("v", ep.Gamma(4.0, 1.0)), ep.Variable("k", ep.Gamma(2.0, 1.0))
    return v, k, ep.Variable("x", family, plate=plate)


def log_prior(v, k):
    return stats.gamma.logpdf(v, 4) + stats.gamma.logpdf(k, 2)


def normal_prior(v, k):
    return stats.norm.logpdf(v, 3, 2) + stats.gamma.logpdf(k, 2)


def test_gaussian_noise_of_unknown_precision():
    generator = np.random.default_rng(31)
    s = generator.uniform(0.2, 8, 40)
    y = saturating(4, 1, s) + generator.normal(0, 0.25, 40)
    v, k, x = unknowns(40)
    tau = ep.Variable("tau", ep.Gamma(1.0, 0.1))
    curve = ep.BlackBox(saturating, v, k, s, x, name="curve")
    post = ep.infer(ep.FactorGraph(curve, ep.Gaussian(x, precision=tau, observed=y, name="noise")), rng=0)

    def exact(v, k, tau):
        squares = added(lambda v, k, s, y: (y - saturating(v, k, s)) ** 2, s, y)(v, k)
        return log_prior(v, k) + stats.gamma.logpdf(tau, 1, scale=10) + 20 * np.log(tau / 2 / np.pi) - tau / 2 * squares

    axes = [np.linspace(3, 5.5, 80), np.linspace(0.3, 2.5, 80), np.linspace(3, 50, 80)]
    check(post, ["v", "k", "tau"], *on_a_grid(axes, exact))
    assert "meet in rows of curve and noise" in post.report.choices["beliefs: by"]
    at_mean = saturating(float(post["v"].mean()), float(post["k"].mean()), s)
    assert np.abs(post["x"].mean() - at_mean).max() < 0.1
    assert post["x"].sd().max() < 0.3


def test_repeated_measures_with_student_noise_of_unknown_scale():
    generator = np.random.default_rng(32)
    doses, which = np.linspace(0.2, 5, 6), np.repeat(np.arange(6), 6)
    y = saturating(4, 1, doses)[which] + 0.3 * generator.standard_t(4, 36)
    v, k, x = unknowns(6)
    scale = ep.Variable("scale", ep.Gamma(2.0, 4.0))
    noise = ep.Student(x[which], scale=scale, observed=y)
    post = ep.infer(ep.FactorGraph(noise, ep.BlackBox(saturating, v, k, doses, x)), rng=0)

    def exact(v, k, scale):
        prior = log_prior(v, k) + stats.gamma.logpdf(scale, 2, scale=0.25)
        rows = added(lambda v, k, c, s, y: -2.5 * np.log1p(((y - saturating(v, k, s)) / c) ** 2 / 4), doses[which], y)
        constant = special.gammaln(2.5) - special.gammaln(2) - np.log(4 * np.pi) / 2
        return prior + rows(v, k, scale) + 36 * (constant - np.log(scale))

    axes = [np.linspace(2.5, 6.5, 80), np.linspace(0.1, 4, 80), np.linspace(0.08, 0.9, 80)]
    check(post, ["v", "k", "scale"], *on_a_grid(axes, exact))


def log_inside(v, k, s, low, high):
    z = saturating(v, k, s)
    return np.log(stats.norm.cdf(high - z) - stats.norm.cdf(low - z))


@pytest.mark.parametrize("kind", ["counts", "intervals", "labels", "offset"])
def test_any_factor_that_has_a_density_can_observe(kind):
    generator = np.random.default_rng(33)
    s = np.linspace(0.2, 5, 25)
    z = saturating(3, 1, s)
    v, k, x = unknowns(25, ep.Beta if kind == "labels" else ep.Normal)
    prior, function, axes = log_prior, saturating, [np.linspace(0.05, 9, 300), np.geomspace(1e-3, 12, 400)]
    if kind == "counts":
        y = generator.poisson(np.exp(z))
        observed, row = (
            ep.Poisson(x, observed=y),
            lambda v, k, s, y: stats.poisson.logpmf(y, np.exp(saturating(v, k, s))),
        )
        given = s, y
    elif kind == "intervals":
        low = np.floor(z + generator.normal(size=25))
        observed, row, given = ep.Interval(x, low, low + 1), log_inside, (s, low, low + 1)
        axes = [np.linspace(0.05, 12, 300), np.geomspace(1e-3, 15, 400)]
    elif kind == "labels":  # several outcomes for each member
        which = np.repeat(np.arange(25), 3)
        y = (generator.random(75) < 0.3 + 0.1 * z[which]).astype(float)
        observed, given = ep.Bernoulli(x[which], observed=y), (s[which], y)

        def function(v, k, s):
            return 1 / (1 + (k + s) / (v * s))

        def row(v, k, s, y):
            p = function(v, k, s)
            return y * np.log(p) + (1 - y) * np.log1p(-p)

        axes = [np.linspace(0.05, 16, 400), np.geomspace(1e-3, 14, 400)]
    else:  # with a number of the function again
        v, prior = ep.Variable("v", ep.Normal(3.0, 4.0)), normal_prior
        y = 3 + z + generator.normal(size=25)
        observed, given = ep.Sum(x, v, out=y, precision=1.0), (s, y)
        axes = [np.linspace(1.5, 6, 300), np.geomspace(1e-3, 14, 400)]

        def row(v, k, s, y):
            return stats.norm.logpdf(y, saturating(v, k, s) + v)

    post = ep.infer(ep.FactorGraph(ep.BlackBox(function, v, k, s, x), observed), rng=0)
    check(post, ["v", "k"], *on_a_grid(axes, lambda v, k: prior(v, k) + added(row, *given)(v, k)))


def test_outputs_of_two_functions_meet_in_one_factor():
    generator = np.random.default_rng(34)
    s = np.linspace(0, 3, 60)
    y = 1 - s / 2 + np.exp(s / 2 - 1) * generator.normal(size=60)
    a, b, c = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "abc")
    mean, log_sd = (ep.Variable(name, ep.Normal, plate=60) for name in ("mean", "log_sd"))

    def log_row(m, log_sd, y):
        return -(((y - m) / jnp.exp(log_sd)) ** 2) / 2 - log_sd - np.log(2 * np.pi) / 2

    factors = (
        ep.Density(log_row, mean, log_sd, y),
        ep.BlackBox(lambda a, b, s: a + b * s, a, b, s, mean, name="line"),
        ep.BlackBox(lambda c, s: c * s - 1, c, s, log_sd, name="width"),
    )
    post = ep.infer(ep.FactorGraph(*factors), rng=0)

    def exact(a, b, c):
        rows = added(lambda a, b, c, s, y: stats.norm.logpdf(y, a + b * s, np.exp(c * s - 1)), s, y)
        return rows(a, b, c) + sum(stats.norm.logpdf(each) for each in (a, b, c))

    axes = [np.linspace(0, 2, 70), np.linspace(-1.5, 0.5, 70), np.linspace(0, 1.1, 70)]
    check(post, "abc", *on_a_grid(axes, exact))
    assert "line" in post.report.choices["beliefs: by"]


def test_numbers_that_meet_in_rows_of_a_function_on_the_host_have_a_note():
    model = on_host()
    assert (
        "'a' and 'b' have separate beliefs and meet in all rows of f"
        in by_draws(model.variables, model.factors, {}, 0.0)[0]
    )


@pytest.mark.slow
def test_the_note_on_a_function_on_the_host_is_part_of_the_report():
    report = ep.infer(on_host(), ep.Quadrature(), rng=0).report
    assert report.status != "converged"
    assert any("meet in all rows of f" in note or "'a' and 'b' have separate" in note for note in report.notes)


def on_host():
    s = np.linspace(0.2, 3, 3)
    a, b = (ep.Variable(name, ep.Normal(1.0, 0.04)) for name in "ab")

    def log_row(a, b, s):
        return -20 * (np.asarray(a) + np.asarray(b) * s - 2) ** 2

    return ep.FactorGraph(ep.Density(log_row, a, b, s, vectorised=True, name="f"))


def test_outputs_of_many_rows_take_fewer_draws(monkeypatch):
    """All draws of 5000 rows took 1.7 GB."""
    counts, own = [], few_numbers.inside_at

    def counted(priors, functions, coordinates):
        counts.append(len(coordinates))
        return own(priors, functions, coordinates)

    monkeypatch.setattr(few_numbers, "inside_at", counted)
    monkeypatch.setattr(few_numbers, "_TOGETHER", 20_000)
    s = np.linspace(-1, 1, 20)
    a, b, y = (
        ep.Variable("a", ep.Normal(0.0, 4.0)),
        ep.Variable("b", ep.Normal(0.0, 4.0)),
        ep.Variable("y", ep.Normal, plate=20),
    )
    line = ep.BlackBox(lambda a, b, s: a + b * s, a, b, s, y)
    post = ep.infer(ep.FactorGraph(line, ep.Gaussian(y, observed=1 + s, precision=1.0)), rng=0)
    assert counts == [1000]
    precision = np.diag([20 + 0.25, (s**2).sum() + 0.25])
    sd = np.sqrt(1 / precision[0, 0] + s**2 / precision[1, 1])
    np.testing.assert_allclose(post["y"].sd(), sd, rtol=0.15)
