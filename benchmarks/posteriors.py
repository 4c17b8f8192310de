"""Beliefs of the ready models beside long runs of the No-U-Turn sampler: python -m benchmarks.posteriors [NAME ...].

Ten small tables, real ones of scikit-learn and drawn ones, each with the default priors of its model. The sampler has
the same model and priors, and takes 10,000 draws after 1000 of warming up (numpyro). The whole takes part in
`python -m benchmarks`, which stores the results and writes docs/benchmarks/posteriors.rst.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.table import duration, list_table
from meanmap import ep
from meanmap.experiments.messages.judges import nuts

__all__ = ["TABLES", "Beside", "measure", "measured", "page"]

Found = dict[str, Any]
PRIOR, INTERCEPT = 2.5, 10.0


@dataclass(frozen=True)
class Beside:
    """One table.

    Attributes
    ----------
    rows, unknowns : int
    ways : dict
        By name, functions without arguments to means, standard deviations and whether the run converged.
    log_density : callable
        Of the vector that is sampled.
    read : callable
        From draws to the numbers that the ways give means and deviations of.
    """

    rows: int
    unknowns: int
    ways: dict[str, Callable[[], tuple[np.ndarray, np.ndarray, bool]]]
    log_density: Callable[[Any], Any]
    read: Callable[[np.ndarray], np.ndarray] = lambda draws: draws


def standard(X: np.ndarray) -> np.ndarray:
    """Standardised columns behind a column of ones, as the models have them."""
    return np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])


def sds(d: int) -> np.ndarray:
    """Of the default priors of an intercept and d columns."""
    return np.array([INTERCEPT] + [PRIOR] * d)


def prior(w: Any, deviations: np.ndarray) -> Any:
    """The log of independent Normals."""
    return -(w**2 / deviations**2).sum() / 2


def of_coefficients(fit: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """The belief about standardised coefficients."""
    w = fit.posterior["w"]
    return w.mean, w.sd, bool(fit.report.converged)


def logistic(X: np.ndarray, y: np.ndarray, learned: bool = False) -> Beside:
    """Two labels: the ready model, and the README's black box with messages by quadrature and learned ones."""
    rows, spread = standard(X), sds(X.shape[1])

    def black_box(messages: Any = None) -> tuple[np.ndarray, np.ndarray, bool]:
        n = len(y)
        w = ep.Variable("w", ep.MultivariateNormal(np.zeros(len(spread)), np.diag(spread**2)))
        z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
        model = ep.FactorGraph(ep.Dot(rows, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
        post = ep.infer(model, messages, rng=0)
        return post["w"].mean, post["w"].sd, bool(post.report.converged)

    ways = {"logistic_regression": lambda: of_coefficients(ep.models.logistic_regression(X, y)), "black box": black_box}
    if learned:
        ways["black box, learned"] = lambda: black_box(ep.Learned())
    at = jnp.asarray(rows)
    return Beside(
        *rows.shape,
        ways,
        lambda w: -jnp.logaddexp(0, (1 - 2 * y) * (at @ w)).sum() + prior(w, spread),
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
    return logistic(X[50:], y[50:] - 1, learned=True)


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
    rows, spread = jnp.asarray(standard(X)), sds(X.shape[1])
    return Beside(
        *rows.shape,
        {"probit_regression": lambda: of_coefficients(ep.models.probit_regression(X, y))},
        lambda w: jax.scipy.special.log_ndtr((2 * y - 1) * (rows @ w)).sum() + prior(w, spread),
    )


def poisson(X: np.ndarray, y: np.ndarray, exposure: Any = 1.0) -> Beside:
    """Counts."""
    rows, spread = jnp.asarray(standard(X)), sds(X.shape[1])
    times = np.broadcast_to(exposure, len(y))
    return Beside(
        *rows.shape,
        {"poisson_regression": lambda: of_coefficients(ep.models.poisson_regression(X, y, exposure=times))},
        lambda w: (y * (rows @ w) - times * jnp.exp(rows @ w)).sum() + prior(w, spread),
    )


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
    scaled, at = (y - middle) / unit, jnp.asarray(rows)

    def log_density(theta):
        terms = -2.5 * jnp.log1p(((scaled - at @ theta[:4]) / jnp.exp(theta[4])) ** 2 / 4) - theta[4]
        return terms.sum() + prior(theta[:4], spread)

    def ready():
        fit = ep.models.robust_regression(X, y)
        return fit.mean, np.sqrt(np.diag(fit.covariance)), bool(fit.report.converged)

    turn = np.eye(4)
    turn[1:, 1:] /= X.std(0)
    turn[0, 1:] = -X.mean(0) / X.std(0)
    return Beside(
        len(y),
        5,
        {"robust_regression": ready},
        log_density,
        lambda draws: unit * draws[:, :4] @ turn.T + middle * np.eye(4)[0],
    )


def ordinal() -> Beside:
    """How far a diabetes grew, in quarters; at the cutpoints that the model has chosen."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = X[:200, [2, 3, 8]]
    y = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y[:200])
    rows = jnp.asarray(standard(X)[:, 1:])
    fit = ep.models.ordinal_regression(X, y)
    ends = jnp.asarray(np.concatenate([[-30.0], fit.cutpoints, [30.0]]))

    def log_density(w):
        z = rows @ w
        mass = jax.scipy.special.ndtr(ends[y + 1] - z) - jax.scipy.special.ndtr(ends[y] - z)
        return jnp.log(mass).sum() + prior(w, sds(3)[1:])

    ways = {"ordinal_regression": lambda: of_coefficients(ep.models.ordinal_regression(X, y))}
    return Beside(len(y), 3, ways, log_density)


def ranking() -> Beside:
    """Eighty games of twelve players."""
    rng = np.random.default_rng(0)
    skills = rng.normal(size=12)
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(80)])
    wins = skills[pairs[:, 0]] - skills[pairs[:, 1]] + np.sqrt(0.5) * rng.normal(size=80) > 0
    pairs[~wins] = pairs[~wins][:, ::-1]

    def ready():
        fit = ep.models.ranking(pairs[:, 0], pairs[:, 1])
        order = np.argsort(fit.players)
        return fit.mean[order], np.sqrt(np.diag(fit.covariance))[order], bool(fit.report.converged)

    def log_density(s):
        gap = (s[pairs[:, 0]] - s[pairs[:, 1]]) / np.sqrt(0.5)
        return jax.scipy.special.log_ndtr(gap).sum() - (s**2).sum() / 2

    return Beside(80, 12, {"ranking": ready}, log_density)


def groups() -> Beside:
    """Two labels in ten groups of fifteen, whose effects have an unknown precision: the slope and the effects."""
    rng = np.random.default_rng(1)
    of = np.repeat(np.arange(10), 15)
    x = rng.normal(size=150)
    y = (x + rng.normal(size=10)[of] + rng.logistic(size=150) > 0).astype(int)

    def joint():
        # One belief about slope and effects together for each precision of a grid, weighted by the evidence.
        log_tau = np.linspace(-2.5, 3.5, 25)
        rows = np.column_stack([x, np.eye(10)[of]])
        posts = []
        for tau in np.exp(log_tau):
            w = ep.Variable("w", ep.MultivariateNormal(np.zeros(11), np.diag([1.0] + [1 / tau] * 10)))
            z = ep.Variable("z", ep.Normal, plate=150)
            posts.append(ep.infer(ep.FactorGraph(ep.Dot(rows, w, z), ep.Logistic(z, observed=y))))
        logs = np.array([post.log_evidence for post in posts]) + 4 * log_tau - 2 * np.exp(log_tau)
        weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        means = np.array([post["w"].mean for post in posts])
        squares = np.array([post["w"].sd ** 2 for post in posts]) + means**2
        mean = weights @ means
        return mean, np.sqrt(weights @ squares - mean**2), all(post.report.converged for post in posts)

    def separate():
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
            np.concatenate(each) for each in ((post["w"].mean, post["effect"].mean), (post["w"].sd, post["effect"].sd))
        )
        return mean, sd, bool(post.report.converged)

    def log_density(theta):
        slope, raw, log_tau = theta[0], theta[1:11], theta[11]
        z = slope * x + (raw * jnp.exp(-log_tau / 2))[of]
        fit = -jnp.logaddexp(0, (1 - 2 * y) * z).sum() - slope**2 / 2 - (raw**2).sum() / 2
        return fit + 4 * log_tau - 2 * jnp.exp(log_tau)

    def read(draws):
        return np.column_stack([draws[:, 0], draws[:, 1:11] * np.exp(-draws[:, 11:] / 2)])

    return Beside(150, 12, {"Sum, separate beliefs": separate, "Dot, one belief": joint}, log_density, read)


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


def measured(name: str) -> Found:
    """How far each way is from the sampler: the worst mean in its deviations, the worst deviation, and seconds."""
    table = TABLES[name]()
    began = time.process_time()
    draws = table.read(nuts(table.log_density, table.unknowns))
    spent = time.process_time() - began
    mean, sd = draws.mean(0), draws.std(0)
    ways = {}
    for way, call in table.ways.items():
        began = time.process_time()
        found, spread, converged = call()
        ways[way] = {
            "mean": round(float((np.abs(found - mean) / sd).max()), 3),
            "sd": round(float(np.abs(spread / sd - 1).max()), 3),
            "converged": bool(converged),
            "seconds": float(f"{time.process_time() - began:.2g}"),
        }
    return {"rows": table.rows, "unknowns": table.unknowns, "ways": ways, "sampler": float(f"{spent:.2g}")}


def measure() -> Found:
    """All tables."""
    found = {}
    for name in TABLES:
        found[name] = measured(name)
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """One line for each table and way."""
    head = ["table", "rows", "unknowns", "model", "means off by (sd)", "sds off by", "seconds", "sampler's seconds"]
    rows = []
    for name, of in found.items():
        for at, (way, one) in enumerate(of["ways"].items()):
            told = [name, of["rows"], of["unknowns"]] if not at else ["", "", ""]
            worst = [f"{one['mean']:.3f}", f"{one['sd']:.1%}", duration(one["seconds"])]
            label = way if one["converged"] else f"{way} (not converged)"
            rows.append([*told, label, *worst, "" if at else duration(of["sampler"])])
    return "\n".join(list_table(head, rows))


if __name__ == "__main__":
    print(page({name: measured(name) for name in sys.argv[1:] or TABLES}))
