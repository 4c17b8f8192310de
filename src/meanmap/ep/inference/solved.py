"""Models of nothing but normal unknowns and linear factors: one linear system instead of messages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from meanmap.core.language import in_few_words
from meanmap.ep.factors.gaussian import SURE, Dot, Sum
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block, NotMeasured, System
from meanmap.ep.variables import Variable
from meanmap.families import Family, MultivariateNormal, Normal

__all__ = [
    "Columns",
    "Solution",
    "beliefs_of",
    "covariances_of",
    "left_out",
    "log_density",
    "log_integral",
    "mode_of",
    "rows_of",
    "solved",
]

# The matrix is dense up to this many unknown numbers and entries. Beyond, a sparse factor gives some columns of the
# covariance at a time, if columns times its entries are at most this many, and pivots keep at least this share.
_DENSE, _NUMBERS, _COLUMNS, _ENTRIES, _LOST = 1500, 10_000_000, 256, 400_000_000, 1e-9
# Messages say what they know of a squared number of standard deviations, with an error of this share.
_ROUNDING, _ENOUGH = 2e-16, 1e-6

# A column of which others leave so little is the same as theirs but for rounding: nothing says what its unknown is.
_OPEN = 1e-14
# A note names this many sums.
_NAMED = 5
# What is known of a vector, in standard deviations of the rest.
_SURE = 1e-5

Columns = Callable[[Any, int], np.ndarray]


class Solution(NamedTuple):
    """Beliefs by name, and the log evidence; a note where they are not as exact as the system was solved.

    Sums in `repeated` follow from others, and are left out.
    """

    beliefs: dict[str, Family]
    log_evidence: float
    note: str = ""
    repeated: tuple[str, ...] = ()


def solved(model: FactorGraph) -> Solution | None:
    """The solution; None if messages give them, or if the system is too large or singular.

    Messages are right on trees, unless numbers are so many standard deviations from 0 that evidence is lost in
    rounding.
    """
    block = Block.of(model.variables, model.factors)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # Numbers that are too large have no solution.
        if not block.is_exact or not (block.has_loops() or _far(block)):
            return None
        try:
            return _solved(block)
        except (NotMeasured, np.linalg.LinAlgError):
            return None


def _solved(block: Block) -> Solution | None:
    system = block.system({})
    mean, covariance, log_determinant = mode_of(block, system)
    middle = system.spread @ mean + system.offset
    if not np.isfinite(middle).all():
        raise NotMeasured
    beliefs = beliefs_of(block, system, middle, covariance)
    evidence = log_integral(block, system, middle, log_determinant)
    proper = all(np.all(belief.is_proper()) for belief in beliefs.values())
    return Solution(beliefs, evidence, repeated=system.repeated) if proper and np.isfinite(evidence) else None


def left_out(repeated: tuple[str, ...]) -> str:
    """A note on sums that follow from others; empty where there are none."""
    if not repeated:
        return ""
    follow, they = ("follows", "it is") if len(repeated) == 1 else ("follow", "they are")
    return (
        f"{in_few_words(repeated, _NAMED)} {follow} from other sums without noise: {they} left out, and the log "
        "evidence is that of the model without"
    )


def log_integral(block: Block, system: System, middle: np.ndarray, log_determinant: float) -> float:
    """Of the density of unknowns and data, by its mode and the log determinant of the precision there."""
    log_width = (len(system.free) * np.log(2 * np.pi) - log_determinant) / 2
    return log_width + log_density(block, middle) - system.log_volume


def beliefs_of(block: Block, system: System, middle: np.ndarray, covariance: Columns) -> dict[str, Family]:
    """About all unknowns, by the means of all places and the covariances of rows of `spread`."""
    found = {}
    for name in block.first:
        variable, places = block.variables[name], block.range_of(name)
        covariances = covariance(system.spread[places], variable.dimension or 1)
        if variable.family is MultivariateNormal and not np.isin(places, system.free).all():
            covariances = _widened(covariances)
        found[name] = _belief(variable, middle[places], covariances)
    return found


def _widened(covariances: np.ndarray) -> np.ndarray:
    """Of vectors some of whose sums are known: these have a hundred-thousandth of the others' standard deviation."""
    sds = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    sds = np.where(sds > 0, sds, sds.max(axis=1, keepdims=True))
    sds = np.where(sds > 0, sds, 1.0)
    outer = sds[:, :, None] * sds[:, None, :]
    values, vectors = np.linalg.eigh(covariances / outer)
    return (vectors * np.maximum(values, _SURE**2)[:, None, :]) @ np.swapaxes(vectors, 1, 2) * outer


def _belief(variable: Variable, mean: np.ndarray, covariances: np.ndarray) -> Family:
    """About one unknown, or each member of a plate, by their means side by side and covariances (members, d, d).

    A member that is known, such as a row of zeros of X, has a standard deviation of a millionth of the widest one's.
    """
    if variable.family is Normal:
        variance = covariances.ravel()
        if not (variance > 0).all():
            size = variance.max(initial=0.0) or _size(variable, mean)
            variance = np.where(variance > 0, variance, SURE**2 * size)
        return Normal.from_natural(
            np.reshape(mean / variance, variable.shape), np.reshape(1 / variance, variable.shape)
        )
    precisions = np.linalg.inv(covariances)
    precisions = (precisions + np.swapaxes(precisions, 1, 2)) / 2
    shifts = np.einsum("kij,kj->ki", precisions, mean.reshape(len(precisions), -1))
    if variable.plate is None:
        return MultivariateNormal.from_natural(shifts[0], precisions[0])
    return MultivariateNormal.from_natural(shifts, precisions)


def _size(variable: Variable, mean: np.ndarray) -> float:
    """Of the square of an unknown, of which all members are known."""
    prior = 0.0 if variable.prior is None else float(np.max(np.asarray(variable.prior.var())))
    return prior or float(np.square(mean).max(initial=0.0)) or 1.0


def covariances_of(spread: Any, covariance: np.ndarray, length: int) -> np.ndarray:
    """Of the members, `length` rows of spread each, of a plate: (members, length, length)."""
    if length == 1:
        return np.asarray(spread.multiply(spread @ covariance).sum(1)).reshape(-1, 1, 1)
    parts = (spread[start : start + length] for start in range(0, spread.shape[0], length))
    return np.stack([part @ (part @ covariance).T for part in parts])


def _far(block: Block) -> bool:
    """Whether log evidence would be the difference of numbers that are rounded too much."""
    squares = 0.0
    for name in block.first:
        prior = block.variables[name].prior
        if prior is not None:
            squares += float(np.abs(np.asarray(prior.mean()) * np.asarray(prior.precision_mean)).sum())
    for factor in block.linear:
        if isinstance(factor, Sum) and factor.has_noise:
            out, *terms = factor.arguments
            known = [x.values for x, a in zip((out, *terms), (1.0, *factor.weights), strict=False) if x.known and a]
            most = max((np.square(np.ravel(values)).max(initial=0.0) for values in known), default=0.0)
            squares += float(most * np.broadcast_to(terms[-1].values, (factor.plate or 1,)).sum())
    return _ENOUGH < squares * _ROUNDING < np.inf


def mode_of(block: Block, system: System) -> tuple[np.ndarray, Columns, float]:
    """The mean of what nothing defines, covariances by rows of `spread`, and the log determinant of the precision.

    Priors and noise are rows of one problem of least squares; its matrix is not squared where precisions of any size
    may meet, as half of the digits would be lost.
    """
    rows, known = rows_of(block, system)
    count, size = len(known), len(system.free)
    if size <= _DENSE and count * size <= _NUMBERS:
        from scipy.linalg import qr, solve_triangular

        dense = rows.toarray()
        if not np.isfinite(dense).all():
            raise NotMeasured
        if not size:
            return np.zeros(0), lambda spread, length: covariances_of(spread, np.zeros((0, 0)), length), 0.0
        order = np.argsort(-np.abs(dense).max(1))  # Large rows first, so that small ones are not lost among them.
        found: Any = qr(dense[order], mode="economic", pivoting=True)
        basis, root, columns = found
        if len(root) < size or not (np.abs(np.diag(root)) > _OPEN * np.linalg.norm(root, axis=0)).all():
            raise NotMeasured
        inverse = np.empty((size, size))
        inverse[columns] = solve_triangular(root, np.eye(size))
        if not np.isfinite(inverse).all():
            raise NotMeasured
        covariance, mean = inverse @ inverse.T, inverse @ (basis.T @ known[order])
        log_determinant = 2 * float(np.log(np.abs(np.diag(root))).sum())
        return mean, lambda spread, length: covariances_of(spread, covariance, length), log_determinant
    from scipy.sparse.linalg import splu

    precision = sparse.csc_matrix(rows.T @ rows)
    factor = splu(precision, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    pivots = np.abs(factor.U.diagonal())
    if pivots.min() < _LOST * precision.diagonal()[np.argsort(factor.perm_c)].min():
        raise NotMeasured
    mean = factor.solve(rows.T @ known)
    return mean, lambda spread, length: _sparse(spread, factor, length), float(np.log(pivots).sum())


def rows_of(block: Block, system: System) -> tuple[Any, np.ndarray]:
    """A sparse matrix and a vector: rows of it times what nothing defines differ from the vector by unit normals."""
    rows, known = [], []
    for name, variable in block.variables.items():
        if variable.prior is None:
            continue
        places, mean = block.range_of(name), np.ravel(np.asarray(variable.prior.mean(), float))
        precision = np.asarray(variable.prior.precision, float)
        if variable.family is Normal:
            root = sparse.diags(np.broadcast_to(np.sqrt(precision).ravel(), places.shape))
        else:
            roots = np.swapaxes(np.linalg.cholesky(precision), -1, -2).reshape(-1, *precision.shape[-2:])
            root = sparse.block_diag(np.broadcast_to(roots, (variable.plate or 1, *roots.shape[1:])))
        rows.append(root @ system.spread[places])
        known.append(root @ (np.resize(mean, places.shape) - system.offset[places]))
    noise = sparse.diags(np.sqrt(system.weights))
    rows.append(noise @ system.rows @ system.spread)
    known.append(-noise @ (system.known + system.rows @ system.offset))
    return sparse.vstack(rows).tocsr(), np.concatenate(known)


def _sparse(spread: Any, factor: Any, length: int) -> np.ndarray:
    if factor.shape[0] * factor.nnz > _ENTRIES:
        raise NotMeasured
    step, found = max(_COLUMNS // length, 1) * length, []
    for start in range(0, spread.shape[0], step):
        part = spread[start : start + step]
        among = part @ factor.solve(part.T.toarray())
        found.append(np.stack([among[at : at + length, at : at + length] for at in range(0, len(among), length)]))
    return np.concatenate(found)


def log_density(block: Block, middle: np.ndarray) -> float:
    """The joint log density of unknowns and data where all unknowns are at these numbers."""
    total = 0.0
    for name, variable in block.variables.items():
        if variable.prior is not None:
            total += _log_normal(variable.prior, middle[block.range_of(name)])
    for factor in block.linear:
        if not isinstance(factor, Sum):
            assert isinstance(factor, Dot)
            continue
        out, *terms = (
            np.ravel(a.values) if a.known else middle[block.places(a, factor.plate)] for a in factor.arguments
        )
        count, size = len(factor.weights), factor.plate or 1
        if factor.has_noise:
            off = out - sum(a * x for a, x in zip(factor.weights, terms, strict=False))
            total += float(
                np.broadcast_to((np.log(terms[count] / (2 * np.pi)) - terms[count] * off**2) / 2, (size,)).sum()
            )
    return total


def _log_normal(prior: Any, values: np.ndarray) -> float:
    mean, precision = np.ravel(np.asarray(prior.mean(), float)), np.asarray(prior.precision, float)
    off = values - np.resize(mean, values.shape)
    if precision.ndim < 2:  # a Normal, or a plate of these
        each = np.broadcast_to(precision, values.shape)
        return float((np.log(each / (2 * np.pi)) - each * off**2).sum() / 2)
    length = precision.shape[-1]
    off, matrices = off.reshape(-1, length), precision.reshape(-1, length, length)
    count = len(off) // len(matrices)
    quadratic = np.einsum("mi,mij,mj->", off, np.broadcast_to(matrices, (len(off), length, length)), off)
    return float((count * np.linalg.slogdet(matrices)[1].sum() - off.size * np.log(2 * np.pi) - quadratic) / 2)
