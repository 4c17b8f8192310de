"""Innovations of time series, for independence tests: what is new at each time, given all earlier times."""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from meanmap.core.arrays import array_of, as_array, check_finite, check_rows
from meanmap.core.errors import ColumnError, EmptyError, InputError, ShapeError
from meanmap.core.exact import check_exact
from meanmap.core.settings import one_of
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.table import Table
from meanmap.core.types import Data

__all__ = ["prewhiten"]

METHODS = ("gp", "ar")
LEAST_ROWS = 20
# A Gaussian process needs an eigendecomposition for each kernel and lengthscale, 27 in all.
MOST_ROWS_FOR_GP = 2000
LENGTHSCALES, SHARES = 9, np.array([0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999])
# From paths that are rough at every scale, such as autoregressions, to smooth trends and seasons.
CORRELATIONS = {
    "Matérn 1/2": lambda r: np.exp(-r),
    "Matérn 3/2": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    "RBF": lambda r: np.exp(-(r**2) / 2),
}


@own_words
def prewhiten(table: Data, time: object = None, *, method: str = "gp") -> Any:
    """Replace each column of a table of time series by its innovations, which its own past does not predict.

    Independence tests assume independent rows. Two unrelated series that change slowly look dependent to
    them; their innovations, (yₜ − E[yₜ | earlier y]) / sd, are independent in time if the model of a series is right,
    and independent of each other if the series are.

    Parameters
    ----------
    table : DataFrame, mapping of columns, array (n, d), or one column (n,)
        Numbers, at least 20 rows.
    time : name of a column, or array (n,), optional
        The time of each row, in any order; by default times are equally spaced. A named column is
        left out of the result.
    method : {"gp", "ar"}
        "gp": a Gaussian process over time and noise, with the kernel (Matérn 1/2, Matérn 3/2, RBF), the lengthscale and
        the share of noise of the highest likelihood for each column; up to 2000 rows at any times. "ar": autoregression
        by least squares with the order of the lowest AIC; equally spaced times, any number of rows.

    Returns
    -------
    Table, or an array for an array
        Innovations, in the order of the rows, with standard deviation about 1.

    Notes
    -----
    With L Lᵀ = ρ K + (1 − ρ) I in the order of time the innovations are L⁻¹ (y − c) / σ. Flaxman, Neill & Smola (2015)
    take the residuals y − E[f | all y] instead; these are not white even under the model, and a process without noise
    leaves none.

    Cost O(n³) for each kernel and lengthscale, shared by all columns ("gp"); O(n p²) with p = 10 log₁₀ n ("ar").

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(size=300))
    >>> steps = prewhiten(walk, method="ar")
    >>> [bool(abs(np.corrcoef(v[1:], v[:-1])[0, 1]) > 0.1) for v in (walk, steps)]
    [True, False]
    """
    one_of(method, "method", METHODS)
    read = Table.of(table)
    if isinstance(time, str):
        check_exact(read[time], f"table[{time!r}]")
        when = np.asarray(read[time], dtype=float)
        read = read.select([name for name in read.names if name != time]) if len(read.names) > 1 else read
    else:
        when = np.arange(len(read), dtype=float) if time is None else _times(time, len(read))
    check_rows(len(read), "table", LEAST_ROWS)
    columns = [_column(read, name) for name in read.names]
    order = np.argsort(when, kind="stable")
    series, gaps = np.column_stack(columns)[order], np.diff(when[order])
    if method == "gp":
        white = _by_process(series, when[order])
    else:
        if np.ptp(gaps) > 1e-6 * np.abs(gaps).max():
            raise InputError("time is not equally spaced, which method='ar' requires: pass method='gp'.")
        white = np.column_stack([_by_autoregression(column) for column in series.T])
    found = np.empty_like(white)
    found[order] = white
    if source_of(table).named:
        return Table(dict(zip(read.names, found.T, strict=True)))
    return found if np.ndim(array_of(table, "table")) == 2 else found[:, 0]


def _times(time: object, n: int) -> np.ndarray:
    when = as_array(time, "time").astype(float)
    check_finite(when, "time")
    if when.shape != (n,):
        raise ShapeError(f"time has shape {when.shape}; expected ({n},), one time for each row.")
    return when


def _column(table: Table, name: str) -> np.ndarray:
    if not table.is_real(name) or table[name].ndim != 1:
        raise ColumnError(f"column {name!r} is not a series of numbers. Leave it out, then add it to the result.")
    check_exact(table.columns[name], f"table[{name!r}]")
    column = np.asarray(table[name], dtype=float)
    if np.ptp(column) == 0:
        raise ColumnError(f"column {name!r} is constant: nothing depends on it. Leave it out.")
    return (column - column.mean()) / column.std()


def _by_process(series: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Each column's innovations under the process of its highest likelihood."""
    n, d = series.shape
    if n > MOST_ROWS_FOR_GP:
        raise EmptyError(f"table has {n} rows; expected at most {MOST_ROWS_FOR_GP} for method='gp': pass method='ar'.")
    distances = np.abs(when[:, None] - when)
    spacing = (when[-1] - when[0]) / (n - 1)
    if spacing == 0:
        raise InputError("time is the same for every row, so there is no order to predict in.")
    best, chosen = np.full(d, -np.inf), [("RBF", spacing, 0.0)] * d
    for kind, correlation in CORRELATIONS.items():
        for lengthscale in np.geomspace(spacing, n * spacing / 2, LENGTHSCALES):
            values, vectors = np.linalg.eigh(correlation(distances / lengthscale))
            likelihoods = _likelihoods(np.maximum(values, 0), vectors.T @ series, vectors.sum(axis=0))
            for j in np.flatnonzero(likelihoods.max(axis=0) > best):
                best[j] = likelihoods[:, j].max()
                chosen[j] = (kind, lengthscale, SHARES[likelihoods[:, j].argmax()])
    white = np.empty_like(series)
    for j, (kind, lengthscale, share) in enumerate(chosen):
        covariance = share * CORRELATIONS[kind](distances / lengthscale) + (1 - share) * np.eye(n)
        lower = cholesky(covariance, lower=True)
        both = solve_triangular(lower, np.column_stack([series[:, j], np.ones(n)]), lower=True)
        left = both[:, 0] - both[:, 1] * (both[:, 1] @ both[:, 0]) / (both[:, 1] @ both[:, 1])
        white[:, j] = left / left.std()
    return white


def _likelihoods(values: np.ndarray, turned: np.ndarray, ones: np.ndarray) -> np.ndarray:
    """log p of each column (d) for each share of signal (s), at the best mean and variance, (s, d)."""
    spectrum = SHARES[:, None] * values + 1 - SHARES[:, None]
    means = (ones / spectrum) @ turned / ((ones**2 / spectrum).sum(axis=1))[:, None]
    squares = (1 / spectrum) @ turned**2 - means**2 * ((ones**2 / spectrum).sum(axis=1))[:, None]
    return -0.5 * (len(values) * np.log(squares) + np.log(spectrum).sum(axis=1)[:, None])


def _by_autoregression(series: np.ndarray) -> np.ndarray:
    """yₜ minus its regression on the p previous values, or on all t of them for t < p; in standard deviations."""
    n = len(series)
    most = int(min(10 * np.log10(n), n // 5))
    # All orders are compared on the rows available to the largest one.
    scores = [(n - most) * np.log(np.mean(_residuals(series, p)[most - p :] ** 2)) + 2 * p for p in range(most + 1)]
    order = int(np.argmin(scores))
    early = [_residuals(series, p) for p in range(order)]
    first = np.array([found[0] / found.std() for found in early])
    rest = _residuals(series, order)
    return np.concatenate([first, rest / rest.std()])


def _residuals(series: np.ndarray, p: int) -> np.ndarray:
    """Residuals of the regression on a constant and the p previous values, (n − p,)."""
    n = len(series)
    before = np.column_stack([np.ones(n - p), *(series[p - k : n - k] for k in range(1, p + 1))])
    return series[p:] - before @ np.linalg.lstsq(before, series[p:], rcond=None)[0]
