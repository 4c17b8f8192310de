"""Factors without noise as linear equations, which make some of the unknowns functions of the others."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

__all__ = ["Contradiction", "Definitions", "Equations", "NotMeasured", "definitions"]

# Equations that share unknowns and define none of them are solved as dense ones: this many multiplications for each set
# of them, and this many entries where what is computed is put in place of what is computed from it.
_WORK, _ENTRIES = 2e9, 3_000_000
# Of larger sets this many are compared, to see whether they contradict each other.
_SOME = 1000
# An equation of which the others leave less than this share follows from them, and contradicts them if the known
# numbers differ by more than that share. Sums that cancel have this rounding error.
_FOLLOWS, _DIFFERS, _ROUNDING = 1e-10, 1e-9, 1e-13


class NotMeasured(Exception):
    """The joint Gaussian is too large, or improper."""


class Contradiction(NotMeasured):
    """Equations have no solution; the message says which, in words."""


class Equations(NamedTuple):
    """What a factor says exactly: matrix × places + known = 0.

    Attributes
    ----------
    name : str
        Of the factor.
    matrix : sparse (count, total)
    known : (count,) array
    targets : (count,) array or None
        The place that each equation computes.
    """

    name: str
    matrix: Any
    known: np.ndarray
    targets: np.ndarray | None


class Definitions(NamedTuple):
    """All places are spread × (what nothing defines) + offset.

    Attributes
    ----------
    spread : sparse (total, free)
    offset : (total,) array
    free : array
        The places that nothing defines.
    log_volume : float
        An integral over all places of a function times the equations' delta functions is that over the free ones of the
        function, divided by the exponential of this.
    repeated : tuple of str
        What follows from other equations, and is left out.
    """

    spread: Any
    offset: np.ndarray
    free: np.ndarray
    log_volume: float
    repeated: tuple[str, ...]


def definitions(said: list[Equations], total: int, deviations: Callable[[], np.ndarray]) -> Definitions:
    """The solution of all equations.

    Each equation defines what it computes, or an unknown that no other one has. Those that are left, such as a second
    sum that gives the same unknown, and definitions in a circle, are solved together for the unknowns with the largest
    weights in units of their `deviations`, which are 0 where unknown.
    """
    if not said:
        return Definitions(sparse.identity(total, format="csr"), np.zeros(total), np.arange(total), 0.0, ())
    matrix = sparse.csr_matrix(sparse.vstack([each.matrix for each in said]))
    matrix.eliminate_zeros()
    known = np.concatenate([each.known for each in said])
    targets = _targets(said, matrix, deviations)
    defining = _defining(matrix, targets)
    targets = targets[defining]
    own = _at(targets, total)
    weights = np.asarray(own.multiply(matrix[defining]).sum(1)).ravel()
    by_others = sparse.csr_matrix(own.T @ (own - sparse.diags_array(1 / weights) @ matrix[defining]))
    by_others.eliminate_zeros()
    offset, is_defined = np.zeros(total), np.zeros(total, bool)
    offset[targets], is_defined[targets] = -known[defining] / weights, True
    free = np.flatnonzero(~is_defined)
    spread = sparse.csr_matrix(_at(free, total).T + by_others[:, free])
    steps: Any = by_others @ sparse.diags(is_defined.astype(float))
    while steps.nnz:  # Each round reaches twice as deep.
        spread, offset = spread + steps @ spread, offset + steps @ offset
        steps = steps @ steps
        steps.eliminate_zeros()
        if max(steps.nnz, spread.nnz) > _ENTRIES + matrix.nnz:
            raise NotMeasured
    found = Definitions(spread, offset, free, float(np.log(np.abs(weights)).sum()), ())
    left = np.setdiff1d(np.arange(len(known)), defining)
    return _constrained(found, said, left, matrix[left], known[left], deviations) if len(left) else found


def _at(places: np.ndarray, total: int) -> Any:
    """One entry of 1 a row."""
    return sparse.csr_matrix((np.ones(len(places)), (np.arange(len(places)), places)), shape=(len(places), total))


def _targets(said: list[Equations], matrix: Any, deviations: Callable[[], np.ndarray]) -> np.ndarray:
    """The place that each equation may define; -1 where it has none."""
    targets = np.concatenate([np.full(len(e.known), -1) if e.targets is None else e.targets for e in said])
    entries = matrix.tocoo()
    once = np.bincount(entries.col, minlength=matrix.shape[1])[entries.col] == 1
    own = np.flatnonzero(once & (targets[entries.row] < 0))
    if len(own):
        sizes = deviations()[entries.col[own]]
        weights = np.abs(entries.data[own]) * np.where(sizes > 0, sizes, np.inf)
        order = np.argsort(weights, kind="stable")  # The largest is assigned last.
        targets[entries.row[own][order]] = entries.col[own][order]
    return targets


def _defining(matrix: Any, targets: np.ndarray) -> np.ndarray:
    """The equations that define something, each another place, and none by way of itself."""
    able = np.flatnonzero(targets >= 0)
    defining = able[np.unique(targets[able], return_index=True)[1]]
    count = len(defining)
    place = np.full(matrix.shape[1], -1)
    place[targets[defining]] = np.arange(count)
    entries = matrix[defining].tocoo()
    to = place[entries.col]
    between = (to >= 0) & (to != entries.row)
    if not between.any():
        return defining
    from scipy.sparse.csgraph import connected_components  # takes a tenth of a second

    rows, columns = entries.row[between], to[between]
    web = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    _, circle = connected_components(web, directed=True, connection="strong")
    return defining[np.bincount(circle)[circle] == 1]


def _constrained(
    found: Definitions,
    said: list[Equations],
    left: np.ndarray,
    matrix: Any,
    known: np.ndarray,
    deviations: Callable[[], np.ndarray],
) -> Definitions:
    """Also with the equations that are left, which are solved for some of what was free."""
    from scipy.sparse.csgraph import connected_components

    sizes = np.abs(known) + abs(matrix) @ np.abs(found.offset)
    known = known + matrix @ found.offset
    matrix = _without_rounding(matrix @ found.spread, abs(matrix) @ abs(found.spread))
    count, width = matrix.shape
    web = sparse.bmat([[None, matrix], [matrix.T, None]], format="csr")
    _, part = connected_components(web, directed=False)
    by_part = np.argsort(part, kind="stable")
    ends = np.flatnonzero(np.diff(part[by_part])) + 1
    scales = deviations()[found.free]
    offset, is_free, log_volume, repeated = np.zeros(width), np.ones(width, bool), found.log_volume, []
    among = []
    for members in np.split(by_part, ends):
        rows, columns = members[members < count], members[members >= count] - count
        if not len(rows):
            continue
        too_many = float(len(rows)) * len(columns) * min(len(rows), len(columns)) > _WORK
        if too_many:  # Those that meet few unknowns may contradict each other.
            last = np.asarray(abs(matrix[rows]).sign().multiply(np.arange(1, width + 1)).tocsr().max(axis=1).todense())
            rows = rows[np.argsort(last.ravel(), kind="stable")[:_SOME]]
            columns = np.unique(matrix[rows].indices)
        own = scales[columns]
        own = np.where(own > 0, own, own.max(initial=0.0) or 1.0)
        dense = matrix[rows][:, columns].toarray() * own
        kept = _independent(dense)
        others = np.setdiff1d(np.arange(len(rows)), kept)
        _check_same(
            dense, kept, others, known[rows], sizes[rows], lambda at, rows=rows: _name(said, int(left[rows[at]]))
        )
        if too_many:
            raise NotMeasured
        repeated += [left[rows[at]] for at in others]
        if not len(kept):
            continue
        from scipy.linalg import qr

        solution: Any = qr(dense[kept], mode="economic", pivoting=True)
        _, root, order = solution
        chosen, rest = order[: len(kept)], np.sort(order[len(kept) :])
        solved = np.linalg.solve(dense[np.ix_(kept, chosen)], np.c_[dense[np.ix_(kept, rest)], known[rows[kept]]])
        is_free[columns[chosen]] = False
        weights = solved[:, :-1] * (own[chosen][:, None] / own[rest])
        weights[np.abs(solved[:, :-1]) < _ROUNDING] = 0.0
        among.append((-weights.ravel(), columns[chosen].repeat(len(rest)), np.tile(columns[rest], len(chosen))))
        offset[columns[chosen]] = -solved[:, -1] * own[chosen]
        log_volume += float(np.log(np.abs(np.diag(root))).sum() - np.log(own[chosen]).sum())
    among.append((np.ones(is_free.sum()), *[np.flatnonzero(is_free)] * 2))
    entries, rows, columns = map(np.concatenate, zip(*among, strict=True))
    among = sparse.csr_matrix((entries, (rows, columns)), shape=(width, width))[:, is_free]
    return Definitions(
        _without_rounding(found.spread @ among, abs(found.spread) @ abs(among)),
        found.offset + found.spread @ offset,
        found.free[is_free],
        log_volume,
        tuple(dict.fromkeys(_name(said, at) for at in sorted(repeated))),
    )


def _without_rounding(matrix: Any, sizes: Any) -> Any:
    """Without entries that are 0 but for rounding, beside the sizes of what they are the sums of."""
    small = sparse.csr_matrix(abs(matrix) < _ROUNDING * sizes)
    matrix = sparse.csr_matrix(matrix - matrix.multiply(small))
    matrix.eliminate_zeros()
    return matrix


def _independent(dense: np.ndarray) -> np.ndarray:
    """Rows of which none follows from the others: those with larger weights first, whatever their order."""
    from scipy.linalg import qr

    norms = np.linalg.norm(dense, axis=1)
    able = np.flatnonzero(norms > 0)
    if not len(able):
        return able
    rank = np.searchsorted(np.sort(norms[able]), norms[able] * (1 - _DIFFERS))
    scaled = dense[able] / norms[able, None] * (1 + rank[:, None] / len(able))
    found: Any = qr(scaled.T, mode="r", pivoting=True, check_finite=False)
    root, order = found
    follows = np.flatnonzero(np.abs(np.diag(root)) < _FOLLOWS)
    return np.sort(able[order[: follows[0] if len(follows) else len(np.diag(root))]])


def _check_same(
    dense: np.ndarray,
    kept: np.ndarray,
    others: np.ndarray,
    known: np.ndarray,
    sizes: np.ndarray,
    named: Callable[[int], str],
) -> None:
    """Refuse known numbers of equations that follow from others, if those say something else."""
    if not len(others):
        return
    weights = np.linalg.lstsq(dense[kept].T, dense[others].T)[0].T
    off = np.abs(known[others] - weights @ known[kept])
    wrong = np.flatnonzero(off > _DIFFERS * (sizes[others] + np.abs(weights) @ sizes[kept]))
    if len(wrong):
        first = wrong[np.argmax(off[wrong])]
        raise Contradiction(
            f"{named(int(others[first]))} differs by {off[first]:.3g} from the value that other sums without noise "
            "imply; give precision= if numbers are rounded or measured"
        )


def _name(said: list[Equations], at: int) -> str:
    """Of an equation among all."""
    for each in said:
        if at < len(each.known):
            return each.name if len(each.known) == 1 else f"{each.name} at [{at}]"
        at -= len(each.known)
    raise AssertionError("there are as many equations")  # pragma: no cover
