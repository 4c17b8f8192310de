"""An operator for one factor: from incoming messages to outgoing ones, with their doubt, learned message by message."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.errors import EmptyError, InputError, KindError
from meanmap.core.language import a_type
from meanmap.core.points import bucket, count, pad
from meanmap.core.settings import one_of
from meanmap.core.types import Array, Index
from meanmap.core.values import Value
from meanmap.ep.learned.kernel_regression import KernelRegression
from meanmap.ep.learned.points import Range, coordinates
from meanmap.ep.learned.recorded import Recorded, families_of, usable
from meanmap.ep.learned.regression import Regression
from meanmap.ep.learned.targets import TARGETS, Target

__all__ = ["MessageOperator", "NothingToLearn", "Predicted"]

# Means and log variances that differ by less than this share are the same: distances between embeddings are squares.
_ALIKE = 1e-7


class NothingToLearn(InputError):
    """Answers from which no operator can be learned."""


@dataclass(frozen=True)
class Predicted:
    """The predictions of an operator for n tuples of incoming messages.

    Attributes
    ----------
    messages : tuple
        For each argument a batch of its family, None for given values.
    log_normaliser : array (n,)
        log ∫ f Π exp(η·t); NaN if it was not learned.
    novelty : array (n,)
        How much of the variance more training would remove, in units of the noise; it decides what is asked.
    numbers, deviation : array (n, q)
        The regressed numbers and their standard deviations, in the target's units.
    outside : array (n,)
        Which messages lie outside the range of those that were answered: errors there are unknown.
    """

    messages: tuple[Any, ...]
    log_normaliser: np.ndarray
    novelty: np.ndarray
    numbers: np.ndarray
    deviation: np.ndarray
    outside: np.ndarray

    def __getitem__(self, index: Index) -> "Predicted":
        fields = (self.messages, self.log_normaliser, self.novelty, self.numbers, self.deviation, self.outside)
        return Predicted(*jax.tree.map(lambda leaf: leaf[index], fields))


@dataclass(frozen=True, eq=False, repr=False)
class MessageOperator(Value):
    """Outgoing messages of one factor as a regression on its incoming ones. Immutable.

    Parameters
    ----------
    regression : Regression
        How it learns: `KernelRegression` by default.
    target : str
        "derivatives" of log Z, or the "tilted moments" of the paper.

    Attributes
    ----------
    seen : Recorded or None
        All messages it has learned from.
    beside : tuple or None
        Incoming messages without answers that were used when widths were last chosen. A file stores these two and the
        settings.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    >>> rng = np.random.default_rng(0)
    >>> came = ep.Normal(rng.normal(size=400), rng.uniform(0.1, 2, 400))
    >>> operator = ep.learned.MessageOperator().learn((came,), ep.extending.ask(factor, came))
    >>> new = ep.Normal([0.0, 9.0], [1.0, 1.0])
    >>> said, exact = operator.predict((new,)), ep.extending.ask(factor, new)
    >>> round(float(said.messages[0].precision[0] / exact.messages[0].precision[0]), 2), bool(said.novelty[1] > 100)
    (1.0, True)
    """

    regression: Regression = field(default_factory=KernelRegression)
    target: str | Target = "derivatives"
    seen: Recorded | None = None
    beside: tuple[Any, ...] | None = None
    centre: Any = None
    scale: Any = None
    range: Range | None = None
    fitted_on: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.target, str):
            one_of(self.target, "target", TARGETS)

    @property
    def _kind(self) -> type[Target]:
        return TARGETS[self.target] if isinstance(self.target, str) else type(self.target)

    @property
    def _chosen(self) -> Target:
        """The variant of the target that was chosen with the first messages."""
        assert isinstance(self.target, Target)
        return self.target

    def __len__(self) -> int:
        return 0 if self.seen is None else len(self.seen)

    @property
    def fitted(self) -> bool:
        """Whether it has learned anything."""
        return self.fitted_on > 0

    def learn(self, incoming: tuple[Any, ...], answer: Any) -> "MessageOperator":
        """The operator after more messages: the first batch sets everything, later ones are added to what is known."""
        return self.learn_recorded(Recorded.of(incoming, answer))

    def learn_recorded(self, new: Recorded) -> "MessageOperator":
        """The operator that has also learned messages that were kept."""
        if not self.fitted:
            return replace(self, seen=new if self.seen is None else self.seen + new).refit()
        assert self.seen is not None
        grown = replace(self, seen=self.seen + new)
        numbers = self._chosen.table(new)
        fine = np.isfinite(numbers).all(axis=1) & usable(new.incoming)
        if numbers.shape[1] != len(self.centre) or not (fine.all() or self._kind.chosen(new) == self.target):
            return grown.refit()  # what does not exist may exist in another form
        if not fine.any():
            return grown
        rows = (numbers[fine] - self.centre) / self.scale
        return replace(grown, regression=self.regression.add(new[fine].incoming, rows))

    def refit(self, also: tuple[Any, ...] | None = None) -> "MessageOperator":
        """The operator with all settings chosen anew; widths also use the unanswered incoming messages `also`."""
        if self.seen is None:
            raise EmptyError("nothing was learned yet: there is nothing to refit.")
        fine = usable(self.seen.incoming)
        target = self._kind.chosen(self.seen[fine])
        numbers = target.table(self.seen)
        fine &= np.isfinite(numbers).all(axis=1)
        if not fine.any():
            raise NothingToLearn(
                f"none of {len(fine)} answers can be learned from: their {target.name} are not finite, because "
                "messages that come in or go out are improper."
            )
        known, numbers = self.seen[fine], numbers[fine]
        centre, scale = numbers.mean(0), numbers.std(0)
        constant = scale <= 1e-12 * np.abs(centre)
        if constant.all() and len(numbers) > 1:
            raise NothingToLearn(
                f"all {len(numbers)} answers are the same: there is nothing to learn. Messages that never change need "
                "no operator."
            )
        if len(numbers) > 1 and _alike(known.incoming):
            raise NothingToLearn(
                f"all {len(numbers)} incoming messages are the same: there is nothing to learn from. One question that "
                "comes again and again needs no operator."
            )
        scale = np.where(constant, 1.0, scale)
        regression = self.regression.fit(known.incoming, (numbers - centre) / scale, also)
        both = [known.incoming] if also is None else [known.incoming, also]
        return replace(
            self,
            regression=regression,
            beside=also,
            target=target,
            centre=centre,
            scale=scale,
            range=Range.of(*both),
            fitted_on=len(self.seen),
        )

    def predict(self, incoming: tuple[Any, ...]) -> Predicted:
        """Outgoing messages for n tuples of incoming ones, with their doubt."""
        if not self.fitted:
            raise EmptyError("this operator has learned nothing yet: type operator.learn(incoming, answer) first.")
        assert self.seen is not None
        check_families(self.seen.incoming, incoming)
        mean, deviation, novelty = self.regression.predict(incoming)
        numbers = self.centre + self.scale * mean
        messages, total = self._chosen.messages(incoming, numbers), self._chosen.log_normaliser(incoming, numbers)
        return Predicted(messages, total, novelty, numbers, self.scale * deviation, self.beyond(incoming))

    def scores(self, incoming: tuple[Any, ...], answer: Any, said: Predicted | None = None) -> np.ndarray:
        """z, (n, q): how far exact answers lie from predictions, in standard deviations; NaN where there is none."""
        said, seen = self.predict(incoming) if said is None else said, Recorded.of(incoming, answer)
        numbers = self._chosen.table(seen)[:, : said.numbers.shape[1]]
        z = (numbers - said.numbers[:, : numbers.shape[1]]) / said.deviation[:, : numbers.shape[1]]
        return np.where(np.isfinite(numbers), z, np.nan)

    def beyond(self, incoming: tuple[Any, ...]) -> np.ndarray:
        """Which messages lie outside the range of those that were answered."""
        assert self.seen is not None
        return Range.of(self.seen[usable(self.seen.incoming)].incoming).outside(incoming)

    def doubt(self, incoming: tuple[Any, ...], said: Predicted) -> np.ndarray:
        """How far the belief that follows may be off: √E 2 KL in standard deviations, the largest over arguments.

        The numbers are moved by one deviation each way, one at a time, and the divergences are added. Outside of the
        range of what was learned it is infinite.
        """
        n, q = said.numbers.shape
        steps = np.concatenate([np.eye(q), -np.eye(q)])[:, None] * said.deviation
        moved = (said.numbers + steps).reshape(2 * q * n, q)
        came, first = jax.tree.map(lambda leaf: np.concatenate([leaf] * (2 * q)), (incoming, said.messages))
        found = _divergences(came, first, self._chosen.messages(came, moved))
        known = np.sqrt(found.reshape(2 * q, n, len(incoming)).sum(0).max(axis=1))
        return np.where(said.outside, np.inf, known)

    def merge(self, other: "MessageOperator") -> "MessageOperator":
        """The operator with the training messages of both."""
        if not isinstance(other, MessageOperator):
            raise KindError(f"other is {a_type(other)}; expected a MessageOperator.")
        mine, theirs = self.settings(), other.settings()
        for name in mine:
            if mine[name] != theirs.get(name):
                raise InputError(
                    f"the other operator has {name} {theirs.get(name)!r}; expected {mine[name]!r}, like this one: "
                    "only operators made in the same way can be merged."
                )
        if self.seen is None or other.seen is None:
            return self if other.seen is None else other
        return replace(self, seen=self.seen + other.seen).refit(also=self.beside)

    def settings(self) -> dict[str, Any]:
        """What it was made with, as JSON can hold it."""
        return {"learner": type(self.regression).__name__, "target": self._kind.name, **self.regression.settings()}


def check_families(expected: tuple[Any, ...], incoming: tuple[Any, ...]) -> None:
    """Refuse messages of other families than an operator was trained on."""
    want, got = families_of(expected), families_of(incoming)
    if want != got:
        raise KindError(f"this operator was trained on messages of {', '.join(want)}; got {', '.join(got)}.")


def _divergences(incoming: tuple[Any, ...], sent: tuple[Any, ...], moved: tuple[Any, ...]) -> np.ndarray:
    """KL of the belief after one message to that after another, (n, arguments)."""
    found = []
    for came, first, second in zip(incoming, sent, moved, strict=True):
        if first is None:
            found.append(np.zeros(len(came)))
            continue
        n = count(came)
        triple = jax.tree.map(jnp.asarray, pad((came, first, second), bucket(n)))
        found.append(np.asarray(_divergence(*triple))[:n])
    return np.stack(found, axis=1)


@compiled_anew
@jax.jit
def _divergence(came: Any, first: Array, second: Array) -> Any:
    one, two = (jax.tree.map(jnp.add, came, message) for message in (first, second))
    proper = one.is_proper() & two.is_proper()
    return jnp.where(proper, two.where(proper, came).kl(one.where(proper, came)), jnp.inf)


def _alike(incoming: tuple[Any, ...]) -> bool:
    """Whether messages differ by rounding only, too little for a distance between them."""
    numbers = coordinates(incoming)
    return bool((np.ptp(numbers, axis=0) <= _ALIKE * np.abs(numbers).max(axis=0)).all())
