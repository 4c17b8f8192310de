"""Labels given labels: tables of counts, shrunk towards those of fewer parents as far as held-out rows support."""

from dataclasses import dataclass

import numpy as np

__all__ = ["CountedTables"]

# The prior table is that of fewer parents, mixed with equal shares. Its size in rows and the mixture are averaged over
# these values, weighted by held-out predictions. A single best size would be zero whenever all rows agree, however few.
SIZES, EVEN = np.geomspace(1e-2, 1e6, 33), np.linspace(0, 1, 5)
# Sizes above one row are used only if they improve held-out predictions by more than a standard error. Otherwise
# uncertain effects would be shrunk towards zero: effects of 2.3 standard errors were estimated as .6 of their size.
FREE = 1.0
# The most rakings of a table, and the largest change of an expected count in the last one, in rows.
RAKINGS, AT_REST = 50, 1e-3
# Larger tables than this are not used, as hardly any two rows would have the same parents.
MOST_NUMBERS = 5_000_000


@dataclass(frozen=True, eq=False)
class CountedTables:
    """The shares of L labels given P others, from the counts of all rows.

    With one parent after the other, next the one by which left-out rows gain the most,

        p(l | a₁ … aₖ) = E [(n(l, a₁ … aₖ) + s q(l)) / (n(a₁ … aₖ) + s)],   q = (1 − e) r(l | a₁ … aₖ) + e / L,

    a Dirichlet prior about the table r(l | a₁ … aₖ) ∝ p(l | a₁ … aₖ₋₁) f(l, aₖ): what the parents before say, and the
    own part of the new one, whatever they are. The factors f are those with which as many rows of each label are
    expected at each label of the parent as came there, these counts shrunk in the same way towards what is expected
    without it (Deming & Stephan 1940). So a difference that all strata share is counted in all rows, however few a
    stratum has; drawing cells towards strata would take it away. The expectation is over sizes s and mixtures e,
    weighted by the leave-one-out probability of all rows: leaving a row out lowers both counts by one at every level
    (Buntine 1991 has one size; Chen & Goodman 1999 compare such tables in language).

    Attributes
    ----------
    order : tuple of int
        The parents, in the order in which they are used.
    keys : tuple of arrays
        Of each of these, sorted: the number of the states of those before, times its number of labels and one, plus its
        label; the place of a key is the number of the states including it.
    tables : tuple of arrays (C, L)
        Shares at the states of none, one, ... of them.
    factors : tuple of arrays (A + 1, L)
        f of each parent in this order; ones first, for unseen labels.
    widths : tuple of int
        The number of labels of each parent.
    """

    order: tuple[int, ...]
    keys: tuple[np.ndarray, ...]
    tables: tuple[np.ndarray, ...]
    factors: tuple[np.ndarray, ...]
    widths: tuple[int, ...]

    @classmethod
    def fit(cls, codes: np.ndarray, widths: tuple[int, ...], labels: np.ndarray, number: int) -> "CountedTables":
        """Fit to labels of the parents (n, P), −1 if missing, and of the variable (n,), which has `number` labels."""
        cells, weights = np.unique(np.column_stack([codes, labels]), axis=0, return_counts=True)
        labels = cells[:, -1]
        here, equal = np.zeros(len(cells), dtype=np.int64), np.full((1, number), 1 / number)
        counts = np.bincount(labels, weights, number)[None]
        shares, left = _shrunk(counts, equal, here, labels, weights, np.full(len(cells), 1 / number))
        order: list[int] = []
        every, tables, factors = [], [shares], []
        while len(order) < len(widths):
            best = None
            for parent in (each for each in range(len(widths)) if each not in order):
                size = widths[parent] + 1
                keys, inside = np.unique(here * size + cells[:, parent] + 1, return_inverse=True)
                if len(keys) * number > MOST_NUMBERS:
                    continue
                counts = np.bincount(inside * number + labels, weights, len(keys) * number).reshape(-1, number)
                above = tables[-1][keys // size]
                factor, *last = _raked(counts, above, keys % size, size, inside, labels, weights, left)
                if order:  # with one parent, its part is the whole table
                    last = _shrunk(counts, last[0], inside, labels, weights, last[1])
                found = parent, keys, inside, factor, *last, float(np.log(last[1]) @ weights)
                best = found if best is None or found[-1] > best[-1] else best
            if best is None:
                break
            parent, keys, here, factor, shares, left, _ = best
            order.append(parent)
            every.append(keys)
            tables.append(shares)
            factors.append(factor)
        return cls(tuple(order), tuple(every), tuple(tables), tuple(factors), widths)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Shares (m, L) at labels of the parents (m, P); where these were never together, as each acts elsewhere."""
        here = np.zeros(len(codes), dtype=np.int64)
        found = np.repeat(self.tables[0], len(codes), axis=0)
        known = np.ones(len(codes), dtype=bool)
        for parent, keys, table, factor in zip(self.order, self.keys, self.tables[1:], self.factors, strict=True):
            wanted = here * (self.widths[parent] + 1) + codes[:, parent] + 1
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known &= keys[place] == wanted
            here = place
            found = found * factor[codes[:, parent] + 1]
            found /= found.sum(axis=1, keepdims=True)
            found[known] = table[here[known]]
        return found


def _raked(
    counts: np.ndarray,
    above: np.ndarray,
    parent: np.ndarray,
    size: int,
    inside: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The own part of a parent with `size` labels, of which each of C states has one: factors (size, L), shares (C, L)
    with them, and those of the cells' own labels (m,) without a row of theirs.
    """
    among = counts.sum(axis=1, keepdims=True)

    def of_parent(table: np.ndarray) -> np.ndarray:
        found = np.zeros((size, counts.shape[1]))
        np.add.at(found, parent, table)
        return found

    seen, before = of_parent(counts), of_parent(among * above)
    rows = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    own = parent[inside], labels
    without = before[own] / rows[own[0], 0] * left / above[inside, labels]
    targets, left_targets = _shrunk(seen, before / rows, own[0], labels, weights, without)
    factors, shares = np.ones(seen.shape), above
    for _ in range(RAKINGS):
        expected = of_parent(among * shares)
        if np.abs(expected - rows * targets)[seen.any(axis=1)].max() < AT_REST:
            break
        factors *= np.where(expected > 0, rows * targets / np.where(expected > 0, expected, 1.0), 1.0)
        factors /= factors.max(axis=1, keepdims=True)
        shares = above * factors[parent]
        shares /= shares.sum(axis=1, keepdims=True)
    odds = _odds(shares[inside, labels]) * _odds(left_targets) / _odds(targets[own])
    odds *= _odds(left) / _odds(above[inside, labels]) if len(above) > len(np.unique(parent)) else 1.0
    return factors, shares, odds / (1 + odds)


def _shrunk(
    counts: np.ndarray,
    above: np.ndarray,
    inside: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    left_above: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Shares (C, L) from counts and shares that the prior has at the same states, and those of the cells' own labels
    (m,) without a row of theirs.
    """
    among, own = counts.sum(axis=1, keepdims=True), counts[inside, labels]
    total, number = among[inside, 0], counts.shape[1]
    means = np.array([(1 - even) * left_above + even / number for even in EVEN])
    left = (own - 1 + SIZES[:, None, None] * means) / (total - 1 + SIZES[:, None, None])
    of_each = _weights(left, weights)
    shares = np.zeros(counts.shape)
    for size, each in zip(SIZES, of_each, strict=True):
        # Weighted means of several priors of one size are one prior.
        even = each @ EVEN
        shares += (counts * each.sum() + size * ((each.sum() - even) * above + even / number)) / (among + size)
    return shares, np.einsum("se,sem->m", of_each, left)


def _weights(left: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of each size and mixture, from the probabilities of held-out rows."""
    logs = np.log(left)
    scores, few = logs @ weights, (SIZES <= FREE)[:, None]
    of_each = np.where(few, np.exp(np.minimum(scores - scores[SIZES <= FREE].max(), 0)), 0)
    free = np.log(np.einsum("se,sem->m", of_each / of_each.sum(), left))
    gain = scores - free @ weights
    logs -= free
    error = np.sqrt(np.maximum(logs**2 @ weights - gain**2 / weights.sum(), 0))
    scores[~(few | (gain > error))] = -np.inf
    of_each = np.exp(scores - scores.max())
    return of_each / of_each.sum()


def _odds(shares: np.ndarray) -> np.ndarray:
    return shares / np.maximum(1 - shares, np.finfo(float).tiny)
