"""Columns that separate a response, so that the likelihood increases without bound along their coefficients."""

import numpy as np

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.scaled import Scaled

__all__ = ["separated", "separating"]

# Different rows times columns up to which linear programs are solved, and the mean predictor above which a solution is
# not 0.
_MOST, _ABOVE = 1_000_000, 1e-6
# Rows by which it is judged whether there are fewer different ones.
_FEW = 10_000
# Newton's steps to a likelihood that has a maximum, and weights below which rows do not prove that it has one.
_STEPS, _LEAST = 8, 1e-9
# What separation does to the likelihood.
_NO_MAXIMUM = "the likelihood has no maximum, and only the prior keeps the"


def separated(formula: Formula, scaled: Scaled, observed: Observed, law: Family) -> list[str]:
    """A note on each set of columns of shared effects that separates the labels, the counts of 0 from the rest, or
    rows censored on one side from the rest.
    """
    if not law.ends and not law.censored:
        return []
    counted, response = observed.weights > 0, observed.response
    high, low = (law.ends == 2) & (response == observed.trials), response == 0
    if law.censored:
        high, low = observed.high == np.inf, observed.low == -np.inf
    signs = np.where(high, 1, np.where(low, -1, 0))
    total = signs[counted].sum()
    if law.ends and abs(total) == counted.sum():
        said = "as large as it can be" if total > 0 else "0"
        return [f"the response is {said} in all rows: {_NO_MAXIMUM} coefficients finite"]
    rows = np.flatnonzero(counted)
    if formula.rows.shared.size > _MOST:
        some = rows[:: len(rows) // _FEW + 1]
        if 2 * len(_different(formula.rows.shared[some], signs[some])) > len(some):
            return []
        rows = rows[_different(formula.rows.shared[rows], signs[rows])]
    found, columns = [], (formula.rows.shared[rows] - scaled.shared.middle) / scaled.shared.spread
    for chosen, whole in separating(columns, signs[rows], scaled.intercept):
        names = [formula.names[at] for at in chosen]
        listed = ", ".join(map(repr, names))
        tighter = ", ".join(f"{names[k]!r}: (0.0, {1 / scaled.shared.spread[at]:.2g})" for k, at in enumerate(chosen))
        found.append(
            f"{listed} {'separates' if len(names) == 1 else 'together separate'} the response"
            f"{'' if whole else ' in some rows'}: {_NO_MAXIMUM} "
            f"coefficient{'s' * (len(names) > 1)} finite; a tighter one is priors={{{tighter}}}"
        )
    return found


def _different(columns: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """One row number of each kind of row: equal rows say the same."""
    mixed = columns @ np.random.default_rng(0).normal(size=columns.shape[1]) + np.pi * signs
    return np.sort(np.unique(mixed, return_index=True)[1])


def separating(columns: np.ndarray, signs: np.ndarray, intercept: int | None) -> list[tuple[tuple[int, ...], bool]]:
    """Minimal sets of columns with a combination that agrees in sign with every row or is 0, and whether it is never 0.

    In rows of sign 0 it must be 0. Combinations are found by linear programs (Konis 2007).
    """
    if columns.size > _MOST or columns.shape[1] == 0:
        return []
    left, found = np.ones(columns.shape[1], bool), []
    if signs.all() and _overlaps(columns * signs[:, None]):
        return []
    while _separates(columns[:, left], signs):
        chosen = left.copy()
        for at in (each for each in np.flatnonzero(left) if each != intercept):
            chosen[at] = False
            chosen[at] = not _separates(columns[:, chosen], signs)
        one = tuple(int(at) for at in np.flatnonzero(chosen) if at != intercept)
        if not one:
            break
        found.append((one, bool(signs.all()) and _separates(columns[:, chosen], signs, whole=True)))
        left[list(one)] = False
    return found


def _overlaps(signed: np.ndarray) -> bool:
    """Whether rows are seen to have no such combination, which takes a small part of the time of a linear program.

    Positive weights of rows whose weighted sum is 0 prove it (Stiemke 1915); where logistic regression has a maximum
    likelihood, the probabilities of the other label are such weights.
    """
    at, weights = np.zeros(signed.shape[1]), np.full(len(signed), 0.5)
    with np.errstate(over="ignore"):
        for _ in range(_STEPS):
            curvature = (signed.T * (weights * (1 - weights))) @ signed
            at = at + np.linalg.lstsq(curvature, weights @ signed)[0]
            weights = 1 / (1 + np.exp(signed @ at))
    left = weights - signed @ np.linalg.lstsq(signed.T @ signed, weights @ signed)[0]
    return bool(left.min() > _LEAST)


def _separates(columns: np.ndarray, signs: np.ndarray, whole: bool = False) -> bool:
    """Whether there is such a combination; with `whole`, one that is bounded away from 0 in all rows."""
    from scipy.optimize import linprog

    signed = columns[signs != 0] * signs[signs != 0, None]
    if not signed.size:  # such as counts none of which is 0
        return False
    least = np.ones((len(signed), 1)) if whole else np.zeros((len(signed), 0))
    gain = np.r_[np.zeros(columns.shape[1]), -1.0] if whole else -signed.mean(0)
    level = columns[signs == 0] if (signs == 0).any() else None
    solved = linprog(
        gain,
        A_ub=np.concatenate([-signed, least], axis=1),
        b_ub=np.zeros(len(signed)),
        A_eq=level,
        b_eq=None if level is None else np.zeros(len(level)),
        bounds=[(-1, 1)] * len(gain),
    )
    return bool(solved.status == 0 and -solved.fun > _ABOVE)
