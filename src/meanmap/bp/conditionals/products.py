"""Products and squares of columns on which others depend, chosen on held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Products"]

# The most products, rows per product, and the smallest score of a product.
MOST, ROWS_EACH, LEAST_SCORE = 20, 25, 2.0


@dataclass(frozen=True, eq=False)
class Products:
    """Pairs of columns of standardised numbers whose products are used.

    Attributes
    ----------
    pairs : array (p, 2)
        Of columns; a square is a column with itself.
    low, high : array (d,)
        The range to which factors are clipped: outside the training data products do not grow.
    responses : dict
        For columns that are in a product: the column of numbers that depends most clearly on one of these products.
    """

    pairs: np.ndarray
    low: np.ndarray
    high: np.ndarray
    responses: dict[int, int]

    def beside(self, rows: np.ndarray) -> np.ndarray:
        """Rows (n, d) with their products on the right, NaN where a factor is missing."""
        if not len(self.pairs):
            return rows
        factors = np.clip(rows, self.low, self.high)
        return np.concatenate([rows, factors[:, self.pairs[:, 0]] * factors[:, self.pairs[:, 1]]], axis=1)

    @classmethod
    def chosen(cls, rows: np.ndarray, filled: np.ndarray, left: np.ndarray, blocks: Sequence[range]) -> "Products":
        """Choose products from rows (n, d) with NaN in gaps, the completed rows, and residuals of each number.

        `left` are residuals, up to a factor, of linear regressions on the other columns that were fitted to other rows.

        Notes
        -----
        If a column depends linearly on others, its residuals are uncorrelated with products of these. A product is
        included if its correlation exceeds a multiple of its heteroscedasticity-consistent standard error (White 1980):
        at least two, and such that on average one product is included by chance.
        """
        from scipy.special import ndtri

        there, d = ~np.isnan(rows), rows.shape[1]
        left = np.where(there, left, 0.0)
        number = np.zeros(d, dtype=bool)
        number[[block.start for block in blocks if len(block) == 1]] = True
        of = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        varies = np.array([len(np.unique(column[seen])) > 2 for column, seen in zip(rows.T, there.T, strict=True)])
        plain = np.column_stack([np.ones(len(rows)), filled])
        linear = np.linalg.pinv(plain)
        away = plain @ (linear @ linear.T)[:, 1:]
        away /= np.maximum(np.sum(away**2, axis=0), np.finfo(float).tiny)
        found = []
        for k in range(d):
            others = np.arange(k, d)[(of[k:] != of[k]) | ((np.arange(k, d) == k) & number[k] & varies[k])]
            if not len(others):
                continue
            product, both = filled[:, others] * filled[:, [k]], (there[:, others] & there[:, [k]]).astype(float)
            slopes = linear @ product
            product = (product - plain @ slopes) * both
            # The regression of a product on all columns but one follows from that on all, and the residuals of the one.
            slopes = slopes[1:]
            covariance = left.T @ product + slopes * ((left * away).T @ both)
            variance = (left**2).T @ product**2 + 2 * slopes * ((left**2 * away).T @ product)
            variance += slopes**2 * (((left * away) ** 2).T @ both)
            with np.errstate(invalid="ignore", divide="ignore"):
                scores = np.abs(covariance) / np.sqrt(variance)
            own = (of[:, None] == of[others]) | (of == of[k])[:, None] | ~number[:, None]
            scores = np.where(np.isfinite(scores), scores, 0.0)
            j, i = np.nonzero(~own)
            found.append(np.column_stack([scores[j, i], j, np.full(len(j), k), others[i]]))
        scored = np.concatenate([*found, np.empty((0, 4))])
        scored = scored[scored[:, 0] > max(-ndtri(0.5 / max(len(scored), 1)), LEAST_SCORE)]
        pairs, responses = [], {}
        for j, k, other in scored[np.argsort(-scored[:, 0], kind="stable"), 1:].astype(int).tolist():
            if (k, other) not in pairs:
                if len(pairs) >= min(MOST, len(rows) // ROWS_EACH):
                    continue
                pairs.append((k, other))
            for factor in (k, other):
                if number[factor] and varies[factor]:
                    responses.setdefault(factor, j)
        ends = (np.nanmin(rows, axis=0), np.nanmax(rows, axis=0))
        return cls(np.array(pairs, dtype=int).reshape(-1, 2), *ends, responses)
