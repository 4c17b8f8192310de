"""Scores of single columns as features of a row, for tests of many rows: ranks by quantiles of a sample, and labels."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy.special import ndtri as host_ndtri

from meanmap.core.held import holds_floats
from meanmap.core.labels import are_codes, as_whole
from meanmap.core.points import any_sparse, count, in_columns
from meanmap.core.types import Array, Points
from meanmap.features.base import Concatenated, Features
from meanmap.kernels.base import Kernel, Sum
from meanmap.stats.permutations import Permuted
from meanmap.stats.samples.samples import Samples, columns_of
from meanmap.stats.samples.scores import (
    COMMON,
    MOST_LABELS,
    OF_NUMBERS,
    judged,
    raw_scores,
    soft_maximum,
    stepped_down,
)
from meanmap.stats.samples.shuffling import Place, leaf_at, places_of_columns

__all__ = ["RankFeatures", "with_columns", "without_columns"]

# The number of quantiles for ranks, and the largest number of scores in all, since their covariances are computed, too.
QUANTILES, MOST_SCORES = 512, 512
# The number of rows from which the means and standard deviations of scores are computed, and the smallest standard
# deviation of a score that is kept.
MEASURED, LEAST_SPREAD = 4096, 1e-6
# Scores are scaled down by this factor, so that the common grid is as fine as for the features of kernels alone.
SIZE = 1 / 16
# The mean of a score that few rows carry, such as those of a rare label, is not normal in a small sample. Unless one in
# twenty rows carries it, it counts if at least this many rows of the smallest sample are expected to.
OFTEN, LEAST_ROWS = 20.0, 20

# Up to this many pairs of columns of numbers are compared, too. What a row adds to a correlation is cut at this many
# standard deviations, so that no row is far larger than all other features.
MOST_PAIRS, CUT = 128, 12.0

# A part of an array of points: positions in nested tuples of arrays, and then the numbers of its columns.
Part = tuple[tuple[int, ...], tuple[int, ...]]


class RankFeatures(Features):
    """The scores of `Scores` as functions of a single row, with ranks relative to a sample.

    Attributes: `knots` (quantiles of columns of numbers and, last, of the norms of rows), `codes` (labels), `middle`
    and `deviation` (means and scaled standard deviations of raw scores in the sample), `kept` (the scores that vary
    there), `shares` (logarithms), `tails` (mean fourth powers of standardised scores), `numbers` (where columns of
    numbers lie), `labels` (where each column of labels lies, and how many of its labels have scores), `pairs` (means
    and standard deviations of normal scores, (2, d); pairs of these columns, (2, p); and half the correlation of each,
    and the mean and standard deviation of what a row adds to it, (3, p)), `owners` (the column of each kept score;
    empty for norms and pairs).
    """

    kernel: Kernel
    knots: Any
    codes: Any
    middle: Any
    deviation: Any
    kept: Any
    shares: Any
    tails: Any
    pairs: Any
    numbers: tuple[Part, ...] = eqx.field(static=True)
    labels: tuple[tuple[Part, int], ...] = eqx.field(static=True)
    owners: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(
        cls, kernel: Kernel, sample: Points, names: Sequence[str] = (), widths: Mapping[str, int] | None = None
    ) -> "RankFeatures | None":
        """The features from a sample of rows; None if there are fewer than two columns, or too many."""
        if not names and in_columns(sample):
            names = [str(j) for j in range(sample.shape[1])]
        named = places_of_columns(kernel.domain, sample, names, widths)
        places = [each[0] for each in named.values()]
        numbers, labels = tuple(_of_numbers(sample, places)), tuple(_of_labels(sample, places))
        d, n = sum(len(columns) for _, columns in numbers), count(sample)
        each = len(OF_NUMBERS) if len(OF_NUMBERS) * d < MOST_SCORES else 2
        most = min((MOST_SCORES - each * d) // max(len(labels), 1), MOST_LABELS)
        if d + len(labels) < 2 or most < 1:
            return None
        alike = (1 - COMMON) / (d + len(labels))
        knots, middle, deviation, tails, shares, kept = (np.zeros(0) for _ in range(6))
        normal: Any = np.zeros((1, 0))
        pairs = _pairs_of(normal)
        if numbers:
            values = _numbers_at(np, sample, numbers)
            places = (np.arange(QUANTILES) + 0.5) / QUANTILES
            knots = np.quantile(values, places, axis=0, method="inverted_cdf").T
            some = values[:: -(-n // MEASURED)]
            u = np.column_stack([_midranks(np, *pair) for pair in zip(knots, some.T, strict=True)])
            normal = host_ndtri(u)
            sizes = np.sum(normal**2, axis=1)
            knots = np.concatenate([knots, np.quantile(sizes, places)[None]])
            width = host_ndtri(_midranks(np, knots[-1], sizes))
            scores = np.column_stack([raw_scores(u, normal, np).reshape(len(u), -1), width])
            middle, deviation = scores.mean(axis=0), scores.std(axis=0)
            tails = np.mean((scores - middle) ** 4, axis=0) / np.maximum(deviation, LEAST_SPREAD) ** 4
            shares = np.append(np.tile(alike * np.array(OF_NUMBERS), d), COMMON)
            of_column = np.append(np.tile(np.arange(len(OF_NUMBERS)), d), 0)
            kept = np.where(of_column < each, deviation, 0.0)
            pairs = _pairs_of(normal)
        codes = [_most_frequent(leaf_at(sample, _place(part)), most) for part in labels]
        for _, often in codes:
            middle, shares = np.append(middle, often), np.append(shares, np.full(len(often), alike / len(often)))
            spread = np.sqrt(often * (1 - often))
            tails = np.append(tails, (1 - 3 * spread**2) / np.maximum(spread, LEAST_SPREAD) ** 2)
            # A rare label would be far larger than all other features.
            kept, deviation = np.append(kept, spread), np.append(deviation, np.maximum(spread, SIZE))
        name_of = {where: name for name, (place, *_) in named.items() for where in _coordinates(sample, place)}
        owners = [name_of[path, j] for path, columns in numbers for j in columns for _ in OF_NUMBERS]
        owners += [""] * bool(numbers)
        owners += [name_of[path, j] for (path, (j,)), (_, often) in zip(labels, codes, strict=True) for _ in often]
        if number := pairs[1].shape[1]:
            owners += [""] * number
            added = _added(np, normal, *pairs)
            middle, deviation = np.append(middle, added.mean(axis=0)), np.append(deviation, added.std(axis=0))
            tails, shares = np.append(tails, np.mean(added**4, axis=0)), np.append(shares, np.full(number, 1 / number))
            kept = np.append(kept, added.std(axis=0))
        kept = np.flatnonzero(kept > LEAST_SPREAD)
        known = np.concatenate([np.zeros((0, 2), np.int32), *(words for words, _ in codes)])
        by = [array[kept] for array in (middle, deviation / SIZE, np.log(shares), tails)]
        counted = tuple((part, len(often)) for part, (_, often) in zip(labels, codes, strict=True))
        of_kept = tuple(owners[k] for k in kept)
        return cls(kernel, knots, known, by[0], by[1], kept, by[2], by[3], pairs, numbers, counted, of_kept)

    def transform(self, x: Points) -> jax.Array:
        """Scores of rows, (n, r): pure and traceable."""
        parts, start, normal = [], 0, None
        if self.numbers:
            u = _ranks(self.knots[:-1], _numbers_at(jnp, x, self.numbers))
            normal = ndtri(u)
            width = ndtri(_ranks(self.knots[-1:], jnp.sum(normal**2, axis=1, keepdims=True)))
            parts += [raw_scores(u, normal, jnp).reshape(len(u), -1), width]
        for part, number in self.labels:
            own = leaf_at(x, _place(part))
            parts.append(jnp.all(own == self.codes[None, start : start + number], axis=2).astype(self.middle.dtype))
            start += number
        if self.pairs[1].shape[1]:
            parts.append(_added(jnp, normal, *self.pairs))
        return (jnp.concatenate(parts, axis=1)[:, self.kept] - self.middle) / self.deviation

    def check(self, points: Points, argument: str) -> None:
        """Check points as the kernel does."""

    @property
    def size(self) -> int:
        """The number of scores."""
        return len(self.kept)

    def judged(self, kernels: Permuted, squares: np.ndarray, smallest: int) -> Permuted:
        """Combine the evidence of kernels and of columns; `squares` are those of standardised sums of scores, and
        `smallest` is the number of rows of the smallest sample.
        """
        often = self.tails * LEAST_ROWS <= smallest
        of_pairs = np.arange(len(self.kept)) >= len(self.kept) - self.pairs[1].shape[1]
        used = ((self.tails <= OFTEN) | often) & ~of_pairs
        if not used.any():
            return kernels
        number, each_pair = sum(len(columns) for _, columns in self.numbers) + len(self.labels), of_pairs & often
        shares, pairs = self.shares[used], squares[:, each_pair]
        return judged(kernels, None, squares[:, used], shares, lambda part: part, number, pairs)[0]

    def of_each(self, squares: np.ndarray, smallest: int) -> dict[str, float]:
        """A p-value for each column that varies, corrected for their number, from the arguments of `judged`; 1 if too
        few rows carry its scores.
        """
        used, owners = (self.tails <= OFTEN) | (self.tails * LEAST_ROWS <= smallest), np.array(self.owners)
        parts = {name: used & (owners == name) for name in dict.fromkeys(self.owners) if name}
        tested = {name: part for name, part in parts.items() if part.any()}
        values = [soft_maximum(squares[:, part], self.shares[part], lambda some: some)[0] for part in tested.values()]
        found = stepped_down(np.stack(values, axis=1)).tolist() if values else []
        return dict.fromkeys(parts, 1.0) | dict(zip(tested, found, strict=True))


def with_columns(features: Concatenated, samples: Samples) -> Concatenated:
    """Features of kernels followed by those of single columns, for rows of two or more columns of numbers or labels."""
    if any_sparse(samples.pooled):
        return features
    kernel = features.members[0].kernel
    ranks = RankFeatures.of(kernel, samples.pooled, columns_of(samples), samples.widths)
    if ranks is None:
        return features
    kernels = (*(member.kernel for member in features.members), ranks.kernel)
    return Concatenated(Sum(kernels), (*features.members, ranks))


def without_columns(features: object) -> tuple[Any, RankFeatures | None]:
    """The features of kernels alone, and those of single columns if there are any."""
    members = features.members if isinstance(features, Concatenated) else ()
    if not members or not isinstance(members[-1], RankFeatures):
        return features, None
    kernels = tuple(member.kernel for member in members[:-1])
    return Concatenated(Sum(kernels), members[:-1]), members[-1]


def _coordinates(points: Points, place: Place) -> list[tuple[tuple[int, ...], int]]:
    """Each coordinate of a column: the position of its array, and its number there."""
    leaf = leaf_at(points, Place(place.path, None))
    return [(place.path, j) for j in range(leaf.shape[1])[place.coordinates or slice(None)]]


def _of_numbers(points: Points, places: Sequence[Place]) -> Iterator[Part]:
    """The columns of numbers of each array that vary."""
    found: dict[tuple[int, ...], list[int]] = {}
    for path, part in places:
        leaf = leaf_at(points, Place(path, None))
        if leaf.ndim == 2 and holds_floats(leaf):
            found.setdefault(path, []).extend(j for j in range(leaf.shape[1])[part or slice(None)] if _varies(leaf, j))
    return ((path, tuple(columns)) for path, columns in found.items() if columns)


def _of_labels(points: Points, places: Sequence[Place]) -> Iterator[Part]:
    """Each column of labels that varies."""
    for path, part in places:
        leaf = leaf_at(points, Place(path, None))
        if are_codes(leaf):
            columns = range(leaf.shape[1])[part or slice(None)]
            yield from ((path, (j,)) for j in columns if _varies(leaf, j))


def _varies(leaf: np.ndarray, column: int) -> bool:
    """Whether a column has more than one value."""
    return bool((leaf[:, column] != leaf[:1, column]).any())


def _place(part: Part) -> Place:
    """A part whose columns lie side by side, as a place."""
    path, columns = part
    return Place(path, slice(columns[0], columns[-1] + 1))


def _numbers_at(library: ModuleType, points: Points, numbers: Sequence[Part]) -> Any:
    """All columns of numbers, (n, d)."""
    parts = []
    for path, columns in numbers:
        leaf = leaf_at(points, Place(path, None))
        parts.append(leaf if columns == tuple(range(leaf.shape[1])) else leaf[:, np.array(columns)])
    return parts[0] if len(parts) == 1 else library.concatenate(parts, axis=1)


def _most_frequent(codes: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent labels of a column, as codes (k, 2), and their shares (k,)."""
    _, first, counts = np.unique(as_whole(codes)[:, 0], return_index=True, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:most]
    return codes[first[often], 0], counts[often] / len(codes)


def _pairs_of(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each pair of columns of normal scores, as `RankFeatures.pairs`; none if pairs are very many."""
    ends = np.stack([normal.mean(axis=0), np.maximum(normal.std(axis=0), LEAST_SPREAD)])
    places = np.stack(np.triu_indices(normal.shape[1], 1))
    places = places if places.shape[1] <= MOST_PAIRS else places[:, :0]
    z = (normal - ends[0]) / ends[1]
    half = np.mean(z[:, places[0]] * z[:, places[1]], axis=0) / 2
    as_they_are = np.stack([half, np.zeros_like(half), np.ones_like(half)])
    added = _added(np, normal, ends, places, as_they_are, np.inf)
    facts = np.stack([half, added.mean(axis=0), added.std(axis=0)])
    varies = facts[2] > LEAST_SPREAD
    return ends, places[:, varies], facts[:, varies]


def _added(library: ModuleType, normal: Any, ends: Any, places: Any, facts: Any, cut: float = CUT) -> Any:
    """What each row adds to the correlations of pairs, as `Scores.each_pair`, (n, p)."""
    z = (normal - ends[0]) / ends[1]
    x, y = z[:, places[0]], z[:, places[1]]
    return library.clip((x * y - facts[0] * (x**2 + y**2) - facts[1]) / facts[2], -cut, cut)


def _ranks(knots: Any, x: Any) -> Any:
    """The ranks in each column, (n, d)."""
    of_column = partial(_midranks, jnp)
    return jax.vmap(of_column, in_axes=(0, 1), out_axes=1)(knots, x).astype(x.dtype)


def _midranks(library: ModuleType, quantiles: Array, values: Array) -> Any:
    """The shares of quantiles below each value, with ties counted half, and neither 0 nor 1."""
    below, upto = (library.searchsorted(quantiles, values, side=side) for side in ("left", "right"))
    return library.clip((below + upto) / (2 * QUANTILES), 0.5 / QUANTILES, 1 - 0.5 / QUANTILES)
