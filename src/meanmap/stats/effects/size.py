"""How large is the difference between samples?"""

from collections.abc import Mapping
from typing import Any

from meanmap.core.door import Door
from meanmap.core.rng import Rng
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.stats.effects.effect import Effect, doubt_about_mean
from meanmap.stats.effects.groups import Difference, difference_of
from meanmap.stats.result import Interval
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.several import several_samples
from meanmap.stats.samples.two_sample import two_samples
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.texts import read_texts

__all__ = ["k_sample_effect", "two_sample_effect"]


@own_words
def two_sample_effect(
    x: Data,
    y: Data = None,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
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
        As for [`two_sample_test`][]; `x` is what a shift is told of.
    by : str, optional
        Without `y`: the column of the table `x` whose values tell the samples apart.
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
    samples of 50 were enough on the problems of the tests. The share and the shift are the distance in other units;
    that the unit itself is estimated is not in the interval.

    O(N³) up to 1200 points in all; beyond, features of 256 landmarks (64 of each of several kernels) in one pass.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> effect = two_sample_effect(rng.normal(size=(300, 2)), rng.normal(0.5, 1.0, size=(300, 2)), rng=0)
    >>> effect.shift.low < 0.5 < effect.shift.high
    True
    """
    probability(level)
    random = Rng.of(rng)
    (x, y), names, told = two_samples(x, y, by, missing, kinds)
    (x, y), heard = read_texts((x, y), names, kernel, kinds)
    told += heard
    with Door() as door:
        samples = read_samples((x, y), names, kernel, random.generator, door, scale)
        found = difference_of(samples, random.generator, door)
        shift = None if found.of_shift is None else found.as_shift(_ends(found, level))
    method = f"difference of {names[0]} and {names[1]}"
    return _effect(found, level, method, samples.sizes, (*told, *samples.doubts), shift)


@own_words
def k_sample_effect(
    samples: Data,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
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
    probability(level)
    random = Rng.of(rng)
    names, listed, told = several_samples(samples, by, missing, kinds)
    if by is None:
        listed, told = admitted(listed, names, missing, kinds, least=LEAST_POINTS)
    listed, heard = read_texts(listed, names, kernel, kinds)
    told += heard
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        found = difference_of(read, random.generator, door)
    return _effect(found, level, f"spread of {len(names)} samples", read.sizes, (*told, *read.doubts))


def _ends(found: Difference, level: float) -> tuple[float, float, float]:
    return (found.law.estimate, *found.law.interval(level))


def _effect(
    found: Difference,
    level: float,
    method: str,
    sizes: tuple[int, ...],
    warnings: tuple[str, ...],
    shift: list[float] | None = None,
) -> Effect:
    distance = Interval(*_ends(found, level))
    return Effect(
        distance,
        Effect.scaled(distance, 1 / found.reach, 1.0),
        None if shift is None else Interval(*shift),
        None,
        found.kernel,
        level,
        method,
        sizes,
        (*warnings, *doubt_about_mean(*sizes)),
    )
