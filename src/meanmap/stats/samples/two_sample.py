"""Do two samples come from the same distribution?"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, ParameterError, ShapeError
from meanmap.core.language import in_few_words
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import in_columns
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.apart import without_ids
from meanmap.core.tables.assigned import Kept, without_units
from meanmap.core.tables.column import robust_scales
from meanmap.core.tables.labels_meant import written_in_two_ways
from meanmap.core.tables.schema import Schema, admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.embeddings.element import Embedding
from meanmap.embeddings.points import PointEmbedding
from meanmap.features.base import FeatureKernel
from meanmap.kernels.reading import is_flat
from meanmap.learning.default import WORDS, is_default, strange_kernel
from meanmap.stats.asked import Found
from meanmap.stats.collections import column_kernel
from meanmap.stats.designs.groups import grouped
from meanmap.stats.designs.reading import check_permuted
from meanmap.stats.encoding import deep_samples
from meanmap.stats.result import flat
from meanmap.stats.samples.blocks import block_null
from meanmap.stats.samples.compared import OfComparedSamples
from meanmap.stats.samples.exchanged import design_test
from meanmap.stats.samples.samples import Outcome, Samples, columns_of, read_samples
from meanmap.stats.samples.samples_plan import in_one_pass, is_long
from meanmap.stats.samples.two_sample_plan import TwoSamplePlan
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.samples.ways import choices, fitting, way
from meanmap.stats.settings import LEAST_POINTS, PERMUTED, WHOLE, check_choice, doubt_about_limit

__all__ = ["samples_called", "two_sample_test", "two_samples"]

# Above this many points in all a Gram matrix needs too much memory.
MOST_POINTS = 12_000
_names: ContextVar[tuple[str, str]] = ContextVar("names", default=("x", "y"))


@own_words
def two_sample_test(
    x: Data,
    y: Data = None,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    features: object = None,
    statistic: str = "auto",
    null: str = "auto",
    n_permutations: int = 1000,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TwoSampleResult:
    """Test whether two samples come from the same distribution, by the maximum mean discrepancy ‖μ_P − μ_Q‖.

    Parameters
    ----------
    x, y : points, or pieces of a sample
        n and m points, at least 5 of each. Columns with names are matched by name; a column must be of the same kind in
        both samples. Samples that do not fit in memory may be given as memory maps; Parquet files (a path, a folder, a
        pattern, a list) or a polars lazy frame; Dask arrays and frames, computed by their workers; or iterators of
        arrays or tables. With more than 20,000 rows in all they are compared by "features", as arrays are, and the
        p-value is the same bit for bit wherever the rows are stored (`plan`); for iterators, kernels and landmarks
        are chosen from the first 8192 rows, otherwise from random ones.
    by : str, optional
        Without `y`: the column of the table `x` whose values define the samples. Differences are those to the first
        one, a control group (control, baseline, placebo, reference) or else the first in sorted order. For another
        order pass categories of pandas in that order, or kinds={"arm": ["blue", "green"]}.
    within, clusters : column name, several, or array, optional
        Which rows are exchangeable. `within` gives strata (sites, batches, pairs): rows are permuted and samples
        compared within strata, so differences between strata have no effect. Rows of the same cluster (people, schools)
        stay together; an integer as `clusters` stands for blocks of that many consecutive rows of a series. The level
        is exact if the rows of a stratum, or its clusters, are exchangeable under the null hypothesis. An array needs a
        value for each row of x, then of y. An `Exchange` object may be passed as `within` instead.
    weights : column name or array, optional
        The weight of each row in the means. Weights stay with their rows, so the level is exact if rows and their
        weights have the same joint distribution in both samples, as in one survey.
    features : callable, or object with `fit`, optional
        A representation that is compared instead of the rows: any function from a batch of rows (a slice of the array,
        list or table) to a vector for each, such as the penultimate layer of a network. An object with `fit(rows,
        labels)` is trained on half of the rows of each sample, and its `transform`, `decision_function` or
        `predict_proba` is compared on the others. The level holds for both. For data in memory.
    kernel : Kernel, Features, "median", "learned", "deep", a sequence of kernels, or None
        None, the default: for numbers, five Laplace kernels over the range of distances, whose statistics are fused
        into one (MMD-FUSE, Biggs et al. 2023), so that no scale has to be guessed; for labels and mixed tables their
        default kernel. With two columns or more, the ranks in each column and in each pair of columns are compared as
        well, so that a difference in one column of many is detected. With more than 20,000 rows, where the null is the
        limiting distribution, the ranks and labels in each column are compared, for 2 to 256 columns, but not pairs of
        columns. "median" is one RBF kernel at the median distance of the pooled sample, "learned" one whose
        lengthscale `learn_kernel` finds in the pooled sample without the labels, so that permutations stay exact; it is
        fused with the default kernels if the statistic allows several. "deep" is a network (Liu et al. 2020) trained on
        half of the rows of each sample and tested on the others, which keeps the level; for a few hundred numeric rows
        or more, in memory. A sequence of kernels is fused like the default.
    scale : bool
        Whether the default, median and learned kernels scale each numeric column by its median distance in the pooled
        sample, so that units do not matter. False keeps the units as they are: for columns that share a unit, such as
        coordinates, where this has more power against a change in one of them.
    missing : {"raise", "drop", "category"}, or list of codes
        What happens to missing values: an error; the rows are dropped, and a warning counts them by column; or missing
        labels form a label of their own. A list of codes for missing values, such as ["?", -999], drops rows with
        these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`. Columns of
        tables in memory that only identify the rows, as ids do, and dates or times of day as text are left out by
        the default kernels, with a warning, unless their kind is declared.
    statistic : {"auto", "unbiased", "biased", "features", "block", "linear"}
        "unbiased" and "biased" use full Gram matrices, without or with their diagonals; O((n + m)²). "features"
        compares means of Nyström features on landmarks drawn from the pooled sample, O(n + m): 512 landmarks, or 256
        with a limiting null distribution or more than 20,000 rows (64 for each of several kernels). "block" and
        "linear" are means over blocks of √n or 2 pairs, with one kernel; they have the least power (Zaremba et al.
        2013; Gretton et al. 2012, section 6). "auto" is "unbiased" up to 3000 points in all, then "features".
    null : {"auto", "permutation", "wild", "gamma", "spectral", "normal"}
        "permutation" and, for pairs (n = m), "wild" (random signs) keep the level exactly at every sample size. The
        others use the limiting distribution: weighted chi-squares ("spectral") or their gamma fit for "biased",
        weighted chi-squares for "features", and a normal distribution for "block" and "linear". "auto" is exact up to
        20,000 points, and uses the limit beyond.
    n_permutations : int
        The number of permutations, or of draws from the limiting distribution.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TwoSampleResult
        A TestResult with the witness μ_P − μ_Q, and the points and columns that drive the difference.

    Notes
    -----
    If only the mean or share of one column can differ, usual tests of each column with Bonferroni's correction find
    this more often: the test also looks for all other differences, at the same level together.

    Gretton et al. (2012). With one kernel the statistic estimates the square, ‖μ_P − μ_Q‖². All permutations are one
    matrix product, at a cost of O((n + m)² (d + B)) for each kernel, or O((n + m) r (d + B)) if r features approximate
    its Gram matrix to a certified millionth of its trace. With more than 1000 points, and more than 250 in both
    samples, rows are permuted in 1000 random units, and the unbiased statistics leave out pairs within units. The test
    stays exact, and permutations cost no more than for 1000 points. With `within`, `clusters` or `weights` the
    statistic is the squared norm of the mean difference within strata, minus its mean over all permutations; more than
    10,000 rows or clusters are permuted in random groups, each of equally many of one sample and stratum. If several
    kernels are fused, each is scaled by its spread over these. Unless the kernel is given, numbers are first centred
    within strata, so for pairs the differences are tested.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> r = two_sample_test(rng.normal(size=(60, 2)), rng.normal(1.0, 1.0, size=(50, 2)), rng=0)
    >>> r.reject(0.05), r.pvalue < 0.01
    (True, True)
    """
    check_choice(statistic, null, choices())
    asked = [x, y], (kernel,), (within, clusters, weights), n_permutations, missing, kinds, Rng.of(rng)
    own = {"by": by, "scale": scale, "features": features, "statistic": statistic, "null": null}
    return _TwoSamples(*asked, **own).answer()


@dataclass
class _TwoSamples(OfComparedSamples):
    """The two-sample test: the samples, and how they are compared."""

    statistic: str = "auto"
    null: str = "auto"

    def pick(self) -> None:
        own = [name for name in choices(exchanged=True) if name != "auto"]
        if self.designed and self.statistic in own:
            check_choice(self.statistic, self.null, choices(exchanged=True))
        elif self.designed:
            check_permuted(self.statistic, self.null, *own)
        if self.one_kernel and self.kernel is None:
            self.wanted = ("median",)
        if is_default(self.kernel) and self.kernel not in (None, "deep", *WORDS):
            raise strange_kernel(self.kernel, also="a list of kernels, ", words=(*WORDS, "deep"))
        x, y = self.parts
        self.parts, self.names, told = _picked(x, y, self.by, self.missing, self.kinds, self.keeps)
        self.tell(told)

    @property
    def one_kernel(self) -> bool:
        """Whether all methods that match the chosen statistic and null take a single kernel."""
        return all(each.one_kernel for each in fitting(self.statistic, self.null))

    @property
    def deep(self) -> bool:
        """Whether half of the rows train a network."""
        return is_default(self.kernel) and self.kernel == "deep"

    def in_one_pass(self) -> Found | None:
        if self.designed or self.features is not None or self.deep or not is_long(self.parts, self.names):
            return None
        if ways := [each for each in fitting(self.statistic, self.null) if each.of_sums]:
            made = in_one_pass(self, TwoSamplePlan)
            return self.compared(made and made[0]._found(made[1], self.n_draws, ways[0]), made and made[0].reading)
        if any(map(comes_in_pieces, self.parts)):
            raise ParameterError(
                "samples that come in pieces (iterators, Parquet files, collections of Dask, memory maps) of more than "
                f"{PERMUTED} rows are compared by statistic='features' with null='spectral', not {self.statistic!r} "
                f"with {self.null!r}: pass arrays for these."
            )
        return None

    def encode(self) -> None:
        if self.features is None:
            self.compare()
        super().encode()

    def read_texts(self) -> None:
        super().read_texts()
        if not self.deep:
            return
        if self.exchange is not None:
            raise ParameterError("kernel='deep' is for samples without within=, clusters= or weights=.")
        self.parts, kernel, told = deep_samples(self.parts, self.names, self.random.generator)
        self.wanted = (kernel,)
        self.tell(told)

    def compute(self, door: Door) -> Found:
        one, generator = self.one_kernel, self.random.generator
        samples = read_samples(self.parts, self.names, self.kernel, generator, door, self.scale, fusing=not one)
        if one and len(samples.kernels) > 1:
            asked = f"statistic={self.statistic!r} with null={self.null!r}"
            raise ParameterError(f"{asked} takes one kernel, not several.")
        exchange = self.exchange
        if exchange is None:
            chosen, told = way(*_automatic(samples, self.statistic, self.null, self.n_draws)), ()
            found, label = chosen.compute(samples, self.n_draws, generator, door), chosen.label(samples)
        elif self.statistic == "auto":
            found, told = design_test(samples, exchange, self.n_draws, generator, door)
            label = exchange.told("squared mean difference")
        else:
            chosen = next(each for each in fitting(self.statistic, self.null) if each.exchanges)
            told = exchange.doubts_of_labels(exchange.of_units(samples.groups))
            samples = replace(samples, exchange=exchange)
            found, label = chosen.compute(samples, self.n_draws, generator, door), exchange.told(chosen.label(samples))
        method = f"two-sample test{' of ' + ' and '.join(self.names) if self.by else ''}, {label}"
        told = (*told, *samples.doubts, *_warnings(found, self.n_draws, samples.sizes))
        more = {
            "witness": _witness(found, samples, self.parts[0]),
            "columns": columns_of(samples),
            "differences": self.differences,
            "whole": self.whole,
            "alone": found.alone,
            "widths": dict(samples.widths),
            "design": exchange,
            "shared": samples.kernels[found.strongest] if samples.by_columns else None,
        }
        seen = found.statistic, found.null, samples.kernel, method, samples.sizes
        return Found(*seen, told, TwoSampleResult, more)


@contextmanager
def samples_called(first: str, second: str) -> Iterator[None]:
    """A scope in which notes call the two samples by these names, instead of x and y."""
    before = _names.set((first, second))
    try:
        yield
    finally:
        _names.reset(before)


def two_samples(
    x: Data,
    y: Data,
    by: str | None,
    missing: str,
    kinds: Mapping[str, Any] | None,
    keeps: Kept | None = None,
) -> tuple[list[Any], Sequence[str], tuple[str, ...]]:
    """Two samples as passed or as the groups of one table, their names, and notes."""
    samples, names, told = _picked(x, y, by, missing, kinds, keeps)
    if by is None:
        samples, more = admitted(samples, names, missing, kinds, least=LEAST_POINTS)
        told += more
    return samples, names, told


def _picked(
    x: Data,
    y: Data,
    by: str | None,
    missing: str,
    kinds: Mapping[str, Any] | None,
    keeps: Kept | None = None,
) -> tuple[list[Any], Sequence[str], tuple[str, ...]]:
    """Two samples (missing values in pairs are handled later), their names, and notes. Columns that only number,
    name or date the rows are left out unless they are in `keeps`, or this is None.
    """
    if (y is None) == (by is None):
        raise ParameterError("pass two samples, or one table and by= with the column that defines its two groups.")
    if by is None:
        names = _names.get()
        if keeps is None:
            return [x, y], names, ()
        samples, told = without_ids([x, y], names, keeps.names, kinds)
        samples, heard = without_units(samples, names, keeps, kinds)
        return samples, names, (*told, *heard)
    groups, told = grouped(x, by, missing, kinds, keeps)
    if len(groups) > 2:
        labels = [name.removeprefix(f"{by}=") for name in groups]
        alike = "".join(f" The {note}" for note in written_in_two_ways(labels, f"column {by!r}", least=1))
        raise InputError(
            f"there are {len(groups)} groups by {by!r}; expected two: k_sample_test takes them all. They are "
            f"{in_few_words([*map(repr, labels)], 4)}.{alike}"
        )
    return list(groups.values()), tuple(groups), told


def _automatic(samples: Samples, statistic: str, null: str, n_draws: int) -> tuple[str, str]:
    """The statistic and the null distribution that "auto" chooses."""
    size = sum(samples.sizes)
    if statistic == "auto":
        known = [name for name, nulls in choices().items() if name != "auto" and null in nulls]
        large = size > WHOLE or any(isinstance(kernel, FeatureKernel) for kernel in samples.kernels)
        large = large or (null == "spectral" and len(samples.kernels) > 1)
        preferred = "features" if large else "biased" if null == "spectral" else "unbiased"
        statistic = preferred if null == "auto" or preferred in known else known[0]
    if statistic in ("unbiased", "biased") and size > MOST_POINTS:
        raise InputError(
            f"x and y have {size} points together, and whole Gram matrices are for at most {MOST_POINTS}: "
            "pass statistic='features' (or 'auto'), or draw a sample."
        )
    if null == "wild" and statistic in ("unbiased", "biased") and len(set(samples.sizes)) > 1:
        raise ShapeError(
            f"null='wild' exchanges pairs, so x and y need equal sizes, and have {samples.sizes[0]} and "
            f"{samples.sizes[1]} points: pass null='permutation'."
        )
    if null == "auto" and statistic == "features":
        null = "permutation" if size <= PERMUTED else "spectral"
    if null == "auto" and statistic in ("block", "linear"):
        null = block_null(samples.sizes, statistic, n_draws)
    return statistic, choices()[statistic][0] if null == "auto" else null


def _warnings(found: Outcome, n_permutations: int, sizes: tuple[int, ...]) -> tuple[str, ...]:
    law = found.null
    told = (*doubt_about_limit(law.exact, sizes), *flat(law, found.statistic))
    if law.exact and n_permutations < 100:
        return (*told, f"with {n_permutations} permutations no p-value can be below {1 / (n_permutations + 1):.2g}.")
    return told


def _witness(found: Outcome, samples: Samples, x: Data) -> Embedding:
    """The witness μ_P − μ_Q, under the kernel that detects it best."""
    schema = Schema.of_points(x, "x", brief=True)
    if found.difference is not None:
        return found.difference if schema is None else replace(found.difference, schema=schema)
    kernel = samples.kernels[found.strongest]
    if samples.scores is not None and found.column >= 0 and in_columns(samples.pooled) and not samples.widths:
        column = columns_of(samples).index(samples.scores.names[found.column])
        kernel = column_kernel(robust_scales(samples.pooled), column)
    n, m = samples.sizes
    weights = np.r_[np.full(n, 1 / n), np.full(m, -1 / m)]
    return PointEmbedding(kernel, samples.pooled, weights, is_flat(x, kernel), schema=schema)
