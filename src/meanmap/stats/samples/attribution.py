"""Which columns make samples differ: a test of each, with multiplicity correction, and the share of each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from meanmap.core.labels import are_codes, as_whole
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.tables.column import robust_scales
from meanmap.core.types import Points, Seed
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.stationary import Laplace
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.samples.all_rows import AllRows
from meanmap.stats.samples.exchanged import exchanged_forms
from meanmap.stats.samples.scores import LEAST_SPREAD, MOST_LABELS, Scores, grouped_forms, soft_maximum, stepped_down
from meanmap.stats.samples.shuffling import Place, leaf_at, places_of_columns
from meanmap.stats.samples.units import Forms
from meanmap.stats.settings import check_draws

__all__ = ["Attributed", "attributed", "gram_alone", "some_rows"]

# From larger samples this many points are drawn at random, enough to find the columns that contribute.
MOST_POINTS = 1000

# Products of scores with a smaller effective number of rows, such as those of a rare label, are left out. Their
# standard errors are too uncertain, and the label would be reported although another column differs.
LEAST_ROWS = 20


def some_rows(sizes: Sequence[int], generator: np.random.Generator) -> tuple[np.ndarray, tuple[int, ...]]:
    """At most 1000 rows of a pooled sample, as evenly from all samples as their sizes allow, and their numbers."""
    found, left = list(sizes), MOST_POINTS
    for done, k in enumerate(np.argsort(sizes, kind="stable")):
        found[k] = min(sizes[k], left // (len(sizes) - done))
        left -= found[k]
    starts = np.cumsum([0, *sizes])
    drawn = [np.sort(generator.choice(size, number, replace=False)) for size, number in zip(sizes, found, strict=True)]
    return np.concatenate([start + part for start, part in zip(starts, drawn, strict=False)]), tuple(found)


class Attributed(NamedTuple):
    """P-values of columns, each corrected for the number of columns: of the column's own distribution, and of its
    dependence on other columns, which is not always tested.
    """

    own: dict[str, float]
    dependence: dict[str, float]

    def merged(self) -> dict[str, float]:
        """One p-value for each column, twice the smaller one if there are two, the smallest first."""
        if not self.dependence:
            return _smallest_first(self.own)
        return _smallest_first({name: min(2 * min(p, self.dependence[name]), 1.0) for name, p in self.own.items()})


def attributed(
    domain: object,
    points: Points,
    columns: Sequence[str],
    widths: Mapping[str, int],
    sizes: Sequence[int],
    rng: Seed,
    n_permutations: int,
    design: Exchange | None = None,
    whole: AllRows | None = None,
) -> Attributed:
    """P-values for the columns of a pooled sample of complete rows, of which `whole` are all rows."""
    check_draws(n_permutations)
    generator = Rng.of(rng).generator
    scores = Scores.of(domain, points, columns, dict(widths), least=1)
    tested = Attributed({}, {})
    if scores is not None and design is not None:
        tested = _tested_under(scores, sizes, design, n_permutations, generator)
    elif scores is not None:
        chosen, _ = some_rows(sizes, generator)
        tested = _tested_columns(scores, sizes, chosen, n_permutations, generator, whole)
        labels = _labels_of(places_of_columns(domain, points, columns, widths), points, sizes, whole)
        tested = tested._replace(own=_with_counts(tested.own, labels, sizes))
    # A column may vary in all rows and be constant in the complete ones, in which dependences are tested.
    rest = dict.fromkeys(places_of_columns(domain, points, columns, widths), 1.0)
    return Attributed(rest | tested.own, rest | tested.dependence if tested.dependence else {})


def _labels_of(
    places: Mapping[str, Sequence[Place]], points: Points, sizes: Sequence[int], whole: AllRows | None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The labels of columns, as integers, and the samples of the rows that have one."""
    samples = np.repeat(np.arange(len(sizes)), sizes)
    if whole is None:
        leaves = {name: leaf_at(points, each[0]) for name, each in places.items()}
        return {name: (as_whole(leaf)[:, 0], samples) for name, leaf in leaves.items() if are_codes(leaf)}
    samples = np.repeat(np.arange(len(sizes)), whole.sizes)
    codes = {name: each for name, each in whole.columns.items() if np.issubdtype(each.dtype, np.integer)}
    return {name: (each[each >= 0], samples[each >= 0]) for name, each in codes.items()}


def _with_counts(
    own: Mapping[str, float], labels: Mapping[str, tuple[np.ndarray, np.ndarray]], sizes: Sequence[int]
) -> dict[str, float]:
    """P-values combined with those of the rows of each sample with each label, in columns of more labels than have
    scores, by a weighted Bonferroni correction: a new label among many has no score.
    """
    if not labels:
        return dict(own)
    from meanmap.stats.samples.drift_counts import SHARE_OF_COUNTS, smallest_of, smallest_of_counts

    counted = {}
    for name, (values, samples) in labels.items():
        found, codes = np.unique(values, return_inverse=True)
        if len(found) <= MOST_LABELS or name not in own:
            continue
        total = np.bincount(codes)
        parts = [codes[samples == g] for g in range(len(sizes))]
        inside = [np.bincount(part, minlength=len(found)) for part in parts]
        known = zip(inside, parts, strict=True)
        counted[name] = smallest_of([smallest_of_counts(each, total, len(part), len(codes)) for each, part in known])
    if not counted:
        return dict(own)
    of_counts = {name: len(counted) * pvalue / SHARE_OF_COUNTS for name, pvalue in counted.items()}
    return {name: min(p / (1 - SHARE_OF_COUNTS), of_counts.get(name, 1.0), 1.0) for name, p in own.items()}


def _tested_columns(
    scores: Scores,
    sizes: Sequence[int],
    pairs: np.ndarray,
    n_permutations: int,
    generator: np.random.Generator,
    whole: AllRows | None,
) -> Attributed:
    """P-values for each column, corrected for multiplicity: from the column's own ranks, in all rows that have it, and
    from its products with other columns among the rows `pairs`.

    Each compares a column with the maximum over all columns not rejected before it (step-down,
    Westfall & Young 1993, algorithm 2.8). This bounds the family-wise error rate for any differences in other columns.
    """
    samples = np.repeat(np.arange(len(sizes)), sizes)
    d = len(scores.names)
    if whole is None:
        own = _named(scores, _of_ranks(scores, grouped_forms(_exchanged(samples, n_permutations, generator), sizes)))
    else:
        own = whole.pvalues(n_permutations, generator)
    dependence: dict[str, float] = {}
    if d > 1:
        labels = _exchanged(samples[pairs], n_permutations, generator)
        main = scores.main[pairs] - scores.main[pairs].mean(axis=0)
        kept = _carried_by(main) >= LEAST_ROWS
        # Each of several samples is compared with all others; with two samples both comparisons are the same.
        each = range(len(sizes) if len(sizes) > 2 else 1)
        values = [_of_products(main[:, kept], scores.of_main[kept], labels == g, d) for g in each]
        dependence = _named(scores, stepped_down(np.max(values, axis=0)))
    return Attributed(own, dependence)


def _tested_under(
    scores: Scores, sizes: Sequence[int], design: Exchange, n_permutations: int, generator: np.random.Generator
) -> Attributed:
    """A p-value for each column from its own ranks, under the permutations of a design.

    Products of columns are left out, since their standard errors in each draw are those of independent rows.
    """
    groups = np.repeat(np.arange(len(sizes)), sizes)
    design = design.bundled(groups, generator)
    labels = design.of_units(groups)
    forms = exchanged_forms(design.labels(labels, n_permutations, generator), design)
    return Attributed(_named(scores, _of_ranks(scores, forms)), {})


def _named(scores: Scores, pvalues: np.ndarray) -> dict[str, float]:
    return dict(zip(scores.names, pvalues.tolist(), strict=True))


def _smallest_first(pvalues: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(pvalues.items(), key=lambda item: item[1]))


def _of_ranks(scores: Scores, forms: Forms) -> np.ndarray:
    """A corrected p-value for each column from the scores of its ranks."""
    own = []
    for j in track(range(len(scores.names)), "columns"):
        of_column = scores.columns == j
        own.append(soft_maximum(scores.matrix[:, of_column], np.log(scores.shares[of_column]), forms)[0])
    return stepped_down(np.stack(own, axis=1))


def _exchanged(samples: np.ndarray, n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """The sample of each row, (1 + B, N): in the data, then after permutations."""
    return Exchange.of(len(samples)).labels(samples.astype(np.int32), n_permutations, generator)


def _carried_by(main: np.ndarray) -> np.ndarray:
    """The effective number of rows of each score, (Σ s²)² / Σ s⁴: the number of its rows for a rare label, 0 for a
    constant.
    """
    squares = np.where(main.std(axis=0) > LEAST_SPREAD, main, 0.0) ** 2
    return squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), np.finfo(float).tiny)


def _of_products(main: np.ndarray, of_main: np.ndarray, z: np.ndarray, d: int) -> np.ndarray:
    """For each draw and column, the largest squared difference of its covariances with others, (1 + B, d).

    Differences are in units of the standard error in that draw (Chung & Romano 2013): if a column has a larger variance
    in one sample, products vary more there even if their means are equal.
    """
    n = z[0].sum(dtype=float)
    m, z = z.shape[1] - n, z.astype(float)
    found = np.zeros((len(z), d))
    means = z @ main / n  # means of the other sample are −n/m times as large
    for i in track(range(main.shape[1] - 1), "pairs of columns"):
        others = i + 1 + np.flatnonzero(of_main[i + 1 :] != of_main[i])
        if not len(others):
            continue
        products = main[:, [i]] * main[:, others]
        products -= products.mean(axis=0)
        squares = products**2
        x, xx = z @ products / n, z @ squares / n
        y, yy = -x * n / m, (squares.sum(axis=0) - n * xx) / m
        variance = (xx - x**2) / (n - 1) + (yy - y**2) / (m - 1)
        least = np.finfo(float).eps * squares.mean(axis=0) + np.finfo(float).tiny
        of_means = means[:, [i]] * means[:, others] * (1 - (n / m) ** 2)
        differences = (x - y - of_means) ** 2 / np.maximum(variance, least)
        for k, column in enumerate(of_main[others]):
            np.maximum(found[:, column], differences[:, k], out=found[:, column])
        here = of_main[i]
        np.maximum(found[:, here], differences.max(axis=1), out=found[:, here])
    return found


def gram_alone(points: Points, places: Sequence[Place]) -> np.ndarray | None:
    """The Gram matrix of one column; None unless the column has numbers or labels."""
    leaf = leaf_at(points, places[0])
    if leaf.ndim == 3:
        return (leaf[:, None] == leaf[None]).all(axis=(2, 3)).astype(float)
    if leaf.ndim != 2 or not np.issubdtype(leaf.dtype, np.floating):
        return None
    scales = robust_scales(leaf)
    return gram_matrix(Laplace(np.where(scales > 0, scales, 1.0)), leaf)
