"""How large is the difference between samples?"""

from collections.abc import Mapping
from typing import Any

from meanmap.core.door import Door
from meanmap.core.rng import Rng
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.schema import admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.stats.effects.arranged import arranged, cells_of, doubts_of, tails_of, tails_of_other
from meanmap.stats.effects.effect import Effect
from meanmap.stats.effects.groups import Difference, difference_of
from meanmap.stats.result import Interval
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.several import several_samples
from meanmap.stats.samples.two_sample import two_samples
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.texts import read_texts

__all__ = ["k_sample_effect", "two_sample_effect"]

HEAVY = (
    "So the interval of the shift begins at 0: read `distance` and `share`, or pass logarithms or ranks of what has "
    "these tails."
)
HIGH = "the interval of the shift begins too high. Read `distance` and `share`."


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
    level: float = 0.95,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """How far apart the distributions of two samples are, with confidence intervals.

    Parameters
    ----------
    x, y : points
        As for [`two_sample_test`][]; a shift is that of `x`.
    by : str, optional
        Without `y`: the column of the table `x` whose values tell the samples apart.
    within, clusters, weights : as for `two_sample_test`
        Which rows belong together, and how much each counts: samples are compared within strata, rows of a cluster vary
        together, and means are those of weighted rows.
    kernel, scale, missing, kinds : as for `two_sample_test`
        Of several kernels, as by default, their mean.
    level : float
        How often intervals cover, at least.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks for more than 1200 points in all, and the rows that are moved.

    Returns
    -------
    Effect
        Distance (MMD), share of rows that would have to change, and the shift of all columns that amounts to as much.

    Notes
    -----
    The interval of the distance holds all values that a test does not reject. The difference of two mean embeddings is
    normal about its true value, with a covariance that the samples show; for each distance its squared norm has the
    longest tails if the true difference points along the first eigenvector of that covariance, and that law is
    tested. So intervals cover at their level or more, at zero (where the law is a sum of chi-squares, and the interval
    begins at 0 with probability 1 − (1 − level)/2) as far away from it (where it is normal), and they are as short as
    those of the right direction if that is the first, as it mostly is for a shift. Normal laws of means are limits:
    samples of 50 were enough on the problems of the tests. Zero is excluded only if a test of equal laws rejects it at
    (1 − level)/2, too: by exchanged rows up to 1200 points, and whatever their number by exchanges within strata, of
    clusters and of weighted rows; of others by the covariance of all rows together. What is rare may be in no row of a
    sample, which then says too little variation.

    The share and the shift are the distance in other units. What a shift by standard deviations σ amounts to is the
    root of E[k(x, x′) + k(x + sσ, x′ + sσ) − 2 k(x, x′ + sσ)] for independent x and x′, a mean over pairs of different
    rows of the first sample. How sure that is, and how sure the standard deviations are, is in the interval of the
    shift. Tails that the rows have hardly reached make these larger than they look: t laws and generalised Pareto tails
    say by how much. Where both give more than one chance in forty to an infinite one, the rows do not say what a
    standard deviation is: the interval begins at 0, and a warning names the column and what to read or pass instead.
    That is so of three of four samples of one column of a t law of 2.2 degrees of freedom, and of nearly all lognormal
    ones of σ = 1.5; of exponential laws and t laws of 3 in about half of all samples of 100 rows, of t laws of 5 in one
    of six, with 500 rows hardly ever but for the t law of 3; of normal laws in none. Where only the rows of `y` leave
    that open, a warning says that the interval begins too high if both samples have such tails. No bound holds for all
    laws, such as those of which one row in a million is far away.

    Within strata the difference is Σ_s a_s (μ_1s − μ_2s), a_s ∝ N_1s N_2s / N_s, as in the test, for the strata that
    are there. It varies as independent rows do within strata, or whole clusters; where strata have one row or cluster
    of a sample, such as of pairs, as strata do (a single one of these is left out, which a warning says). Numbers are
    not measured from the mean of their stratum. Rows and clusters of different weight count as (Σ w)² / Σ w² of one
    weight: fewer than 50 in a sample get a warning, and fewer than 5 are refused.

    O(N³) up to 1200 points in all; beyond, features of 256 landmarks in one pass, or with `within`, `clusters`
    or `weights` in memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> effect = two_sample_effect(rng.normal(size=(300, 2)), rng.normal(0.5, 1.0, size=(300, 2)), rng=0)
    >>> effect.shift.low < 0.5 < effect.shift.high
    True
    """
    probability(level, "level")
    random = Rng.of(rng)
    (x, y), names, told = two_samples(x, y, by, missing, kinds)
    (x, y), design = arranged((x, y), names, (within, clusters, weights), missing, by)
    told += alike_in_order((x, y), names) if clusters is None and within is None else ()
    (x, y), heard = read_texts((x, y), names, kernel, kinds)
    told += heard
    with Door() as door:
        samples = read_samples((x, y), names, kernel, random.generator, door, scale)
        cells = cells_of(samples.sizes, names, design)
        found = difference_of(samples, random.generator, door, cells)
        shift = None if found.shifts is None else found.as_shift(level)
    method = f"difference of {names[0]} and {names[1]}"
    told = (*told, *samples.doubts, *doubts_of(found, samples, cells), *tails_of(found, samples, HEAVY))
    told += tails_of_other(found, samples, names, HIGH)
    return _effect(found, level, method, samples.sizes, told, shift)


@own_words
def k_sample_effect(
    samples: Data,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    level: float = 0.95,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """How far apart the distributions of several samples are, with confidence intervals.

    The distance is the root of Σ_g π_g ‖μ_g − μ̄‖², with the shares π_g of the samples and the embedding μ̄ of all rows.

    Parameters
    ----------
    samples, by, kernel, scale, missing, kinds : as for `k_sample_test`
        Of several kernels, as by default, their mean.
    within, clusters, weights : as for [`two_sample_effect`][]
        Within strata μ_g − μ̄ is Σ_s N_gs/N_g (μ_gs − μ_s).
    level : float
        How often intervals cover, at least: see [`two_sample_effect`][].
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks for more than 1200 points in all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> same = k_sample_effect([rng.normal(size=50) for _ in range(3)], rng=0)
    >>> same.distance.low
    0.0
    """
    probability(level, "level")
    random = Rng.of(rng)
    names, listed, told = several_samples(samples, by, missing, kinds)
    if by is None:
        listed, told = admitted(listed, names, missing, kinds, least=LEAST_POINTS)
    listed, design = arranged(listed, names, (within, clusters, weights), missing, by)
    told += alike_in_order(listed, names) if clusters is None and within is None else ()
    listed, heard = read_texts(listed, names, kernel, kinds)
    told += heard
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        cells = cells_of(read.sizes, names, design)
        found = difference_of(read, random.generator, door, cells, moved=False)
    told = (*told, *read.doubts, *doubts_of(found, read, cells))
    return _effect(found, level, f"spread of {len(names)} samples", read.sizes, told)


def _effect(
    found: Difference,
    level: float,
    method: str,
    sizes: tuple[int, ...],
    warnings: tuple[str, ...],
    shift: Interval | None = None,
) -> Effect:
    distance = Interval(found.law.estimate, *found.interval(level))
    return Effect(
        distance,
        Effect.scaled(distance, 1 / found.reach, 1.0),
        shift,
        None,
        found.kernel,
        level,
        method,
        sizes,
        warnings,
    )
