"""The result of a conditional test: small p-values are checked by richer regressions, and doubts are noted."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from meanmap.stats.conditional.asking_again import DOUBTED, asked_again, doubted, is_doubtful
from meanmap.stats.conditional.judging import Fitted, judge
from meanmap.stats.conditional.leftover import NOTHING
from meanmap.stats.conditional.nearby import exchanged_nearby
from meanmap.stats.conditional.residuals import Residuals
from meanmap.stats.result import Null

__all__ = ["Settled", "settled"]


# Above this p-value no usual level rejects, and no permutations among neighbours are needed.
USUAL = 0.1


@dataclass(frozen=True)
class Settled:
    """The statistic, its null distribution, the residuals, and what the regressions used and may have missed."""

    value: float
    law: Null
    left: Residuals
    right: Residuals
    fitted: Fitted

    @property
    def pvalue(self) -> float:
        """The p-value of the statistic."""
        return self.law.pvalue(self.value)


def settled(
    left: Residuals,
    right: Residuals,
    refitted: Callable[[], Sequence[Residuals]],
    method: str,
    null: str,
    n_draws: int,
    generator: np.random.Generator,
    first: tuple[float, Null] | None = None,
    enough: float = 0.0,
) -> Settled:
    """Test residuals, or `refitted` ones if these miss functions of z; in doubt permute rows among neighbours as well.

    `first` is the statistic and null distribution of the first residuals, if known. If rows are permuted, the larger of
    the two p-values counts. No richer regressions are fitted if the p-value stays at most `enough` after subtracting
    the largest possible contribution of missed functions.
    """
    units = left.given.units
    judged = left.given, method, null, n_draws, generator, units
    value, law = first or judge(left, right, *judged)
    if law.pvalue(value) > DOUBTED:
        return Settled(value, law, left, right, Fitted.of(left, right))
    missed, sure = NOTHING, 0.0
    if law.pvalue(value) <= enough and (most := doubted(left, right)) is not None:
        # These draws use a copy of the generator, so that they do not change the other results.
        less, same = judge(left, right, left.given, method, "gamma", n_draws, deepcopy(generator), units, most)
        missed, sure = (most, same.pvalue(less)) if same.pvalue(less) <= enough else (NOTHING, 0.0)
    if missed is NOTHING and (again := asked_again(left, right, refitted)) is not None:
        left, right, missed = again
        value, law = judge(left, right, *judged)
        sure = law.pvalue(value)
        if is_doubtful(missed, sure):
            less, same = judge(left, right, *judged, missed)
            sure = max(sure, same.pvalue(less))
    found = Settled(value, law, left, right, replace(Fitted.of(left, right, missed), sure=sure))
    nearby = exchanged_nearby(left, right, method, n_draws, generator) if found.pvalue <= USUAL else None
    if nearby is None or nearby[1].pvalue(nearby[0]) <= found.pvalue:
        return found
    return replace(found, value=nearby[0], law=nearby[1], fitted=replace(found.fitted, before=found.pvalue))
