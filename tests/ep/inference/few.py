"""Models of two or three unknown numbers in functions of rows, with their posterior on a grid."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln as jax_gammaln
from scipy import special, stats

from meanmap import ep

__all__ = ["MODELS", "on_a_grid", "run"]


def on_a_grid(axes, log_density):
    """Means, standard deviations and log evidence; each axis has its points, and what they are spaced evenly in."""
    edges = [np.asarray(axis) for axis in axes]
    grids = np.meshgrid(*edges, indexing="ij", sparse=True)
    logs = log_density(*grids)
    for at, axis in enumerate(edges):
        widths = np.gradient(axis)
        logs = logs + np.log(widths).reshape([-1 if k == at else 1 for k in range(len(edges))])
    mass = np.exp(logs - logs.max())
    evidence = float(np.log(mass.sum()) + logs.max())
    mass /= mass.sum()
    means = [float((mass * grid).sum()) for grid in grids]
    sds = [float(np.sqrt((mass * (grid - mean) ** 2).sum())) for grid, mean in zip(grids, means, strict=True)]
    return means, sds, evidence


def added(log_row, *rows):
    """The sum of a log density over rows, without an array of rows and points."""
    return lambda *numbers: sum(log_row(*numbers, *row) for row in zip(*rows, strict=True))


def negative_binomial(generator):
    y = generator.poisson(generator.gamma(2.0, 2.0, 200))

    def log_row(a, b, y):
        return jax_gammaln(y + a) - jax_gammaln(a) - jax_gammaln(y + 1.0) + a * jnp.log(b / (1 + b)) - y * jnp.log1p(b)

    values, counts = np.unique(y, return_counts=True)

    def exact(a, b):
        prior = stats.gamma.logpdf(a, 2) + stats.gamma.logpdf(b, 2, scale=0.5)
        each = (
            k
            * (
                special.gammaln(v + a)
                - special.gammaln(a)
                - special.gammaln(v + 1)
                + a * np.log(b / (1 + b))
                - v * np.log1p(b)
            )
            for v, k in zip(values, counts, strict=True)
        )
        return prior + sum(each)

    a, b = ep.Variable("a", ep.Gamma(2.0, 1.0)), ep.Variable("b", ep.Gamma(2.0, 2.0))
    return ep.Density(log_row, a, b, y), exact, [np.geomspace(0.3, 12, 300), np.geomspace(0.05, 5, 300)]


def michaelis_menten(generator):
    x = generator.uniform(0.1, 5, 60)
    y = 3 * x / (1.2 + x) + 0.2 * generator.normal(size=60)

    def log_row(v, k, s, x, y, xp=jnp):
        return -0.5 * ((y - xp.exp(v) * x / (xp.exp(k) + x)) / xp.exp(s)) ** 2 - s - 0.919

    def exact(v, k, s):
        prior = stats.norm.logpdf(v) + stats.norm.logpdf(k) + stats.norm.logpdf(s, -1)
        squares = added(lambda v, k, x, y: (y - np.exp(v) * x / (np.exp(k) + x)) ** 2, x, y)(v, k)
        return prior - squares * np.exp(-2 * s) / 2 - 60 * (s + 0.919)

    unknown = [ep.Variable(name, ep.Normal(mean, 1.0)) for name, mean in (("v", 0.0), ("k", 0.0), ("s", -1.0))]
    axes = [np.linspace(0.6, 2.0, 120), np.linspace(-1, 2, 120), np.linspace(-2.2, -0.8, 80)]
    return ep.Density(log_row, *unknown, x, y), exact, axes


def weibull_with_censoring(generator):
    time = 3 * generator.weibull(1.7, 80)
    end = generator.uniform(1, 5, 80)
    seen, time = (time <= end).astype(float), np.minimum(time, end)

    def log_row(shape, scale, time, seen, xp=jnp):
        return seen * (xp.log(shape / scale) + (shape - 1) * xp.log(time / scale)) - (time / scale) ** shape

    def exact(shape, scale):
        prior = stats.gamma.logpdf(shape, 2) + stats.gamma.logpdf(scale, 2, scale=2)
        return prior + added(lambda a, b, t, d: log_row(a, b, t, d, np), time, seen)(shape, scale)

    shape, scale = ep.Variable("shape", ep.Gamma(2.0, 1.0)), ep.Variable("scale", ep.Gamma(2.0, 0.5))
    return ep.Density(log_row, shape, scale, time, seen), exact, [np.geomspace(0.6, 5, 300), np.geomspace(1.2, 10, 300)]


def beta_binomial(generator):
    trials = generator.integers(5, 30, 100)
    y = generator.binomial(trials, generator.beta(2, 6, 100))

    def log_row(a, b, y, n):
        def log_beta(a, b):
            return jax_gammaln(a) + jax_gammaln(b) - jax_gammaln(a + b)

        return log_beta(a + y, b + n - y) - log_beta(a, b)

    def exact(a, b):
        prior = stats.gamma.logpdf(a, 2, scale=2) + stats.gamma.logpdf(b, 2, scale=2)
        return prior + added(lambda a, b, y, n: special.betaln(a + y, b + n - y) - special.betaln(a, b), y, trials)(
            a, b
        )

    a, b = ep.Variable("a", ep.Gamma(2.0, 0.5)), ep.Variable("b", ep.Gamma(2.0, 0.5))
    return ep.Density(log_row, a, b, y, trials), exact, [np.geomspace(0.4, 15, 250), np.geomspace(1, 50, 250)]


def logistic_growth(generator):
    t = np.linspace(0, 8, 30)
    y = 10 / (1 + 19 * np.exp(-1.1 * t)) + 0.4 * generator.normal(size=30)

    def log_row(top, rate, t, y, xp=jnp):
        return -((y - top / (1 + (top / 0.5 - 1) * xp.exp(-rate * t))) ** 2) / 0.32 - 0.5 * np.log(2 * np.pi * 0.16)

    def exact(top, rate):
        prior = stats.gamma.logpdf(top, 2, scale=5) + stats.gamma.logpdf(rate, 2)
        return prior + added(lambda a, b, t, y: log_row(a, b, t, y, np), t, y)(top, rate)

    top, rate = ep.Variable("top", ep.Gamma(2.0, 0.2)), ep.Variable("rate", ep.Gamma(2.0, 1.0))
    return ep.Density(log_row, top, rate, t, y), exact, [np.linspace(8, 13, 300), np.linspace(0.9, 1.3, 300)]


def two_modes(generator):
    y = 1.5 + generator.normal(size=40)

    def log_row(a, b, y):
        return -((y - a * b) ** 2) / 2 - 0.5 * np.log(2 * np.pi)

    def exact(a, b):
        prior = stats.norm.logpdf(a, 0.3) + stats.norm.logpdf(b)
        return prior + added(log_row, y)(a, b)

    a, b = ep.Variable("a", ep.Normal(0.3, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    return ep.Density(log_row, a, b, y), exact, [np.linspace(-5, 5, 801), np.linspace(-5, 5, 801)]


def shares(generator):
    """How many are ill, and how many of the ill a test finds, where one in fifty others is found, too."""
    y = generator.binomial(20, 0.3 * 0.8 + 0.7 * 0.02, 50)

    def log_row(ill, found, y, xp=jnp):
        share = ill * found + (1 - ill) * 0.02
        return y * xp.log(share) + (20 - y) * xp.log1p(-share)

    def exact(ill, found):
        return stats.beta.logpdf(found, 3, 1) + added(lambda a, b, y: log_row(a, b, y, np), y)(ill, found)

    middle = (np.arange(800) + 0.5) / 800
    ill, found = ep.Variable("ill", ep.Beta(1.0, 1.0)), ep.Variable("found", ep.Beta(3.0, 1.0))
    return ep.Density(log_row, ill, found, y), exact, [middle, middle]


def banana(generator):
    y = 1.0 + generator.normal(size=100)

    def log_row(a, b, y):
        return -((y - a - b**2) ** 2) / 2 - 0.5 * np.log(2 * np.pi)

    def exact(a, b):
        return stats.norm.logpdf(a, 0, 2) + stats.norm.logpdf(b, 0, 2) + added(log_row, y)(a, b)

    a, b = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("b", ep.Normal(0.0, 4.0))
    return ep.Density(log_row, a, b, y), exact, [np.linspace(-12, 2, 1201), np.linspace(-4, 4, 801)]


def gamma_of_both(generator):
    y = generator.gamma(3.0, 0.5, 120)

    def log_row(a, b, y):
        return a * jnp.log(b) - jax_gammaln(a) + (a - 1) * jnp.log(y) - b * y

    def exact(a, b):
        prior = stats.gamma.logpdf(a, 1, scale=5) + stats.gamma.logpdf(b, 1, scale=5)
        return prior + 120 * (a * np.log(b) - special.gammaln(a)) + (a - 1) * np.log(y).sum() - b * y.sum()

    a, b = ep.Variable("a", ep.Gamma(1.0, 0.2)), ep.Variable("b", ep.Gamma(1.0, 0.2))
    return ep.Density(log_row, a, b, y), exact, [np.geomspace(1, 8, 300), np.geomspace(0.5, 8, 300)]


def zero_inflated(generator):
    y = np.where(generator.random(60) < 0.4, 0, generator.poisson(1.2, 60))

    def log_row(share, rate, y):
        poisson = y * jnp.log(rate) - rate - jax_gammaln(y + 1.0)
        none = jnp.logaddexp(jnp.log(share), jnp.log1p(-share) - rate)
        return jnp.where(y == 0, none, jnp.log1p(-share) + poisson)

    def exact(share, rate):
        each = (
            np.logaddexp(np.where(v == 0, np.log(share), -np.inf), np.log1p(-share) + stats.poisson.logpmf(v, rate))
            for v in y
        )
        return stats.gamma.logpdf(rate, 2) + sum(each)

    share, rate = ep.Variable("share", ep.Beta(1.0, 1.0)), ep.Variable("rate", ep.Gamma(2.0, 1.0))
    return ep.Density(log_row, share, rate, y), exact, [(np.arange(300) + 0.5) / 300, np.geomspace(0.2, 6, 300)]


MODELS = {
    each.__name__: each
    for each in (
        negative_binomial,
        michaelis_menten,
        weibull_with_censoring,
        beta_binomial,
        logistic_growth,
        two_modes,
        shares,
        banana,
        gamma_of_both,
        zero_inflated,
    )
}


def run(name, generator, seed):
    """The posterior of a model, and its moments on a grid."""
    density, exact, axes = MODELS[name](generator)
    return ep.infer(ep.FactorGraph(density), rng=seed), *on_a_grid(axes, exact)
