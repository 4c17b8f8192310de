"""How large is the difference between samples?"""

from collections.abc import Mapping, Sequence
from typing import Any

from meanmap.core.door import Door
from meanmap.core.rng import Rng
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.tables.doubts import for_clusters
from meanmap.core.tables.indices import check_order_beside
from meanmap.core.tables.schema import admitted
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import kept_columns
from meanmap.stats.effects.arranged import arranged, cells_of, doubts_of, says_little, tails_of, tails_of_other
from meanmap.stats.effects.effect import Effect
from meanmap.stats.effects.groups import Difference, difference_of
from meanmap.stats.result import Interval
from meanmap.stats.samples.comparing import are_tables, differences_of_all, mostly_one_value
from meanmap.stats.samples.differences import Differences
from meanmap.stats.samples.own_rows import OwnRows, own_rows
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.several import named, several_samples
from meanmap.stats.samples.two_sample import two_samples
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.shown import Shown
from meanmap.stats.texts import read_texts

__all__ = ["k_sample_effect", "two_sample_effect"]

HEAVY = (
    "So the interval of the shift starts at 0: use those of distance and share, or take logarithms or ranks of the "
    "columns with heavy tails."
)
HIGH = "the interval of the shift starts too high. Use those of distance and share."


@one_blas_thread()
@own_words
def two_sample_effect(
    x: Data,
    y: Data = None,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    confidence: float = 0.95,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """The distance between the distributions of two samples in several units, with confidence intervals.

    Parameters
    ----------
    x, y : points
        As for `two_sample_test`; shifts are in standard deviations of `x`.
    by : str, optional
        Without `y`: the column of the table `x` whose values define the samples, as in `two_sample_test`.
    within, clusters, weights : as for `two_sample_test`
        The design: samples are compared within strata, rows of a cluster may be dependent, and means are weighted.
    kernel, scale, missing, kinds : as for `two_sample_test`
        With several kernels, as by default, their mean is used.
    confidence : float
        The confidence level of the intervals: coverage is at least this.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks for more than 1000 points in all, and the rows that are shifted.

    Returns
    -------
    Effect
        The differences of all columns come first, as in `two_sample_test`, within the same strata or clusters: means,
        shares, and standard deviations that differ. Then distance (MMD), share of rows that would have to change, and
        the shift of all columns with the same distance. The shift has no sign and measures any difference, so it is
        large if spreads differ although means are equal. Standard deviations say little about a column that is mostly
        zeros: if more than half of the rows have one number in a column, the differences include the share of this
        number and the mean of the other rows.

    Notes
    -----
    The interval of the distance contains all values that a test does not reject. The difference of two mean embeddings
    is asymptotically normal about its true value, with a covariance that is estimated from the samples. For each
    distance the squared norm has the longest tails if the true difference points along the first eigenvector of that
    covariance, and this distribution is used for the test. Coverage is therefore at least the confidence level, at zero
    and far away from it. At zero the statistic is a sum of chi-squares, and the interval starts at 0 with probability 1
    − (1 − confidence)/2; far away the statistic is normal. Intervals are as short as with the true direction if that is
    the first eigenvector, as it mostly is for a shift. Normality of means is asymptotic: samples of 50 were enough on
    the problems of the tests. Zero is excluded only if a test of equal distributions also rejects it at (1 −
    confidence)/2: a permutation test for up to 1000 points and, for any number of points, with strata, clusters or
    weights; otherwise a test with the covariance of all rows together. This is because a sample may have no row with a
    rare value, and its observed variation is then too small.

    The share and the shift are the distance in other units. The distance of a shift by s standard deviations σ is the
    square root of E[k(x, x′) + k(x + sσ, x′ + sσ) − 2 k(x, x′ + sσ)] for independent x and x′, estimated by a mean over
    pairs of different rows of the first sample. The interval of the shift includes the uncertainty of this mean and of
    the standard deviations. Tails beyond the observed rows make standard deviations larger than they look: fits of t
    distributions and generalised Pareto tails estimate by how much. If both give an infinite standard deviation a
    probability above one in forty, the rows do not determine it: the interval starts at 0, and a warning names the
    column and what to use instead. This happens in three of four samples of one column from a t distribution with 2.2
    degrees of freedom, and in nearly all from a lognormal one with σ = 1.5. With 100 rows it happens in about half of
    all samples from exponential distributions and t distributions with 3 degrees of freedom, and in one of six with 5.
    With 500 rows it hardly ever happens except for 3 degrees of freedom, and for normal distributions it never does. If
    the rows of `y` do not determine the standard deviation although those of `x` do, a warning says that the interval
    starts too high if both samples have such tails. No bound holds for all distributions, such as those with one row in
    a million far away.

    Within strata the difference is Σ_s a_s (μ_1s − μ_2s), a_s ∝ N_1s N_2s / N_s, as in the test, over the strata of
    both samples. Its variance is estimated from independent rows, or whole clusters, within strata. If strata have one
    row or cluster of each sample, as pairs do, it is estimated from the variation between strata (a single such stratum
    is left out, with a warning). Numbers are not centred within strata. The effective sample size of weighted rows and
    clusters is (Σ w)² / Σ w²: below 50 in a sample there is a warning, and below 5 an error.

    The cost is O(N³) up to 1000 points in all. Beyond, features of 256 landmarks are used, in one pass, or with
    `within`, `clusters` or `weights` in memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> effect = two_sample_effect(rng.normal(size=(300, 2)), rng.normal(0.5, 1.0, size=(300, 2)), rng=0)
    >>> effect.shift.low < 0.5 < effect.shift.high
    True
    """
    probability(confidence)
    random = Rng.of(rng)
    check_order_beside((x, y), ("x", "y"), within=within, clusters=clusters, weights=weights)
    came = [x, y] if by is None else [x]
    (x, y), names, told = two_samples(x, y, by, missing, kinds, kept_columns(kernel, within, clusters, weights))
    (x, y), design, heard = arranged((x, y), names, (within, clusters, weights), missing, by)
    read, more = read_texts((x, y), names, kernel, kinds)
    with Door() as door:
        samples = read_samples(read, names, kernel, random.generator, door, scale)
        own = own_rows(came, names, missing, kinds, by, (within, clusters, weights))
        columns = _by_column((x, y), names, confidence, design, own)
        told = (*for_clusters(told, clusters is not None), *heard, *more, *says_little(columns))
        cells = cells_of(samples.sizes, names, design)
        found = difference_of(samples, random.generator, door, cells)
        shift = None if found.shifts is None else found.as_shift(confidence)
    method = f"difference between {names[0]} and {names[1]}"
    told = (*told, *samples.doubts, *doubts_of(found, samples, cells), *tails_of(found, samples, HEAVY))
    told += tails_of_other(found, samples, names, HIGH)
    shown = Shown.of((x, y), names, False, [each.column for each in columns], own.columns)
    return _effect(found, confidence, method, samples.sizes, told, shown, shift, columns)


@one_blas_thread()
@own_words
def k_sample_effect(
    samples: Data,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    confidence: float = 0.95,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """The distance between the distributions of several samples, with confidence intervals.

    The distance is the square root of Σ_g π_g ‖μ_g − μ̄‖², with the shares π_g of the samples and the embedding μ̄ of
    all rows.

    Parameters
    ----------
    samples, by, kernel, scale, missing, kinds : as for `k_sample_test`
        With several kernels, as by default, their mean is used.
    within, clusters, weights : as for `two_sample_effect`
        Within strata μ_g − μ̄ is Σ_s N_gs/N_g (μ_gs − μ_s).
    confidence : float
        The confidence level of the intervals: coverage is at least this, as in `two_sample_effect`.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks for more than 1000 points in all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> same = k_sample_effect([rng.normal(size=50) for _ in range(3)], rng=0)
    >>> same.distance.low
    0.0
    """
    probability(confidence)
    random = Rng.of(rng)
    keeps = kept_columns(kernel, within, clusters, weights)
    if by is None:
        names, listed = named(samples)
        check_order_beside(listed, names, within=within, clusters=clusters, weights=weights)
    names, listed, told = several_samples(samples, by, missing, kinds, keeps)
    if by is None:
        listed, more = admitted(listed, names, missing, kinds, least=LEAST_POINTS)
        told += more
    listed, design, heard = arranged(listed, names, (within, clusters, weights), missing, by)
    shown = Shown.of(listed, names, paired=False)
    listed, more = read_texts(listed, names, kernel, kinds)
    told = (*for_clusters(told, clusters is not None), *heard, *more)
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        cells = cells_of(read.sizes, names, design)
        found = difference_of(read, random.generator, door, cells, moved=False)
    told = (*told, *read.doubts, *doubts_of(found, read, cells))
    return _effect(found, confidence, f"difference between {len(names)} samples", read.sizes, told, shown)


def _by_column(
    samples: Sequence[Any],
    names: Sequence[str],
    confidence: float,
    design: Exchange | None,
    own: OwnRows,
) -> Differences:
    """The differences of all columns; for wide arrays, of columns in which most rows have one number."""
    first, second = map(str, names)
    found = differences_of_all({first: samples[0], second: samples[1]}, confidence, design, own)
    if found or design is not None or are_tables(samples):
        return found
    return mostly_one_value(samples[0], samples[1], (first, second), confidence)


def _effect(
    found: Difference,
    confidence: float,
    method: str,
    sizes: tuple[int, ...],
    warnings: tuple[str, ...],
    shown: Shown | None,
    shift: Interval | None = None,
    columns: Differences | None = None,
) -> Effect:
    distance = Interval(found.law.estimate, *found.interval(confidence))
    return Effect(
        distance,
        Effect.scaled(distance, 1 / found.reach, 1.0),
        shift,
        None,
        found.kernel,
        confidence,
        method,
        sizes,
        warnings,
        columns or Differences(),
        shown,
    )
