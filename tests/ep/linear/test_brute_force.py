"""Ordered labels, negative binomial counts and slopes beside dense quadrature over effects and a grid over the rest."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln, logsumexp

import meanmap as mm

# Values of an effect of a group, close together around 0, and the logs of what they represent.
VALUES = 0.5 * np.sinh(np.arange(-33, 34) * 0.15)
WIDTHS = np.log(np.cosh(np.arange(-33, 34) * 0.15))


def brute_force(table, axes, deviations, density, log_prior, shown):
    """Mean and sd of each shown number over a grid of θ and of standard deviations, of intercepts and then of slopes.

    The likelihood log p(y | effects of a group, θ) is tabulated once for each θ.
    """
    g, x, y = (np.asarray(table[name]) for name in ("g", "x", "y"))
    width, starts, logs, values = len(deviations), np.flatnonzero(np.diff(g, prepend=-1)), [], []
    u = np.array(list(product(VALUES, repeat=width)))
    eta = u @ np.stack([np.ones(len(x)), x][:width])
    priors = []
    for sds in product(*deviations):
        prior = np.array(list(product(WIDTHS, repeat=width))).sum(1) - ((u / sds) ** 2).sum(1) / 2
        priors.append((sds, np.exp(prior - logsumexp(prior))))
    for theta in product(*axes):
        of_groups = np.add.reduceat(density(y, eta, theta), starts, axis=1)
        top = of_groups.max(0)
        masses = np.exp(of_groups - top)
        for sds, prior in priors:
            of_sds = sum(stats.t.logpdf(sd / 2.5, 3) for sd in sds)
            logs.append(float(np.log(prior @ masses).sum() + top.sum() + log_prior(theta) + of_sds))
            values.append(shown(theta, sds))
    values, shares = np.array(values), np.exp(np.array(logs) - logsumexp(logs))
    mean = shares @ values
    return mean, np.sqrt(shares @ (values - mean) ** 2)


def middles(top, count):
    """Midpoints of equal parts of (0, top)."""
    return (np.arange(count) + 0.5) * top / count


def half_student(sd):
    return stats.t.logpdf(sd / 2.5, 3)


def around(row, count=15, reach=4.5):
    return row["estimate"] + row["sd"] * np.linspace(-reach, reach, count)


def compared(found, names, mean, sd, fixed):
    """Means within .05 sd; sds within 3% for effects that all rows share, and within 5% for components."""
    for at, name in enumerate(names):
        row = found.loc[name]
        assert abs(row["estimate"] - mean[at]) < 0.05 * sd[at], (name, row["estimate"], mean[at], sd[at])
        assert row["sd"] == pytest.approx(sd[at], rel=0.03 if at < fixed else 0.05), name


def groups_of(rng, count, rows):
    g = np.repeat(np.arange(count), rows)
    x = rng.normal(size=len(g))
    x = (x - x.mean()) / x.std()
    return g, x


@pytest.mark.parametrize("seed", [601, 602])
def test_ordered_labels(seed):
    rng = np.random.default_rng(seed)
    g, x = groups_of(rng, 15, 4)
    latent = rng.normal(size=15)[g] + rng.logistic(size=60)
    table = {"g": g, "x": x, "y": np.digitize(latent, [-0.7, 0.9])}
    found = mm.fit("y ~ 1 + (1 | g)", table, family="cumulative").to_frame()
    cuts, deviation = found.index[:2], "sd(Intercept | g)"

    def density(y, eta, theta):
        bounds = np.array([-np.inf, theta[0] - theta[1] / 2, theta[0] + theta[1] / 2, np.inf])
        return np.log(np.maximum(expit(bounds[y + 1] - eta) - expit(bounds[y] - eta), 1e-300))

    first, second = (found.loc[name] for name in cuts)
    middle = (first["estimate"] + second["estimate"]) / 2
    axes = (
        middle + max(first["sd"], second["sd"]) * np.linspace(-4.5, 4.5, 15),
        middles(second["estimate"] - first["estimate"] + 5 * second["sd"], 24),
    )
    mean, sd = brute_force(
        table,
        axes,
        [middles(found.loc[deviation, "estimate"] + 7 * found.loc[deviation, "sd"], 30)],
        density,
        lambda t: stats.norm.logpdf(t[0], 0, 2.5) + half_student(t[1]),
        lambda t, sds: (t[0] - t[1] / 2, t[0] + t[1] / 2, *sds),
    )
    compared(found, [*cuts, deviation], mean, sd, 2)


@pytest.mark.parametrize("seed", [611, 612])
def test_negative_binomial_counts(seed):
    rng = np.random.default_rng(seed)
    g, x = groups_of(rng, 15, 4)
    rate = np.exp(1.0 + 0.7 * rng.normal(size=15)[g])
    table = {"g": g, "x": x, "y": rng.poisson(rate * rng.gamma(2.0, 0.5, 60))}
    found = mm.fit("y ~ 1 + (1 | g)", table, family="negativebinomial").to_frame()
    deviation, centre = found.loc["sd(Intercept | g)"], np.log(table["y"].mean() + 1e-3)
    logs = np.linspace(np.log(found.loc["alpha", "low"]) - 1.5, np.log(found.loc["alpha", "high"]) + 2.5, 24)

    def density(y, eta, theta):
        eta, alpha = eta + theta[0], np.exp(theta[1])
        constant = gammaln(y + alpha) - gammaln(alpha) - gammaln(y + 1) + alpha * theta[1]
        return constant + y * eta - (y + alpha) * np.log(alpha + np.exp(eta))

    def log_prior(theta):
        of_alpha = stats.halfcauchy.logpdf(np.exp(theta[1]), scale=10) + theta[1]
        return stats.norm.logpdf(theta[0], centre, 2.5) + of_alpha

    sds = middles(deviation["estimate"] + 7 * deviation["sd"], 30)
    axes = around(found.loc["Intercept"]), logs
    mean, sd = brute_force(table, axes, [sds], density, log_prior, lambda t, sds: (t[0], *sds))
    compared(found, ["Intercept", "sd(Intercept | g)"], mean, sd, 1)


@pytest.mark.parametrize(("family", "seed"), [("bernoulli", 621), ("poisson", 622)])
def test_slopes(family, seed):
    rng = np.random.default_rng(seed)
    g, x = groups_of(rng, 10, 5)
    eta = 0.4 + rng.normal(size=10)[g] + 0.8 * rng.normal(size=10)[g] * x
    labels = family == "bernoulli"
    y = (rng.random(50) < expit(eta)) * 1 if labels else rng.poisson(np.exp(eta))
    table = {"g": g, "x": x, "y": y}
    found = mm.fit("y ~ 1 + (1 + x || g)", table, family=family).to_frame()
    centre = 0.0 if labels else np.log(y.mean() + 1e-3)

    def density(y, eta, theta):
        eta = eta + theta[0]
        return y * eta - np.logaddexp(0, eta) if labels else y * eta - np.exp(eta) - gammaln(y + 1)

    names = ["sd(Intercept | g)", "sd(x | g)"]
    deviations = [middles(found.loc[name, "estimate"] + 7 * found.loc[name, "sd"], 20) for name in names]
    mean, sd = brute_force(
        table,
        [around(found.loc["Intercept"])],
        deviations,
        density,
        lambda t: stats.norm.logpdf(t[0], centre, 2.5),
        lambda t, sds: (t[0], *sds),
    )
    compared(found, ["Intercept", *names], mean, sd, 1)
