"""How strong is the dependence that remains given a third variable?"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.core.rng import Rng
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.tables.order import clocks
from meanmap.core.tables.picked import kinds_of_picked, picked
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, Seed
from meanmap.stats.conditional.asking_again import told_in_order, told_of
from meanmap.stats.conditional.conditional import read_triples
from meanmap.stats.conditional.landmarks import median_distance, rbf
from meanmap.stats.conditional.residuals import Given, residuals
from meanmap.stats.conditional.settled import settled
from meanmap.stats.conditional.strata import codes_told
from meanmap.stats.conditional.variables import Variable
from meanmap.stats.designs.reading import observed
from meanmap.stats.effects.dependence import MOST_PAIRS, covariance_laws, effect_of
from meanmap.stats.effects.effect import Effect
from meanmap.stats.effects.zero import draws_for
from meanmap.stats.shown import Shown
from meanmap.stats.texts import texts_of_variables

__all__ = ["conditional_independence_effect"]

NAMES = ("x", "y", "z")
TURNING = (
    "the dependence varies with z and its mean over z is near zero. This effect size measures only the mean; "
    "conditional_independence_test detects dependence of either sign."
)

NEARLY = (
    "z explains nearly all of x and of y. Functions of z that the regressions miss look like dependence: if x and y "
    "have no noise of their own, do not trust the effect size."
)


@own_words
@one_blas_thread()
def conditional_independence_effect(
    x: Data,
    y: Data,
    z: Data,
    *,
    data: Data = None,
    within: Data = None,
    confidence: float = 0.95,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> Effect:
    """How strongly two variables depend on each other given a third, with confidence intervals.

    Parameters
    ----------
    x, y, z, data, within, missing, kinds : as for `conditional_independence_test`
        n triples.
    confidence : float
        The confidence level of the intervals: coverage is at least this.
    rng : None, int, numpy.random.Generator or JAX key
        Draws 1200 triples if there are more.

    Returns
    -------
    Effect
        As for `independence_effect`, for the residuals of x and y given z: distance, share and correlation of
        features.

    Notes
    -----
    Regressions on z are subtracted from x and y, and from the features of their residuals, as in the test; the
    cross-covariance operator of these residual features is the mean over z of the conditional one. If the dependence
    changes sign with z, that mean may vanish although x and y are dependent given z; a warning says so if the data show
    it. Intervals are those of `independence_effect`, after the richer regressions of the test if it fits these. They
    exclude zero only if the test rejects at (1 − confidence)/2 after subtracting the possible contribution of missed
    functions of z. The notes of the test about its level therefore hold for the lower ends of intervals.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=200)
    >>> x, y = z + rng.normal(size=200), z + rng.normal(size=200)
    >>> conditional_independence_effect(x, y, z, rng=0).correlation.low
    0.0
    >>> conditional_independence_effect(x, y + x, z, rng=0).correlation.low > 0.2
    True
    """
    probability(confidence)
    random = Rng.of(rng)
    if data is not None:
        kinds = kinds_of_picked(kinds, data, x, y, z, within)
        x, y, z, within = picked(data, x=x, y=y, z=z, within=within)
    counted = clocks(z, "z")
    (x, y, z), design, told = observed((x, y, z), NAMES, within, None, missing, kinds)
    shown = Shown.of((x, y, z), NAMES, paired=True)
    (x, y, z), heard = texts_of_variables((x, y, z), NAMES, (None, None, None), kinds)
    told = (*counted, *told, *heard)
    told += codes_told(z) if within is None else ()
    with Door() as door:
        conditions, sides = read_triples(x, y, z, ("median", "median"), door, design)
        n = len(conditions.columns)
        chosen = np.sort(random.generator.choice(n, min(n, MOST_PAIRS), replace=False))
        given = Given.of(conditions.rows(chosen), random.generator)
        read = [side for side in sides if isinstance(side, Variable)]  # all kernels are RBF at the median distance
        left = [residuals(side.rows(chosen), "median", given, door, random.generator) for side in read]
        for side, name in zip(left, "xy", strict=True):
            if side.determined:
                raise InputError(f"{name} is a function of z: given z no variation is left that could be dependent.")
        found = settled(
            left[0],
            left[1],
            lambda: [
                residuals(side.rows(chosen), "median", given, door, random.generator, missed=first)
                for side, first in zip(read, left, strict=True)
            ],
            "kci",
            "bootstrap",
            draws_for(confidence),
            random.generator,
        )
        fitted, chance, left = found.fitted, max(found.pvalue, found.fitted.sure), [found.left, found.right]
        told += (said,) if (said := told_of(fitted.missed, found.pvalue, fitted.sure)) else ()
    told += told_in_order(left[0], left[1], read, 0.0) if len(chosen) == n else ()
    if fitted.nearly:
        told += (NEARLY,)
    grams = [side.left @ side.left.T for side in left]
    laws = covariance_laws(*grams)
    told += tuple(note for variable in (*read, conditions) for note in variable.notes)
    if laws[0].interval(confidence)[0] == 0.0:
        where = given.where / median_distance(given.where)
        local, _ = covariance_laws(grams[0], grams[1] * rbf(where, where))
        told += (TURNING,) if local.interval(confidence)[0] > 0.0 else ()
    if len(chosen) < n:
        told += (f"intervals are from {len(chosen)} of {n} triples, drawn at random.",)
    kernels = tuple(side.kernel for side in left)
    return effect_of(laws, chance, grams, kernels, confidence, "dependence of x and y given z", told, shown)
