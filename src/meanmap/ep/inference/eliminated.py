"""Many unknowns of one joint Gaussian: those that meet no two others of their kind are integrated out one by one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.ep.factor import Factor
from meanmap.ep.factors.effects import Effects
from meanmap.ep.inference.definitions import NotMeasured
from meanmap.ep.variables import Variable

__all__ = ["Eliminated"]

# This many numbers are left at most, and entries of matrices of them; rows tie this many pairs of numbers.
_LEFT, _ENTRIES, _PAIRS = 1500, 20_000_000, 50_000_000
# Members of a variable whose covariances are computed at once.
_TOGETHER = 4096


@dataclass(frozen=True)
class Eliminated:
    """Numbers of mean 0 in two parts: `left` = root × w, and `out` = by × left + deviations × e.

    All w and e are independent standard normals.
    """

    out: np.ndarray
    left: np.ndarray
    root: np.ndarray
    by: Any
    deviations: np.ndarray

    @classmethod
    def of(cls, precision: Any, rows: Any) -> "Eliminated":
        """Numbers of this joint precision, of which the rows are sums; no row has two of those that are eliminated."""
        if float(np.square(np.diff(rows.indptr), dtype=float).sum()) > _PAIRS:
            raise NotMeasured
        web = sparse.csr_matrix(abs(precision) + abs(rows).T @ abs(rows))
        out = _unconnected(web, precision.diagonal() > 0)
        left = np.setdiff1d(np.arange(precision.shape[0]), out)
        if len(left) > _LEFT or len(left) * (len(out) + rows.shape[0]) > _ENTRIES:
            raise NotMeasured
        from scipy.linalg import solve_triangular

        own, tied = precision.diagonal()[out], precision[out][:, left]
        rest = (precision[left][:, left] - tied.T @ sparse.diags_array(1 / own) @ tied).toarray()
        factor = np.linalg.cholesky((rest + rest.T) / 2)
        root = solve_triangular(factor, np.eye(len(left)), lower=True).T
        return cls(out, left, root, sparse.csr_matrix(-sparse.diags_array(1 / own) @ tied), own**-0.5)

    def split(self, rows: Any) -> tuple[np.ndarray, Any]:
        """Sums of all numbers as those of w, dense, and those of e, sparse."""
        of_out = sparse.csr_matrix(rows[:, self.out])
        of_w = (rows[:, self.left] + of_out @ self.by).toarray() @ self.root
        return of_w, sparse.csr_matrix(of_out @ sparse.diags_array(self.deviations))

    def factor(self, rows: Any, out: Variable, name: str) -> Factor:
        """The factor that says that `out` is the rows."""
        of_w, of_e = self.split(rows)
        of_w = of_w if of_w.shape[1] else np.zeros((len(of_w), 1))
        groups, weights = np.zeros((2, len(of_w)))
        at = np.flatnonzero(np.diff(of_e.indptr))
        groups[at], weights[at] = of_e.indices, of_e.data
        return Effects(of_w, weights, groups, out, name)

    def given(self, rows: Any, toward: np.ndarray, precision: np.ndarray) -> "Given":
        """Of all numbers where rows have these messages."""
        of_w, of_e = self.split(rows)
        weighted = sparse.diags_array(precision) @ of_e
        own = 1 + np.asarray(of_e.multiply(weighted).sum(0)).ravel()
        tied = weighted.T @ of_w
        square = np.eye(of_w.shape[1]) + (of_w.T * precision) @ of_w - (tied.T / own) @ tied
        covariance, middle = np.linalg.inv(square), of_e.T @ toward
        w = covariance @ (toward @ of_w - (middle / own) @ tied)
        e = (middle - tied @ w) / own
        left = self.root @ w
        mean = np.zeros(len(self.left) + len(self.out))
        mean[self.left], mean[self.out] = left, self.by @ left + self.deviations * e
        return Given(self, mean, covariance, own, tied)


@dataclass(frozen=True)
class Given:
    """The joint Gaussian of w and e after messages, by the covariance of w and what e has beside it."""

    numbers: Eliminated
    mean: np.ndarray
    covariance: np.ndarray
    own: np.ndarray
    tied: np.ndarray

    def covariances(self, spread: Any, length: int) -> np.ndarray:
        """Of the members, `length` rows of spread each, of a plate: (members, length, length)."""
        step, found = max(_TOGETHER // length, 1) * length, []
        for start in range(0, spread.shape[0], step):
            of_w, of_e = self.numbers.split(spread[start : start + step])
            scaled = of_e @ sparse.diags_array(1 / self.own)
            rest = of_w - scaled @ self.tied
            if length == 1:
                beside = np.asarray(of_e.multiply(scaled).sum(1)).ravel()
                found.append(((rest @ self.covariance * rest).sum(1) + beside)[:, None, None])
                continue
            among = rest @ self.covariance @ rest.T + (scaled @ of_e.T).toarray()
            found.append(np.stack([among[at : at + length, at : at + length] for at in range(0, len(among), length)]))
        return np.concatenate(found)


def _unconnected(web: Any, able: np.ndarray) -> np.ndarray:
    """Many nodes of which no two are connected, those with few neighbours first."""
    starts, neighbours = web.indptr, web.indices
    blocked, chosen = ~able, []
    for at in np.argsort(np.diff(starts), kind="stable").tolist():
        if not blocked[at]:
            blocked[neighbours[starts[at] : starts[at + 1]]] = True
            chosen.append(at)
    return np.sort(np.array(chosen, int))
