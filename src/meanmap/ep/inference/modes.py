"""A start at the mode, for outcomes of a linear map of a vector: incoming messages are narrow from the first sweep."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanmap.core.report import Report
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBox
from meanmap.ep.factors.conjugate import Bernoulli
from meanmap.ep.factors.gaussian import Dot
from meanmap.ep.factors.links import Logistic, Slopes, slopes_of
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.inference.separate import LeftOut
from meanmap.ep.variables import Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["Slopes", "are_narrow", "at_mode", "from_mode"]

# Newton's steps to the mode, the most halvings of each, and the gain in log probability not worth another: sweeps are
# Newton's steps, too.
_STEPS, _HALVINGS, _GAIN = 50, 30, 1e-3
# A subsample of this many rows finds a good enough start for all rows.
_SAMPLE = 10_000
# Few nodes are enough for all rows up to this variance of what comes in, times the curvature of outcomes above 1: in 19
# regressions of 41 to 300 rows they were up to .93, and not from 1.02 on.
_NARROW = 0.95
# Of a row of zeros: a millionth of the deviation of the widest row.
_SURE = 1e-12


def from_mode(model: FactorGraph, now: tuple[Factor, ...] = ()) -> Posterior | None:
    """Messages at the mode of labels or counts whose predictors are X w; None for every other model.

    `now` are the factors with their functions as they are at the start of a run.
    """
    dots = [factor for factor in model.factors if isinstance(factor, Dot)]
    link = _outcomes([factor for factor in model.factors if not isinstance(factor, Dot)], now)
    if len(dots) != 1 or link is None:
        return None
    (told, w, z), (met, *given) = dots[0].arguments, link.arguments
    found = slopes_of(link)
    if found is None or w.prior is None or z.prior is not None or not isinstance(met, Variable) or met.name != z.name:
        return None
    matrix = told.values
    values = [np.broadcast_to(each.values, len(matrix)) for each in given]
    every = len(matrix) // _SAMPLE
    begin = None
    try:
        if every > 1:
            few = [each[::every] for each in values]
            begin = _mode(matrix[::every], w.prior, lambda at: _times(every, found(at, *few)), None)
        return at_mode(FactorGraph(dots[0], link), lambda at: found(at, *values), begin)
    except np.linalg.LinAlgError:  # as of rates that overflow: sweeps begin without messages
        return None


def _outcomes(factors: list[Factor], now: tuple[Factor, ...]) -> Factor | None:
    """The factor of outcomes, if there is one: probabilities by a sigmoid and their labels are one `Logistic`."""
    if len(factors) != 2:
        return factors[0] if len(factors) == 1 else None
    link, labels = sorted(factors, key=lambda factor: isinstance(factor, Bernoulli))
    if not (isinstance(link, BlackBox) and isinstance(labels, Bernoulli) and labels.constant and link.oracle is None):
        return None
    z, p = link.arguments[0], link.arguments[-1]
    smooth = any(factor.name == link.name and factor.smooth for factor in now if isinstance(factor, BlackBox))
    if p is not labels.arguments[0] or p.prior is not None or not smooth:
        return None
    return Logistic(z, observed=labels.arguments[1].values, name=link.name)


def at_mode(model: FactorGraph, slopes: Callable[[np.ndarray], Slopes], begin: np.ndarray | None) -> Posterior:
    """Messages as Laplace's approximation has them, by Newton's method in NumPy.

    The model is `Dot(X, w, z)` and a factor whose log likelihood at z, slopes, and minus second derivatives are given.
    The search begins at `begin`, by default the mean of the prior, which suffices where the likelihood is log-concave.
    """
    dot, factor = sorted(model.factors, key=lambda each: not isinstance(each, Dot))
    matrix, prior = dot.arguments[0].values, dot.arguments[1].prior
    z = matrix @ _mode(matrix, prior, slopes, begin)
    _, slope, curvature = slopes(z)
    if not (np.isfinite(slope).all() and np.isfinite(curvature).all()):
        raise np.linalg.LinAlgError("the likelihood has no slope at the mode")
    precision_mean = slope + curvature * z
    square = (matrix * curvature[:, None]).T @ matrix
    white = np.linalg.inv(np.linalg.cholesky(square + np.asarray(prior.precision)))
    variances = ((matrix @ white.T) ** 2).sum(1)
    left = 1 / np.maximum(variances, _SURE * (variances.max() or 1.0)) - curvature
    messages: dict[str, tuple[Any, ...]] = {
        dot.name: (
            None,
            MultivariateNormal.from_natural(matrix.T @ precision_mean, (square + square.T) / 2),
            Normal.from_natural(z * (left + curvature) - precision_mean, left),
        ),
        factor.name: (Normal.from_natural(precision_mean, curvature), *(None,) * (len(factor.arguments) - 1)),
    }
    return Posterior(
        {},
        messages,
        np.nan,
        Report("not run", False, 0, [], {}, ()),
        None,
        {},
        {},
        {},
        {},
        dict(model.variables),
        LeftOut.of(model.factors, "not run"),
    )


def are_narrow(mode: Posterior) -> bool:
    """Whether messages to the outcomes at a mode are so narrow that few nodes are likely to be enough for all."""
    incoming, own = (m.precision for sent in mode.messages.values() for m in sent if isinstance(m, Normal))
    return bool((np.maximum(own, 1.0) < _NARROW * incoming).all())


def _times(factor: float, found: Slopes) -> Slopes:
    return factor * found[0], factor * found[1], factor * found[2]


def _mode(
    matrix: np.ndarray, prior: MultivariateNormal, slopes: Callable[[np.ndarray], Slopes], begin: np.ndarray | None
) -> np.ndarray:
    """By Newton's method, with steps halved until they lead up."""
    precision, middle = np.asarray(prior.precision), np.asarray(prior.mean())
    w = middle if begin is None else begin

    def height(at: np.ndarray, log_likelihood: np.ndarray) -> float:
        found = log_likelihood.sum() - (at - middle) @ precision @ (at - middle) / 2
        return float(found) if np.isfinite(found) else -np.inf

    with np.errstate(over="ignore", invalid="ignore"):
        log_likelihood, slope, curvature = slopes(matrix @ w)
        now = height(w, log_likelihood)
        for _ in range(_STEPS):
            joint = (matrix * curvature[:, None]).T @ matrix + precision
            step = np.linalg.solve(joint, slope @ matrix - precision @ (w - middle))
            better = -np.inf
            for _ in range(_HALVINGS):
                log_likelihood, slope, curvature = slopes(matrix @ (w + step))
                better = height(w + step, log_likelihood)
                if better >= now:
                    break
                step = step / 2
            gain, now, w = better - now, better, w + step
            left = slope @ matrix - precision @ (w - middle)
            # What another step would gain, by the curvature before this one, which saves its product.
            if not (gain >= _GAIN and left @ np.linalg.solve(joint, left) / 2 >= _GAIN):
                break
    return w
