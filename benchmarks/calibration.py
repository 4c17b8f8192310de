"""Simulation-based calibration of the ready models: ranks of true parameters in beliefs, which have to be uniform.

Parameters are drawn from a model's own prior and data from these; the probability that a belief gives to smaller values
is then uniform (Talts et al. 2018). Printed are a χ² test of ten bins for each parameter that was looked at, corrected
for their number, and how many runs did not converge.

    python -m benchmarks.calibration 500 --keep     # all models, by night; the page is written from what is kept
    python -m benchmarks.calibration 50 logistic    # one
"""

import argparse
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
import scipy.stats
from scipy.special import expit, ndtr

from benchmarks import pages
from benchmarks.table import list_table
from meanmap import ep
from meanmap.core.executors import worked

__all__ = ["MODELS", "calibrate", "page"]

BINS = 10
# From a generator to the shares below the truth, one for each parameter, and whether the run converged.
Draw = Callable[[np.random.Generator], tuple[np.ndarray, bool]]


def _columns(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d))
    return (X - X.mean(0)) / X.std(0)


def _shares(fit, truth: np.ndarray) -> tuple[np.ndarray, bool]:
    return ndtr((truth - fit.mean) / np.sqrt(np.diag(fit.covariance))), bool(fit.report.converged)


def logistic(intercept_sd: float, prior_sd: float) -> Draw:
    """A regression of two labels; data with a single label carry no information and are drawn again."""

    def draw(rng):
        while True:
            X, w = _columns(rng, 100, 3), rng.normal(size=4) * [intercept_sd, *[prior_sd] * 3]
            y = (rng.uniform(size=100) < expit(w[0] + X @ w[1:])).astype(int)
            if 0 < y.sum() < 100:
                break
        settings = {"intercept_sd": intercept_sd, "prior_sd": prior_sd, "standardise": False}
        return _shares(ep.models.logistic_regression(X, y, **settings), w)

    return draw


def poisson(rng):
    """Counts of a few to a few hundred."""
    X, w = _columns(rng, 100, 2), rng.normal(size=3) * [1.0, 0.5, 0.5]
    y = rng.poisson(np.exp(w[0] + X @ w[1:]))
    settings = {"intercept_sd": 1.0, "prior_sd": 0.5, "standardise": False}
    return _shares(ep.models.poisson_regression(X, y, **settings), w)


def ordinal(rng):
    """Three labels with cutpoints at −1 and 1."""
    X, w = _columns(rng, 200, 2), rng.normal(size=2)
    y = np.digitize(X @ w + rng.normal(size=200), [-1.0, 1.0])
    return _shares(ep.models.ordinal_regression(X, y, prior_sd=1.0, standardise=False), w)


def robust(rng):
    """Student noise whose scale is known to the data alone, with coefficients far inside their prior."""
    X, w = _columns(rng, 100, 2), rng.normal(size=3)
    y = w[0] + X @ w[1:] + 0.5 * rng.standard_t(4, 100)
    unit = 1.4826 * np.median(np.abs(y - np.median(y)))
    settings = {"intercept_sd": 10.0, "prior_sd": 1.0 / unit, "standardise": False}
    return _shares(ep.models.robust_regression(X, y, **settings), w)


def ranking(rng):
    """Sixty games of eight players."""
    skill = rng.normal(size=8)
    pairs = np.array([rng.choice(8, 2, replace=False) for _ in range(60)])
    won = (skill[pairs] + 0.5 * rng.normal(size=pairs.shape)).argmax(1)
    rows = np.arange(60)
    fit = ep.models.ranking(pairs[rows, won], pairs[rows, 1 - won])
    found = np.array([int(player) for player in fit.players])
    share = ndtr((skill[found] - fit.mean) / np.sqrt(np.diag(fit.covariance)))
    return share[np.argsort(found)][:3], bool(fit.report.converged)


def hierarchical(rng):
    """Logistic regression with ten groups, whose effects have an unknown precision."""
    groups = np.repeat(np.arange(10), 15)
    precision = rng.gamma(4.0, 0.5)
    slope, effects = rng.normal(), rng.normal(size=10) / np.sqrt(precision)
    x = rng.normal(size=150)
    y = (rng.uniform(size=150) < expit(slope * x + effects[groups])).astype(int)
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(1)), ep.Variable("z", ep.Normal, plate=150)
    effect, tau = ep.Variable("effect", ep.Normal, plate=10), ep.Variable("tau", ep.Gamma(4.0, 2.0))
    total = ep.Variable("total", ep.Normal, plate=150)
    post = ep.infer(
        ep.FactorGraph(
            ep.Gaussian(0.0, effect, precision=tau),
            ep.Dot(x[:, None], w, z),
            ep.Sum(z, effect[groups], out=total),
            ep.Logistic(total, observed=y),
        )
    )
    share = [
        ndtr((slope - post["w"].mean()[0]) / np.sqrt(post["w"].cov()[0, 0])),
        ndtr((effects[0] - post["effect"].mean()[0]) / post["effect"].sd()[0]),
        post["tau"].cdf(precision),
    ]
    return np.array(share), bool(post.report.converged)


MODELS: dict[str, Draw] = {
    "logistic": logistic(1.0, 1.0),
    "logistic-wide": logistic(10.0, 2.5),
    "poisson": poisson,
    "ordinal": ordinal,
    "robust": robust,
    "ranking": ranking,
    "hierarchical": hierarchical,
}


def calibrate(name: str, repeats: int, executor: Executor | None = None) -> tuple[float, int]:
    """The smallest p-value over parameters, times their number, and the number of runs that did not converge."""
    found = list(worked(partial(_run, name), range(repeats), executor))
    shares = np.array([share for share, _ in found])
    counts = [np.histogram(column, BINS, (0.0, 1.0))[0] for column in shares.T]
    least = min(float(scipy.stats.chisquare(count).pvalue) for count in counts)
    return min(1.0, least * shares.shape[1]), sum(not converged for _, converged in found)


def _run(name: str, seed: int) -> tuple[np.ndarray, bool]:
    return MODELS[name](np.random.default_rng([len(name), seed]))


def page(found: dict[str, Any]) -> str:
    """One line for each model."""
    head = ["model", "repetitions", "p-value", "not converged"]
    rows = [[name, of["repetitions"], f"{of['p']:.2g}", of["unconverged"]] for name, of in found.items()]
    return "\n".join(list_table(head, rows))


def main() -> None:
    """Print one line for each model, and keep them if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=500)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"all unless named: {', '.join(MODELS)}")
    parser.add_argument("--keep", action="store_true", help="in benchmarks/results.json, and on the page")
    chosen = parser.parse_args()
    for model in chosen.models or MODELS:
        p, unconverged = calibrate(model, chosen.repetitions)
        told = f"{chosen.repetitions} repetitions: p = {p:.3g} corrected, {unconverged} did not converge"
        print(f"{model:14} {told}", flush=True)
        if chosen.keep:
            kept = pages.stored()
            of_model = {"repetitions": chosen.repetitions, "p": float(f"{p:.2g}"), "unconverged": unconverged}
            pages.store({**kept, "calibration": {**kept["calibration"], model: of_model}})


if __name__ == "__main__":
    main()
