"""Scores of the ranks in each column, which detect a difference in one column of many."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from meanmap.core.labels import are_codes
from meanmap.core.points import pieces, slices
from meanmap.core.progress import track
from meanmap.core.types import Array, Points
from meanmap.stats.collections import together
from meanmap.stats.permutations import BLOCK, Centred, CentredFeatures, CentredGram, Permuted
from meanmap.stats.samples.shuffling import leaf_at, places_of_columns
from meanmap.stats.samples.units import Forms, Units
from meanmap.stats.settings import WHOLE

__all__ = [
    "COMMON",
    "LEAST_SPREAD",
    "MOST_LABELS",
    "OF_NUMBERS",
    "ROUNDING",
    "Scores",
    "flipped_forms",
    "grouped_forms",
    "judged",
    "of_labels",
    "of_numbers",
    "permuted_forms",
    "raw_scores",
    "soft_maximum",
    "stepped_down",
]

# The shares of a column's scores, if it has numbers. Normal scores and their squares detect shifts as well as t-tests
# do and spreads better than Levene's test (Chernoff & Savage 1958; Klotz 1962). Legendre polynomials of the ranks
# detect shapes.
OF_NUMBERS = (0.42, 0.42, 0.07, 0.09)
# One more score is the overall deviation of a row over all columns, with this share of the columns' part.
COMMON = 0.06
# At most this many labels, the most frequent ones, have scores.
MOST_LABELS = 16
# The shares of columns and of pairs of columns if there are very many columns; the rest is the share of kernels. A
# difference that only one of the three detects is detected as by a test at the level times its share. Any choice of
# shares loses some power, and this one spreads the loss. Kernels themselves detect differences in one of few columns,
# so with d columns the two shares are multiplied by (d − 1)/(d + FEW).
COLUMNS, PAIRS, FEW = 0.42, 0.08, 4
# The share of the largest difference of one pair. A sum over pairs hardly changes if one of many does.
ONE_PAIR = 0.1
# Correlations of single pairs of scores are compared if they are this many or fewer, and if the product of their mean
# fourth powers is no larger: it is 9 for numbers, and 54 for a number and a label of one row in twenty.
MOST_PAIRS, LONGEST = 512, 40.0
# The Bayes factor of a mean with a prior standard deviation of three standard errors is proportional to exp(T/2 · 9/10)
# for its squared standardised value T.
WIDTH = 0.9
# The rounding error of sums in double precision, in the unit of log p-values.
ROUNDING = 1e-9
# The number of scores whose sums are computed at once, and of random features that replace products of pairs of scores.
AT_ONCE, QUADRATIC = 256, 512
# Up to this many products of pairs are summed over units without random features.
PRODUCTS = 128
# Scores with less spread are constant up to rounding.
LEAST_SPREAD = 1e-9


@dataclass(frozen=True)
class Scores:
    """Scores of all columns of a pooled sample, each with mean zero and mean square one.

    Attributes
    ----------
    matrix : array (N, M)
    columns : array (M,) of int
        The column of each score; -1 for all of them together.
    shares : array (M,)
        The share of each score in the columns' part; shares sum to one.
    main : array (N, c)
        The first score of each column of numbers and the scores of labels, whose products detect relations between
        columns.
    of_main : array (c,) of int
        The column of each of these.
    names : tuple of str
        The names of the columns.
    """

    matrix: np.ndarray
    columns: np.ndarray
    shares: np.ndarray
    main: np.ndarray
    of_main: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        domain: object,
        pooled: Points,
        names: Sequence[str] = (),
        widths: Mapping[str, int] | None = None,
        least: int = 2,
    ) -> "Scores | None":
        """Scores of all columns that vary; None if there are fewer than `least` of them. They depend on the pooled
        sample alone, without its labels.
        """
        found, radius = [], np.zeros(1)
        for name, places in places_of_columns(domain, pooled, names, widths).items():
            each = [part for place in places[:1] for part in _scores(leaf_at(pooled, place))]
            if least > 1:  # duplicated columns count once
                each = [part for part in each if not any(np.array_equal(part[0], other[1]) for other in found)]
            found += [(name, scores, shares, kept) for scores, shares, kept in each]
            radius = radius + sum((scores[:, 0] ** 2 for scores, _, kept in each if kept), np.zeros(1))
        known = list(dict.fromkeys(name for name, *_ in found))
        if len(known) < least:
            return None
        matrices, columns, shares = [], [], []
        for name, scores, share, _ in found:
            matrices.append(scores)
            columns += [known.index(name)] * scores.shape[1]
            shares.append((1 - COMMON) * share / len(found))
        together_in_row = standardised(ndtri(ranks(radius))[:, None])
        if together_in_row.shape[1]:
            matrices.append(together_in_row)
            columns.append(-1)
            shares.append(np.array([COMMON]))
        main = [scores[:, :1] if kept else scores for _, scores, _, kept in found]
        of_main = [known.index(name) for (name, *_), part in zip(found, main, strict=True) for _ in part.T]
        return cls(
            np.concatenate(matrices, axis=1),
            np.array(columns),
            np.concatenate(shares),
            np.concatenate(main, axis=1),
            np.array(of_main),
            tuple(known),
        )

    @property
    def of_pairs(self) -> np.ndarray:
        """The Gram matrix of ⟨main(x), main(y)⟩², whose MMD² sums squared differences in mean products of pairs."""
        return (self.main @ self.main.T / self.main.shape[1]) ** 2

    def _gram_of_pairs(self, units: Units) -> np.ndarray:
        """The Gram matrix of pairs, of the means of units."""
        if self._apart(units):
            return units.gram(replace(self, main=self.main[units.order]).of_pairs)
        means = units.means(self._products) / self.main.shape[1]
        return means @ means.T

    def _apart(self, units: Units) -> bool:
        """Whether products of pairs are not summed over units, because units are rows or columns are many."""
        return units.alone or self.main.shape[1] ** 2 > PRODUCTS

    @property
    def _products(self) -> np.ndarray:
        """The products of all pairs of scores in each row, (N, c²)."""
        return (self.main[:, :, None] * self.main[:, None, :]).reshape(len(self.main), -1)

    @property
    def each_pair(self) -> np.ndarray:
        """How each row changes the correlation r of two scores x and y, xy − r (x² + y²) / 2, standardised, (N, P): its
        variance is (1 − r²)² for normal scores, and that of xy 1 + r². Pairs of rare labels are left out, and P is 0
        if pairs are very many.
        """
        first, second = np.triu_indices(self.main.shape[1], 1)
        tails = np.mean(self.main**4, axis=0)
        used = (self.of_main[first] != self.of_main[second]) & (tails[first] * tails[second] <= LONGEST)
        if np.count_nonzero(used) > MOST_PAIRS:
            return np.zeros((len(self.main), 0))
        x, y = self.main[:, first[used]], self.main[:, second[used]]
        products = x * y
        return standardised(products - products.mean(axis=0) / 2 * (x**2 + y**2))

    def features_of_pairs(self, generator: np.random.Generator, units: Units) -> np.ndarray:
        """Random features, (units, 512), whose expected inner products are the Gram matrix of pairs; units have means
        of rows.

        They are combinations of products of two scores. If there are fewer products than features, products are summed
        first.
        """
        first, second = self._drawn(generator)
        if self._apart(units):
            return units.means((self.main @ first) * (self.main @ second))
        return units.means(self._products) @ (first[:, None, :] * second[None, :, :]).reshape(-1, QUADRATIC)

    def random_pairs(self, generator: np.random.Generator) -> Callable[[np.ndarray | slice], np.ndarray]:
        """`features_of_pairs` of some rows at a time."""
        first, second = self._drawn(generator)
        return lambda rows: (self.main[rows] @ first) * (self.main[rows] @ second)

    def products_of_rows(self, generator: np.random.Generator) -> np.ndarray:
        """The products of all pairs of scores in each row, or random features of them if they are many."""
        c = self.main.shape[1]
        return self._products / c if c**2 <= PRODUCTS else self.random_pairs(generator)(slice(None))

    def _drawn(self, generator: np.random.Generator) -> np.ndarray:
        """Random signs of two combinations of scores for each feature of pairs, (2, c, 512)."""
        c = self.main.shape[1]
        return generator.choice([-1.0, 1.0], (2, c, QUADRATIC)) / np.sqrt(c * np.sqrt(QUADRATIC))

    def pairs(self, generator: np.random.Generator, units: Units) -> Centred:
        """The Gram matrix of pairs; with many points, from random features of their units."""
        if len(self.main) <= WHOLE:
            return CentredGram(self._gram_of_pairs(units))
        return CentredFeatures(self.features_of_pairs(generator, units))

    def judged(self, kernels: Permuted, pairs: Permuted | None, forms: Forms) -> tuple[Permuted, int]:
        """Combine the evidence of kernels, pairs of columns and columns; also gives the column with the most evidence.

        `forms` gives the squares of sums of scores for the data and each draw, in units of their mean over draws. The
        column is -1 if kernels or pairs have more evidence.
        """
        shares = np.log(self.shares)
        found, strongest, first = judged(kernels, pairs, self.matrix, shares, forms, len(self.names), self.each_pair)
        return found, int(self.columns[strongest]) if first == 1 else -1


def judged(
    kernels: Permuted,
    pairs: Permuted | None,
    matrix: np.ndarray,
    shares: np.ndarray,
    forms: Forms,
    number: int,
    each_pair: np.ndarray,
) -> tuple[Permuted, int, int]:
    """Combine kernels, columns, the sum over pairs of columns and the largest difference of one pair; also gives the
    score and the part with the most evidence.
    """
    values, strongest = soft_maximum(matrix, shares, forms)
    parts, theirs = [kernels, Permuted(values, ROUNDING)], [COLUMNS]
    if pairs is not None:
        parts, theirs = [*parts, pairs], [*theirs, PAIRS]
    if number_of_pairs := each_pair.shape[1]:
        values, _ = soft_maximum(each_pair, np.full(number_of_pairs, -np.log(number_of_pairs)), forms)
        parts, theirs = [*parts, Permuted(values, ROUNDING)], [*theirs, ONE_PAIR]
    many = (number - 1) / (number + FEW)
    found, first = together(parts, [1 - many * sum(theirs), *(many * share for share in theirs)])
    return found, strongest, first


def soft_maximum(matrix: np.ndarray, shares: np.ndarray, forms: Forms) -> tuple[np.ndarray, int]:
    """log Σ share · exp(9/20 T) over scores, for the data and each draw, and the score with the largest term in the
    data.

    `shares` are logarithms. For normal means the terms are proportional to Bayes factors, with a prior standard
    deviation of three standard errors.
    """
    strongest, most = 0, -np.inf
    total: Any = -np.inf
    for part in track(slices(matrix.shape[1], AT_ONCE), "columns"):
        terms = WIDTH / 2 * forms(matrix[:, part]) + shares[part]
        here = int(np.argmax(terms[0]))
        if terms[0, here] > most:
            strongest, most = part.start + here, float(terms[0, here])
        part_of_all: Any = logsumexp(terms, axis=1)
        total = np.logaddexp(total, part_of_all)
    return total, strongest


def stepped_down(values: np.ndarray) -> np.ndarray:
    """Corrected p-values from columns of statistics, whose first row is that of the data."""
    order = np.argsort(-values[0], kind="stable")
    largest = np.maximum.accumulate(values[:, order[::-1]], axis=1)[:, ::-1]
    shares = np.mean(largest >= values[0, order] - ROUNDING, axis=0)
    found = np.empty(len(order))
    found[order] = np.maximum.accumulate(shares)
    return found


def permuted_forms(z: np.ndarray, n: int) -> Forms:
    """Statistics of scores of two samples under permutations, rows of zeros and ones: n z̄²_x N (N − 1) / (n m)."""
    size = z.shape[1]
    return lambda scores: _squares(z, scores) * ((size - 1) / (n * (size - n)))


def flipped_forms(z: np.ndarray) -> Forms:
    """Statistics of scores of pairs under random signs: squares of sums of their differences."""

    def forms(scores: np.ndarray) -> np.ndarray:
        differences = scores[: z.shape[1]] - scores[z.shape[1] :]
        return _squares(z, differences) / np.maximum(np.sum(differences**2, axis=0), np.finfo(float).tiny)

    return forms


def grouped_forms(labels: np.ndarray, sizes: Sequence[int]) -> Forms:
    """Statistics of scores of several samples under permutations of labels, an analysis of variance: Σ_g n_g z̄_g²."""
    size = labels.shape[1]

    def forms(scores: np.ndarray) -> np.ndarray:
        return sum(_squares(labels == g, scores) / n for g, n in enumerate(sizes)) * ((size - 1) / size)

    return forms


def _squares(z: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Squares of the sums of scores for each row of z, in double precision so that equal draws tie."""
    return np.concatenate([(block.astype(float) @ scores) ** 2 for block in pieces(z, BLOCK)])


def _scores(leaf: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
    """The scores of each coordinate of a column, their shares, and whether the column has numbers."""
    if are_codes(leaf):
        for codes in np.moveaxis(leaf, 1, 0):
            scores, shares = of_labels(codes)
            if scores.shape[1]:
                yield scores, shares, False
    elif leaf.ndim == 2 and np.issubdtype(leaf.dtype, np.floating):
        for values in leaf.T:
            if (values != values[0]).any():
                scores, shares = of_numbers(ranks(values))
                yield scores, shares, True


def of_labels(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised scores of the most frequent labels, and their shares; none if all labels are equal."""
    _, which, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    scores = standardised((which.reshape(-1, 1) == often).astype(float))
    return scores, np.full(scores.shape[1], 1 / max(scores.shape[1], 1))


def of_numbers(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised scores of ranks between 0 and 1, and their shares; scores that ties make constant are left out."""
    raw = raw_scores(u, ndtri(u), np)
    kept = raw.std(axis=0) > LEAST_SPREAD
    shares = np.array(OF_NUMBERS)[kept]
    return standardised(raw), shares / shares.sum()


def raw_scores(u: Array, normal: Array, library: ModuleType) -> Any:
    """Normal scores, their squares, and the third and fourth Legendre polynomials of ranks."""
    v = 2 * u - 1
    return library.stack([normal, normal**2, 5 * v**3 - 3 * v, 35 * v**4 - 30 * v**2 + 3], axis=-1)


def ranks(values: np.ndarray) -> np.ndarray:
    """The share of values below each value, with ties counted half."""
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return (below + upto) / (2 * len(values))


def standardised(scores: np.ndarray) -> np.ndarray:
    """Scores standardised to mean zero and mean square one; constant columns are left out."""
    spread = scores.std(axis=0)
    kept = spread > LEAST_SPREAD
    return (scores[:, kept] - scores[:, kept].mean(axis=0)) / spread[kept]
