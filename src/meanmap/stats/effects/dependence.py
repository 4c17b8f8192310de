"""How strong is the dependence between two variables?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.arrays import check_paired
from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.rng import Rng
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.tables.missing import rows_called
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.picked import kinds_of_picked, picked
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.wild import wild_notes
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import read_points
from meanmap.stats.effects.effect import Effect, doubt_about_mean
from meanmap.stats.effects.groups import averaged
from meanmap.stats.effects.zero import chance_of_dependence, excludes_zero
from meanmap.stats.independence.variables import constant, for_two, kernels_of
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.result import Interval
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.shown import Shown
from meanmap.stats.texts import texts_of_variables

__all__ = ["covariance_laws", "effect_of", "independence_effect"]

# Full Gram matrices and their eigenvalues are used; if there are more pairs than this, this many are drawn at random.
MOST_PAIRS = 1200
NAMES = ("x", "y")
# The consequence of serially dependent rows.
HARM = (
    "dependence is overestimated, and intervals are too short. Use the residuals of structure.prewhiten, or rows that "
    "lie far enough apart"
)


@one_blas_thread()
@own_words
def independence_effect(
    x: Data,
    y: Data,
    kernel: KernelLike = None,
    *,
    data: Data = None,
    kernel_x: KernelLike = None,
    kernel_y: KernelLike = None,
    confidence: float = 0.95,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """How strongly two variables depend on each other, with confidence intervals.

    Parameters
    ----------
    x, y, data : as for `independence_test`
        n pairs.
    kernel, kernel_x, kernel_y, missing, kinds : as for `independence_test`
        With several kernels for a variable, as by default, their mean is used.
    confidence : float
        The confidence level of the intervals: coverage is at least this.
    rng : None, int, numpy.random.Generator or JAX key
        Draws 1200 pairs if there are more.

    Returns
    -------
    Effect
        Distance (the root of HSIC), the share of pairs that would have to change for independence, and the correlation
        of features: the square root of HSIC over the norms of both covariance operators, which is 0 for independent
        variables and at most 1.

    Notes
    -----
    The empirical cross-covariance operator is asymptotically normal about the true one, with the covariance of the
    centred φ(x) ⊗ ψ(y); the interval of its norm is that of `two_sample_effect`, and for the same reason keeps its
    coverage if the variables are independent. Zero is excluded only if a permutation test also rejects it at (1 −
    confidence)/2: rare values of both variables may never occur together in a row, and the observed variation is then
    too small. For the correlation the operator is divided by unbiased norms of both covariance operators; the sampling
    error of these norms enters through the influence of each pair. The cost is O(n³), n ≤ 1200.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> effect = independence_effect(x, x + rng.normal(size=200), rng=0)
    >>> effect.correlation.low > 0.2
    True
    """
    probability(confidence)
    wanted = for_two(kernel, kernel_x, kernel_y)
    random = Rng.of(rng)
    if data is not None:
        kinds = kinds_of_picked(kinds, data, x, y)
        x, y = picked(data, x=x, y=y)
    came = x, y
    (x, y), told = admitted(came, NAMES, missing, kinds, paired=True, least=LEAST_POINTS)
    shown = Shown.of((x, y), NAMES, paired=True)
    told += alike_in_order((x, y), NAMES, HARM, paired=True)
    numbers = rows_called(came, (x, y), NAMES, missing)
    told += wild_notes((x, y), NAMES, kinds or (), apart=True, rows=numbers)
    (x, y), heard = texts_of_variables((x, y), NAMES, wanted, kinds)
    told += heard
    grams: list[np.ndarray] = []
    with Door() as door:
        kernels = [
            averaged(kernels_of(want, part, name, "several", random.generator))
            for part, want, name in zip((x, y), wanted, NAMES, strict=True)
        ]
        points = [read_points(*each, door) for each in zip(kernels, (x, y), NAMES, strict=True)]
        n, other = map(count, points)
        check_paired(n, other)
        chosen = np.sort(random.generator.choice(n, min(n, MOST_PAIRS), replace=False))
        for one, part, name in zip(kernels, points, NAMES, strict=True):
            grams.append(np.asarray(gram_matrix(door.cast(one), rows(part, chosen)), float))
            if np.ptp(grams[-1]) <= 1e-6 * np.abs(grams[-1]).max():
                raise constant(name)
    if len(chosen) < n:
        told = (*told, f"intervals are from {len(chosen)} of {n} pairs, drawn at random.")
    laws = covariance_laws(*grams)
    chance = 1.0
    if excludes_zero(laws[0], confidence):
        chance = chance_of_dependence(grams[0], grams[1], confidence, random.generator)
    return effect_of(laws, chance, grams, tuple(kernels), confidence, "dependence of x and y", told, shown)


def effect_of(
    laws: tuple[DistanceLaw, DistanceLaw],
    chance: float,
    grams: Sequence[np.ndarray],
    kernels: tuple[Any, ...],
    confidence: float,
    method: str,
    told: tuple[str, ...],
    shown: Shown | None,
) -> Effect:
    """The effect from the two distributions of `covariance_laws`, in interpretable units.

    Intervals start at zero unless `chance`, the p-value of a test of independence, is in their tail, too.
    """
    distance, correlation = (Interval(law.estimate, *law.interval(confidence)) for law in laws)
    if chance > (1 - confidence) / 2:
        distance, correlation = (replace(each, low=0.0) for each in (distance, correlation))
    reach = np.sqrt(2 * np.prod([gram.diagonal().max() for gram in grams]))
    n = len(grams[0])
    return Effect(
        distance,
        Effect.scaled(distance, 1 / reach, 1.0),
        None,
        Effect.scaled(correlation, 1.0, 1.0),
        kernels,
        confidence,
        method,
        (n,),
        (*told, *doubt_about_mean(n)),
        shown=shown,
    )


def covariance_laws(k: np.ndarray, m: np.ndarray) -> tuple[DistanceLaw, DistanceLaw]:
    """The distributions of the norm of the cross-covariance operator, unnormalised and normalised by covariances."""
    n = len(k)
    (k, own_x), (m, own_y) = _centred(k), _centred(m)
    inner = k * m
    means = inner.mean(axis=1)
    squared = float(means.mean())
    # Inner products of the influences φ̃ ⊗ ψ̃ − C of pairs, with one another and with C.
    products = inner - means[:, None] - means[None, :] + squared
    with_mean = means - squared
    unbiased = (n / (n - 1)) ** 2  # x and y features have mean zero
    plain = DistanceLaw(unbiased * squared, _spectrum(products))
    (norm_x, influence_x), (norm_y, influence_y) = own_x, own_y
    share = (influence_x / norm_x + influence_y / norm_y) / 4
    moved = products - np.outer(share, with_mean) - np.outer(with_mean, share) + squared * np.outer(share, share)
    size = np.sqrt(norm_x * norm_y)
    return plain, DistanceLaw(unbiased * squared / size, _spectrum(moved / size))


def _centred(gram: np.ndarray) -> tuple[np.ndarray, tuple[float, np.ndarray]]:
    """H K H, the unbiased ‖C_xx‖² by the U-centred matrix (Székely & Rizzo 2014), and each point's influence on it."""
    n = len(gram)
    means = gram.mean(axis=1)
    double = gram - means[:, None] - means[None, :] + means.mean()
    off = gram - np.diag(gram.diagonal())
    sums = off.sum(axis=1)
    off = off - sums[:, None] / (n - 2) - sums[None, :] / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(off, 0)
    each = np.sum(off**2, axis=1) / (n - 3)
    norm = max(float(each.mean()), 1e-12 * float(np.mean(double**2)), np.finfo(float).tiny)
    return double, (norm, 2 * (each - each.mean()))


def _spectrum(products: np.ndarray) -> np.ndarray:
    """The eigenvalues of the covariance of a mean, from inner products of its terms."""
    n = len(products)
    return np.maximum(np.linalg.eigvalsh(products), 0.0) / (n * (n - 1))
