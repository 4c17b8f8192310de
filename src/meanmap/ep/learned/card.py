"""The card of an operator: what it learned from, how far it was off when audited, and when not to use it."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from meanmap.core.errors import EmptyError
from meanmap.ep.factor import FactorLike
from meanmap.ep.learned.operator import MessageOperator
from meanmap.ep.learned.points import coordinates
from meanmap.ep.learned.recorded import Recorded
from meanmap.ep.learned.signature import Signature
from meanmap.families import Family

__all__ = ["Card", "ranges"]

# Messages that are newer than this, in units of the noise, are asked about by `Learned` as it is set.
_NEW = 0.25


@dataclass(frozen=True)
class Card:
    """What to know before using an operator that others have trained.

    Attributes
    ----------
    factor : str
        Kind and function of the factor, as a file is marked with it.
    power : float
        α of power EP.
    learned : int
        From this many messages.
    ranges : tuple of (str, float, float)
        The smallest and largest value of each coordinate of the incoming messages. Errors outside are unknown: there
        `Learned` uses its oracle, and `MessageOperator.doubt` is infinite.
    audited : int
        This many other messages were asked of the oracle and compared.
    median, high : float
        KL divergence (nats) of the belief that follows, half and 99% of them; the largest over the directions.
    z : float
        Root mean square of errors in units of the stated deviation, for the worst number: above 1, stated deviations
        are too small.
    new : float
        The part of the audited messages that would be asked about.
    advice : tuple of str
        When not to use it.
    """

    factor: str
    power: float
    learned: int
    ranges: tuple[tuple[str, float, float], ...]
    audited: int
    median: float
    high: float
    z: float
    new: float
    advice: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        operator: MessageOperator,
        factor: FactorLike,
        fresh: Recorded,
        power: float = 1.0,
        advice: tuple[str, ...] = (),
    ) -> "Card":
        """The card of an operator after an audit on messages that it has not learned, with the answers to them.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap import ep
        >>> factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
        >>> rng = np.random.default_rng(0)
        >>> came = ep.Normal(rng.normal(size=400), rng.uniform(0.1, 2, 400))
        >>> seen = ep.learned.Recorded.of((came, np.ones(400)), ep.extending.ask(factor, came))
        >>> operator = ep.learned.MessageOperator().learn_recorded(seen[:300])
        >>> card = ep.learned.Card.of(operator, factor, seen[300:])
        >>> card.audited, card.high < 1e-3
        (100, True)
        """
        if operator.seen is None:
            raise EmptyError("this operator has learned nothing yet: there is nothing to write on its card.")
        said, divergences = operator.predict(fresh.incoming), []
        for came, exact, told in zip(fresh.incoming, fresh.messages, said.messages, strict=True):
            if exact is not None:
                truth, guess = came * exact, came * told
                proper = np.asarray(truth.is_proper() & guess.is_proper())
                kl = np.full(len(proper), np.inf)
                kl[proper] = np.maximum(np.asarray(truth[proper].kl(guess[proper])), 0.0)
                divergences.append(kl)
        worst = np.max(divergences, axis=0)
        scores = operator.scores(fresh.incoming, fresh.answer, said)
        return cls(
            factor=Signature.of(factor, power).factor,
            power=float(power),
            learned=len(operator),
            ranges=ranges(factor, operator.seen),
            audited=len(fresh),
            median=float(np.median(worst)),
            high=float(np.quantile(worst, 0.99)),
            z=float(np.sqrt(np.nanmean(scores**2, axis=0)).max()),
            new=float((said.novelty > _NEW).mean()),
            advice=tuple(advice),
        )

    def rows(self) -> tuple[tuple[str, str], ...]:
        """The card as text."""
        return (
            ("factor", f"{self.factor}, power {self.power:g}"),
            ("learned from", f"{self.learned} messages"),
            *((name, f"{low:.3g} to {high:.3g}") for name, low, high in self.ranges),
            ("outside of it", "errors are not known, and ep.Learned asks its oracle"),
            ("audited on", f"{self.audited} other messages, {self.new:.1%} of them new to it"),
            ("error of the belief", f"KL {self.median:.1e} (half), {self.high:.1e} (99%) nats"),
            ("error / stated", f"{self.z:.2g} (root mean square)"),
            *(("do not use it", each) for each in self.advice),
        )

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:{width}}  {text}" for name, text in self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        spans = {name: [low, high] for name, low, high in self.ranges}
        return {**vars(self), "ranges": spans, "advice": list(self.advice)}


def ranges(factor: FactorLike, seen: Recorded) -> tuple[tuple[str, float, float], ...]:
    """The smallest and largest value of each coordinate of the incoming messages."""
    found, given = [], 0
    for argument, came in zip(factor.arguments, seen.incoming, strict=True):
        table = coordinates((came,))
        if isinstance(came, Family):
            place, d = came.coordinates[-1], came.dimension
            name = ("" if place == "x" else f"{place} ") + argument.name
            names = [f"{name}[{at}]" for at in range(d)] if came.event_shape else [name]
            pairs = [f"{one} and {other}" for one, other in combinations(names, 2)] if table.shape[1] > 2 * d else []
            words = [
                *((f"{each}, mean", _same) for each in names),
                *((f"{each}, variance", np.exp) for each in names),
                *((f"{each}, correlation", np.tanh) for each in pairs),
            ]
            ends = zip(words, table.min(0), table.max(0), strict=True)
            found += [(text, back(low), back(high)) for (text, back), low, high in ends]
        else:
            given += 1
            found.append((f"given {given}", table.min(), table.max()))
    return tuple((name, float(low), float(high)) for name, low, high in found)


def _same(number: Any) -> Any:
    return number
