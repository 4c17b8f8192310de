"""Labels given the observed cells of other columns: multinomial logistic regression with selected interactions."""

from dataclasses import dataclass, replace

import numpy as np

from meanmap.bp.conditionals.softmax import log_shares, softmax_weights
from meanmap.core.points import spread_rows

__all__ = ["LabelRegression"]

# Ridges of labels and of all other columns, compared on held-out rows, strongest first. If numbers are uninformative, a
# common ridge would shrink the effects of labels as well.
RIDGES = ((100.0, 100.0), (10.0, 10.0), (1.0, 1.0), (0.1, 100.0), (0.1, 10.0), (0.1, 0.1))
LEAST_RIDGE = 0.1
# The most rows × columns × labels, and the fewest rows, from which it is learned.
MOST_NUMBERS, LEAST_ROWS = 10_000_000, 500
# Products are sought among at most MOST_COLUMNS columns. LOOKED_AT of those with the highest scores are examined, and
# at most MOST_PAIRS included, one per ROWS_EACH rows, of which BY_CHANCE on average are included by chance.
MOST_COLUMNS, LOOKED_AT, MOST_PAIRS, ROWS_EACH, BY_CHANCE = 60, 60, 20, 25, 0.1


@dataclass(frozen=True, eq=False)
class LabelRegression:
    """log p(l | x) = constant + wₗ·(1, x, which cells of x were missing, products of x).

    Forests shrink relations among labels towards independence if there are numeric columns as well, because splits on
    these separate similar rows; here the relations are coefficients, whose estimates improve with the number of rows,
    whatever else is in the table.

    Attributes
    ----------
    low, high : array (d,)
        Range of the other columns in training; values outside are clipped to it.
    pairs : array (p, 2)
        Columns whose products are included.
    base : array (L,)
        Logarithms of the shares of the labels over all rows.
    label : array (d,) of bool
        Which of the other columns are zeros and ones of labels.
    ridge : pair of float
        Penalty of the weights of these, and of all others except the constant.
    weights : array (q, L)
    rows, gaps, hits : arrays (n, d), (n, k), (n, L)
        The training data.
    origin : array (n,)
        The row of the table of each training row.
    """

    low: np.ndarray
    high: np.ndarray
    pairs: np.ndarray
    base: np.ndarray
    label: np.ndarray
    ridge: tuple[float, float]
    weights: np.ndarray
    rows: np.ndarray
    gaps: np.ndarray
    hits: np.ndarray
    origin: np.ndarray

    @classmethod
    def fit(
        cls, rows: np.ndarray, gaps: np.ndarray, hits: np.ndarray, origin: np.ndarray, of: np.ndarray
    ) -> tuple["LabelRegression", ...]:
        """Fit one regression for each ridge.

        Arguments are the completed rows of the others (n, d), indicators of their missing variables (n, k) and of the
        labels (n, L), the table row of each row (n,), and the variable of each column of the others (d,).
        """
        number = hits.shape[1]
        some = spread_rows(len(hits), max(MOST_NUMBERS // ((rows.shape[1] + gaps.shape[1] + 1) * number), LEAST_ROWS))
        rows, gaps, hits = rows[some], gaps[some].astype(float), hits[some]
        base = np.log((hits.sum(axis=0) + 0.5) / (len(hits) + number / 2))
        learned_from = rows, gaps, hits, origin[some]
        none, nothing = np.empty((0, 2), dtype=int), np.zeros((0, number))
        law = cls(
            rows.min(axis=0), rows.max(axis=0), none, base, np.bincount(of)[of] > 1, RIDGES[-1], nothing, *learned_from
        )
        law = replace(law, pairs=law._learned(1.0)._pairs(of))
        found: list[LabelRegression] = []
        for ridge in (each for each in RIDGES if law.label.any() or each[0] == each[1]):
            law = replace(law, ridge=ridge)._learned(1.0)
            found.append(law)
        return tuple(found)

    def resampled(self, counts: np.ndarray) -> "LabelRegression":
        """Refitted with these weights (N,) of the rows of the table, and the same products."""
        return self._learned(counts[self.origin])

    def _learned(self, often: np.ndarray | float) -> "LabelRegression":
        design = self._design(self.rows, self.gaps)
        start = self.weights if len(self.weights) == design.shape[1] else None
        label = np.zeros(design.shape[1] - 1, dtype=bool)
        label[: len(self.label)] = self.label
        penalty = np.append(LEAST_RIDGE, np.where(label, *self.ridge))
        often = np.broadcast_to(often, len(design))
        return replace(self, weights=softmax_weights(design, self.hits, penalty, self.base, start, often))

    def __call__(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Probabilities (m, L)."""
        return np.exp(log_shares(self.base + self._design(rows, gaps) @ self.weights))

    def _design(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        rows = np.clip(rows, self.low, self.high)
        products = rows[:, self.pairs[:, 0]] * rows[:, self.pairs[:, 1]]
        return np.concatenate([np.ones((len(rows), 1)), rows, gaps, products], axis=1)

    def _pairs(self, of: np.ndarray) -> np.ndarray:
        """Products whose scores, the derivatives of the likelihood by their coefficients over standard errors (Rao
        1948), are so large that this many are taken in by chance on average.
        """
        from scipy.special import ndtri

        rows, gaps, hits = self.rows, self.gaps, self.hits
        n, d = rows.shape
        first, second = np.triu_indices(d)
        varies = np.array([len(np.unique(column)) > 2 for column in rows.T])
        alone = np.bincount(of)[of] == 1
        among = np.where(first == second, varies[first] & alone[first], of[first] != of[second])
        first, second = first[among], second[among]
        if not len(first) or d > MOST_COLUMNS:
            return self.pairs
        left, design = hits - self(rows, gaps), self._design(rows, gaps)
        middle = rows - rows.mean(axis=0)
        rough = np.zeros((d, d))
        for column in left.T:
            sums, squares = middle.T @ (middle * column[:, None]), (middle**2).T @ (middle**2 * column[:, None] ** 2)
            rough = np.maximum(rough, sums**2 / np.maximum(squares, np.finfo(float).tiny))
        near = np.argsort(-rough[first, second], kind="stable")[:LOOKED_AT]
        first, second, tried = first[near], second[near], len(first) * max(hits.shape[1] - 1, 1)
        products, scores = middle[:, first] * middle[:, second], np.zeros(len(near))
        for column, each in zip(left.T, hits.T, strict=True):
            weight = ((each - column) * (1 - each + column))[:, None]
            curved = design.T @ (weight * design) + LEAST_RIDGE * np.eye(design.shape[1])
            own = products - design @ np.linalg.solve(curved, design.T @ (weight * products))
            with np.errstate(invalid="ignore", divide="ignore"):
                score = np.abs(own.T @ column) / np.sqrt((own**2).T @ column**2)
            scores = np.maximum(scores, np.where(np.isfinite(score), score, 0.0))
        order = np.argsort(-scores, kind="stable")[: min(MOST_PAIRS, n // ROWS_EACH)]
        order = order[scores[order] > -ndtri(BY_CHANCE / 2 / tried)]
        return np.stack([first[order], second[order]], axis=1)
