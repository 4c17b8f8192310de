"""Ordered labels: P(y ≤ k) = σ(t_k − η), with thresholds t_k between neighbouring labels."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from meanmap.core.arrays import is_categorical
from meanmap.core.errors import ParameterError
from meanmap.core.tables.kinds import categories_of
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.formula import Formula

__all__ = ["GAP", "cumulative", "cutpoints", "first_gaps", "read_levels", "threshold_names"]

# Parameters are log distances between cutpoints. The mean of the cutpoints is 0, because the intercept locates them.
GAP = "gap"
# Each additional label is an additional parameter to be integrated.
_MOST = 20


def cumulative(labels: int) -> Family:
    """The family of labels 0, 1, ..., with log distances between cutpoints as parameters."""
    return Family(
        "cumulative",
        "logit",
        tuple(f"{GAP}[{k}]" for k in range(1, labels - 1)),
        _cumulative,
        _slopes,
        _mean,
        _draw,
        _start,
        ordered=True,
    )


def cutpoints(p: np.ndarray) -> np.ndarray:
    """Cutpoints from log distances; their mean is 0, so that reversed labels have reversed cutpoints."""
    cuts = np.concatenate([[0.0], np.cumsum(np.exp(p))])
    return cuts - cuts.mean()


def read_levels(formula: Formula, data: Any) -> tuple[np.ndarray, tuple[Any, ...], str]:
    """Codes 0, 1, ... of an ordered response, its labels in order, and its name."""
    found = formula.matrices.response
    values, name = np.asarray(found.design_matrix, float), str(found.name)
    if not formula.has_intercept:
        raise ParameterError(
            f"formula {formula.text!r} has no intercept; thresholds take its place in family='cumulative'. Leave out 0."
        )
    if found.kind == "categoric":
        column: Any = data[name] if name in formula.rows.frame else None
        if not (is_categorical(formula.rows.frame.get(name)) and categories_of(column)[1]):
            raise ParameterError(
                f"the response {name!r} holds labels without an order; expected numbers, or "
                "pandas.Categorical(labels, categories=[lowest, ..., highest], ordered=True)."
            )
        levels, codes = tuple(found.levels), values.argmax(1).astype(float)
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        levels = tuple(int(each) if each.is_integer() else each for each in distinct.tolist())
    if not 2 <= len(levels) <= _MOST:
        raise ParameterError(
            f"the response {name!r} has {len(levels)} levels; family='cumulative' expects 2 to {_MOST}."
        )
    return codes.astype(float).ravel(), levels, name


def threshold_names(levels: tuple[Any, ...]) -> tuple[str, ...]:
    """Name each threshold by the labels on both sides."""
    return tuple(f"threshold[{low}|{high}]" for low, high in pairwise(levels))


def first_gaps(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Log distances between cutpoints that reproduce the shares of labels."""
    shares = np.bincount(codes.astype(int), weights) + 0.5
    below = np.cumsum(shares)[:-1] / shares.sum()
    return np.log(np.diff(np.log(below / (1 - below))))


def _ends(o: Observed, eta: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cutpoints below and above each label, minus η."""
    cuts, code = np.concatenate([[-np.inf], cutpoints(p), [np.inf]]), o.response.astype(int)
    return cuts[code] - eta, cuts[code + 1] - eta


def _cumulative(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    low, high = _ends(o, eta, p)
    # log(σ(b) − σ(a)) = log σ(b) + log σ(−a) + log(1 − e^(a − b)).
    with np.errstate(invalid="ignore"):
        return log_expit(high) + log_expit(-low) + np.log1p(-np.exp(low - high))


def _slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    low, high = _ends(o, eta, p)
    code, cuts = np.broadcast_to(o.response.astype(int), low.shape), len(p) + 1
    with np.errstate(invalid="ignore", over="ignore"):
        between = 1 / np.expm1(high - low)
    by_high = np.where(code < cuts, expit(-high) + between, 0.0)
    by_low = np.where(code > 0, -expit(low) - between, 0.0)
    found = []
    for k, size in enumerate(np.exp(p), start=1):
        # A distance moves all later cutpoints, and then all are shifted back by the mean move.
        back = (cuts - k) / cuts
        found.append(size * (by_high * ((code >= k) - back) + by_low * ((code - 1 >= k) - back)))
    return found


def _start(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cuts = cutpoints(p)
    middles = np.concatenate([[cuts[0] - 1], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1]])
    return middles[o.response.astype(int)], np.full(o.response.shape, 0.3)


def _mean(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    return sum((expit(eta - cut) for cut in cutpoints(p)), np.zeros(np.shape(eta)))


def _draw(o: Observed, eta: np.ndarray, p: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    latent = eta + generator.logistic(size=eta.shape)
    return (latent[..., None] > cutpoints(p)).sum(-1).astype(float)
