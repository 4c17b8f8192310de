"""Ten small tables for `benchmarks.posteriors`: the same model for expectation propagation, and as a log density.

Real tables are those of scikit-learn, the others are drawn. Each has the default priors of its ready model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from meanmap import ep

__all__ = ["TABLES", "Belief", "Beside"]

PRIOR, INTERCEPT = 2.5, 10.0


class Belief(NamedTuple):
    """Means and deviations of the unknowns, the log evidence, whether the run converged, and what it says about itself.

    `stated` is the standard error of the log evidence where messages were learned.
    """

    mean: np.ndarray
    sd: np.ndarray
    evidence: float
    converged: bool
    stated: float | None = None


@dataclass(frozen=True)
class Beside:
    """One table.

    Attributes
    ----------
    rows, unknowns : int
    ways : dict
        By name, functions without arguments to what is believed.
    log_density : callable
        Of the vector that is sampled: the log of likelihood times prior, with all constants.
    read : callable
        From draws to the numbers that the ways give means and deviations of.
    """

    rows: int
    unknowns: int
    ways: dict[str, Callable[[], Belief]]
    log_density: Callable[[Any], Any]
    read: Callable[[np.ndarray], np.ndarray] = lambda draws: draws


def standard(X: np.ndarray) -> np.ndarray:
    """Standardised columns behind a column of ones, as the models have them."""
    return np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])


def sds(d: int) -> np.ndarray:
    """Of the default priors of an intercept and d columns."""
    return np.array([INTERCEPT] + [PRIOR] * d)


def normal(w: Any, deviations: Any) -> Any:
    """The log density of independent Normals of mean 0."""
    return -((w / deviations) ** 2).sum() / 2 - (jnp.log(deviations) + jnp.log(2 * jnp.pi) / 2).sum()


def of_fit(fit: Any) -> Belief:
    """The belief about standardised coefficients."""
    return of_posterior(fit.posterior)


def of_posterior(post: Any) -> Belief:
    """The belief about w."""
    return Belief(post["w"].mean(), post["w"].sd(), post.log_evidence, bool(post.report.converged))


def linear(
    rows: np.ndarray, spread: np.ndarray, outcome: Callable[[Any], list], learned: ep.Learned | None = None
) -> Belief:
    """z = Xw and factors of z, of which the first is a black box."""
    w = ep.Variable("w", ep.MultivariateNormal(np.zeros(len(spread)), np.diag(spread**2)))
    z = ep.Variable("z", ep.Normal, plate=len(rows))
    factors = outcome(z)
    found = of_posterior(ep.infer(ep.FactorGraph(ep.Dot(rows, w, z), *factors), learned, rng=0))
    return found if learned is None else found._replace(stated=learned.diary(factors[0].name).evidence_error)


def through_a_probability(link: Callable[[Any], Any], labels: np.ndarray) -> Callable[[Any], list]:
    """The README's model: a black box from z to a probability, and labels."""

    def outcome(z: Any) -> list:
        p = ep.Variable("p", ep.Beta, plate=len(labels))
        return [ep.BlackBox(link, z, p), ep.Bernoulli(p, observed=labels)]

    return outcome


def ways_of(
    name: str, ready: Callable[[], Belief], rows: Any, spread: Any, outcome: Callable[[Any], list]
) -> dict[str, Callable[[], Belief]]:
    """The ready model, and a black box with messages by quadrature and learned ones."""
    return {
        name: ready,
        "black box": lambda: linear(rows, spread, outcome),
        "black box, learned": lambda: linear(rows, spread, outcome, ep.Learned(ep.Quadrature())),
    }


def averaged(beliefs: list[Belief], log_prior: np.ndarray, step: float) -> Belief:
    """Over a grid of an unknown number that each of the beliefs takes for known."""
    logs = np.array([belief.evidence for belief in beliefs]) + log_prior
    weights = np.exp(logs - logs.max())
    evidence = float(np.log(weights.sum() * step) + logs.max())
    weights /= weights.sum()
    assert max(weights[0], weights[-1]) < 1e-3, "the grid is too short"
    means = np.array([belief.mean for belief in beliefs])
    mean = weights @ means
    sd = np.sqrt(weights @ (np.array([belief.sd for belief in beliefs]) ** 2 + means**2) - mean**2)
    stated = None if beliefs[0].stated is None else float(weights @ [belief.stated or 0.0 for belief in beliefs])
    return Belief(mean, sd, evidence, all(belief.converged for belief in beliefs), stated)


def logistic(X: np.ndarray, y: np.ndarray) -> Beside:
    """Two labels."""
    rows, spread = standard(X), sds(X.shape[1])
    outcome = through_a_probability(jax.nn.sigmoid, y)
    ready = lambda: of_fit(ep.models.logistic_regression(X, y))  # noqa: E731
    return Beside(
        *rows.shape,
        ways_of("logistic_regression", ready, rows, spread, outcome),
        lambda w: -jnp.logaddexp(0, (1 - 2 * y) * (jnp.asarray(rows) @ w)).sum() + normal(w, spread),
    )


def tumours() -> Beside:
    """Breast tumours by six measurements."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return logistic(X[:, [1, 4, 8, 9, 11, 14]], y)


def flowers() -> Beside:
    """Two kinds of iris."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return logistic(X[50:], y[50:] - 1)


def separated() -> Beside:
    """Thirty rows that a linear rule all but separates."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    return logistic(X, (X @ [4.0, -3.0] + rng.logistic(size=30) > 0).astype(int))


def probit() -> Beside:
    """Whether a diabetes grew more than half of the others did, by ten measurements."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    y = (y > np.median(y)).astype(int)
    rows, spread = standard(X), sds(X.shape[1])
    outcome = through_a_probability(jax.scipy.stats.norm.cdf, y)
    ready = lambda: of_fit(ep.models.probit_regression(X, y))  # noqa: E731
    return Beside(
        *rows.shape,
        ways_of("probit_regression", ready, rows, spread, outcome),
        lambda w: jax.scipy.special.log_ndtr((2 * y - 1) * (jnp.asarray(rows) @ w)).sum() + normal(w, spread),
    )


def poisson(X: np.ndarray, y: np.ndarray, exposure: Any = 1.0) -> Beside:
    """Counts."""
    rows, spread = standard(X), sds(X.shape[1])
    times = np.broadcast_to(exposure, len(y))
    constant = float((y * np.log(times) - gammaln(y + 1)).sum())

    def outcome(z: Any) -> list:
        rate = ep.Variable("rate", ep.Gamma, plate=len(y))
        return [ep.BlackBox(jnp.exp, z, rate), ep.Poisson(rate, observed=y, exposure=times)]

    def log_density(w: Any) -> Any:
        z = jnp.asarray(rows) @ w
        return (y * z - times * jnp.exp(z)).sum() + constant + normal(w, spread)

    ready = lambda: of_fit(ep.models.poisson_regression(X, y, exposure=times))  # noqa: E731
    return Beside(*rows.shape, ways_of("poisson_regression", ready, rows, spread, outcome), log_density)


def exercises() -> Beside:
    """How many sit-ups twenty men did, by weight, waist and pulse."""
    from sklearn.datasets import load_linnerud

    found = load_linnerud()
    return poisson(found.target, found.data[:, 1])


def visits() -> Beside:
    """Rare events over times of different length."""
    rng = np.random.default_rng(5)
    X, times = rng.normal(size=(150, 3)), rng.uniform(0.2, 3.0, size=150)
    return poisson(X, rng.poisson(times * np.exp(X @ [0.6, -0.4, 0.0] - 1.0)), times)


def robust() -> Beside:
    """How far a diabetes grew, with Student noise of unknown scale."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = X[:150, [2, 3, 8]]
    y = y[:150]
    rows, spread, middle = standard(X), sds(3), np.median(y)
    unit = 1.4826 * np.median(np.abs(y - middle))
    scaled, n = (y - middle) / unit, len(y)
    constant = n * (gammaln(2.5) - gammaln(2.0) - np.log(4 * np.pi) / 2)
    # The prior of the log scale is flat from a thousandth to ten times the unit; y has a density in its own unit.
    outside = -np.log(np.log(1e4)) - n * np.log(unit)
    # From coefficients in the units of the data to those of standardised columns and outcomes.
    turn = np.diag([1.0, *X.std(0)])
    turn[0, 1:] = X.mean(0)
    turn /= unit
    log_scales = np.arange(-1.5, 0.45, 0.1)

    def log_student(z: Any, y: Any, scale: Any) -> Any:
        return float(constant / n) - jnp.log(scale) - 2.5 * jnp.log1p(((y - z) / scale) ** 2 / 4)

    def black_box(learned: ep.Learned | None = None) -> Belief:
        beliefs = [
            linear(rows, spread, lambda z, s=s: [ep.Density(log_student, z, scaled, np.full(n, s))], learned)
            for s in np.exp(log_scales)
        ]
        return averaged(beliefs, np.full(len(log_scales), outside), 0.1)

    def log_density(theta: Any) -> Any:
        away = (scaled - jnp.asarray(rows) @ theta[:4]) / jnp.exp(theta[4])
        terms = -2.5 * jnp.log1p(away**2 / 4) - theta[4]
        return terms.sum() + normal(theta[:4], spread) + constant + outside

    def ready() -> Belief:
        fit = ep.models.robust_regression(X, y)
        sd = np.sqrt(np.diag(turn @ fit.covariance @ turn.T))
        return Belief(turn @ (fit.mean - middle * np.eye(4)[0]), sd, fit.log_evidence, bool(fit.report.converged))

    ways = {
        "robust_regression": ready,
        "black box": black_box,
        "black box, learned": lambda: black_box(ep.Learned(ep.Quadrature())),
    }
    return Beside(n, 5, ways, log_density, lambda draws: draws[:, :4])


def ordinal() -> Beside:
    """How far a diabetes grew, in quarters; at the cutpoints that the model has chosen."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = X[:200, [2, 3, 8]]
    y = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y[:200])
    rows, spread = standard(X)[:, 1:], sds(3)[1:]
    ends = np.concatenate([[-30.0], ep.models.ordinal_regression(X, y).cutpoints, [30.0]])
    low, high = ends[y], ends[y + 1]

    def log_mass(z: Any, low: Any, high: Any) -> Any:
        return jnp.log(jax.scipy.special.ndtr(high - z) - jax.scipy.special.ndtr(low - z))

    ways = ways_of(
        "ordinal_regression",
        lambda: of_fit(ep.models.ordinal_regression(X, y)),
        rows,
        spread,
        lambda z: [ep.Density(log_mass, z, low, high)],
    )
    return Beside(len(y), 3, ways, lambda w: log_mass(jnp.asarray(rows) @ w, low, high).sum() + normal(w, spread))


def ranking() -> Beside:
    """Eighty games of twelve players."""
    rng = np.random.default_rng(0)
    skills = rng.normal(size=12)
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(80)])
    wins = skills[pairs[:, 0]] - skills[pairs[:, 1]] + np.sqrt(0.5) * rng.normal(size=80) > 0
    pairs[~wins] = pairs[~wins][:, ::-1]
    rows = (np.eye(12)[pairs[:, 0]] - np.eye(12)[pairs[:, 1]]) / np.sqrt(0.5)

    def ready() -> Belief:
        fit = ep.models.ranking(pairs[:, 0], pairs[:, 1])
        order = np.argsort(fit.players)
        sd = np.sqrt(np.diag(fit.covariance))[order]
        return Belief(fit.mean[order], sd, fit.log_evidence, bool(fit.posterior.report.converged))

    outcome = through_a_probability(jax.scipy.stats.norm.cdf, np.ones(80, int))
    return Beside(
        80,
        12,
        ways_of("ranking", ready, rows, np.ones(12), outcome),
        lambda s: jax.scipy.special.log_ndtr(jnp.asarray(rows) @ s).sum() + normal(s, jnp.ones(12)),
    )


def groups() -> Beside:
    """Two labels in ten groups of fifteen, whose effects have an unknown precision: the slope and the effects."""
    rng = np.random.default_rng(1)
    of = np.repeat(np.arange(10), 15)
    x = rng.normal(size=150)
    y = (x + rng.normal(size=10)[of] + rng.logistic(size=150) > 0).astype(int)
    gamma = 4 * np.log(2.0) - gammaln(4.0)

    def joint(outcome: Callable[[Any], list], learned: ep.Learned | None = None) -> Belief:
        # One belief about slope and effects together for each precision of a grid, weighted by the evidence.
        log_tau = np.linspace(-2.5, 3.5, 25)
        rows = np.column_stack([x, np.eye(10)[of]])
        spreads = [np.array([1.0] + [np.exp(-each / 2)] * 10) for each in log_tau]
        beliefs = [linear(rows, spread, outcome, learned) for spread in spreads]
        return averaged(beliefs, 4 * log_tau - 2 * np.exp(log_tau) + gamma, 0.25)

    def separate() -> Belief:
        w, z = ep.Variable("w", ep.MultivariateNormal.standard(1)), ep.Variable("z", ep.Normal, plate=150)
        effect, tau = ep.Variable("effect", ep.Normal, plate=10), ep.Variable("tau", ep.Gamma(4.0, 2.0))
        total = ep.Variable("total", ep.Normal, plate=150)
        post = ep.infer(
            ep.FactorGraph(
                ep.Gaussian(0.0, effect, precision=tau),
                ep.Dot(x[:, None], w, z),
                ep.Sum(z, effect[of], out=total),
                ep.Logistic(total, observed=y),
            )
        )
        mean, sd = (
            np.concatenate(each)
            for each in ((post["w"].mean(), post["effect"].mean()), (post["w"].sd(), post["effect"].sd()))
        )
        return Belief(mean, sd, post.log_evidence, bool(post.report.converged))

    def log_density(theta: Any) -> Any:
        slope, raw, log_tau = theta[:1], theta[1:11], theta[11]
        z = slope * x + (raw * jnp.exp(-log_tau / 2))[of]
        fit = -jnp.logaddexp(0, (1 - 2 * y) * z).sum() + normal(theta[:11], jnp.ones(11))
        return fit + 4 * log_tau - 2 * jnp.exp(log_tau) + gamma

    def read(draws: np.ndarray) -> np.ndarray:
        return np.column_stack([draws[:, 0], draws[:, 1:11] * np.exp(-draws[:, 11:] / 2)])

    ways = {
        "Sum, separate beliefs": separate,
        "Dot, one belief": lambda: joint(lambda z: [ep.Logistic(z, observed=y)]),
        "black box": lambda: joint(through_a_probability(jax.nn.sigmoid, y)),
        "black box, learned": lambda: joint(through_a_probability(jax.nn.sigmoid, y), ep.Learned(ep.Quadrature())),
    }
    return Beside(150, 12, ways, log_density, read)


TABLES: dict[str, Callable[[], Beside]] = {
    "tumours": tumours,
    "flowers": flowers,
    "nearly separated": separated,
    "diabetes, above the median": probit,
    "exercises": exercises,
    "visits": visits,
    "diabetes, robust": robust,
    "diabetes, in quarters": ordinal,
    "games": ranking,
    "groups": groups,
}
