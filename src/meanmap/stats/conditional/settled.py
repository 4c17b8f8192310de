"""The answer of a conditional test: small p-values are checked by further regressions, and remaining doubts are
noted.
"""

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


# Above this p-value hardly any level rejects, and no permutations among neighbours are needed.
USUAL = 0.1


@dataclass(frozen=True)
class Settled:
    """The statistic, its null, the residuals, and what the regressions used and may have missed."""

    value: float
    law: Null
    left: Residuals
    right: Residuals
    fitted: Fitted

    @property
    def pvalue(self) -> float:
        """Of the statistic."""
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
    """Test residuals, `refitted` ones if these miss functions of z, and in doubt permute rows among neighbours.

    `first` is the answer of the first residuals, where it is known. Of the last two p-values the larger is taken. A
    p-value that is `enough` even without the most that may have been missed needs no other regressions.
    """
    units = left.given.units
    judged = left.given, method, null, n_draws, generator, units
    value, law = first or judge(left, right, *judged)
    if law.pvalue(value) > DOUBTED:
        return Settled(value, law, left, right, Fitted.of(left, right))
    missed, sure = NOTHING, 0.0
    if law.pvalue(value) <= enough and (most := doubted(left, right)) is not None:
        # Draws of a copy, so that an answer without these is the same.
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
