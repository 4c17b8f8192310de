"""What is learned for one kind of factor: where predictions are certain, what to ask, and how to use the answers."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError
from meanmap.core.settings import truth
from meanmap.ep.factor import Answer
from meanmap.ep.learned.diary import Diary
from meanmap.ep.learned.operator import MessageOperator, Predicted
from meanmap.ep.learned.points import varying
from meanmap.ep.learned.recorded import Recorded, usable
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.piecewise.memory import Memory
from meanmap.families import Family

__all__ = ["FEWEST", "FactorLearner", "Rules"]

# Nothing is learned from fewer messages than this.
FEWEST = 10
# Answers that may be off by more standard deviations are neither learned nor compared with predictions.
_DOUBTED = 0.5
# After predictions were abandoned, they are tried again with this many times as many messages.
_MORE = 1.25
# Settings are chosen anew if this share of the incoming messages lies outside the range for which they were chosen.
_OUTSIDE = 0.05
# ... or when this many messages from outside were learned one by one, as a factor without a plate sends them.
_STRAYS = 20
# ... or when this many audits, at least, are off by this many of their standard deviations.
_AUDITS, _TOO_FAR = 10, 2.0


@dataclass(frozen=True)
class Rules:
    """The largest acceptable doubt, the number of first answers, the share of audits, and whether widths may change."""

    threshold: float
    initial: int
    audit: float
    refresh: bool

    @classmethod
    def of(cls, threshold: float, initial: int, audit: float, refresh: bool) -> "Rules":
        """The rules that the user asks for, checked."""
        first = int(parameter(initial, "initial", axes=0, integer=True, at_least=2 * FEWEST))
        if not 0 <= float(audit) <= 1:
            raise ParameterError(f"audit is {audit!r}; expected the part of messages to audit, between 0 and 1.")
        if not float(threshold) > 0:
            raise ParameterError(
                f"threshold is {float(threshold):g}; expected a number above 0, in units of the noise: no learning "
                "brings the variance that is left below 0, so that the oracle would always be asked. The limit −9 of "
                "the papers is .234 (ep.Learned.published())."
            )
        return cls(float(threshold), first, float(audit), truth(refresh, "refresh"))


class FactorLearner:
    """An operator, and the answers that wait to be learned by it."""

    def __init__(self, operator: MessageOperator, rules: Rules):
        self.operator, self.rules = operator, rules
        self.waiting: Recorded | None = None
        # Why it stopped predicting in an earlier run, and how many messages it knew then.
        self.gave_up, self.knew = "", 0
        self.met = 0  # messages that were asked while nothing was predicted, in all runs
        self.forget_values()

    def begin(self, diary: Diary) -> None:
        """At the start of a run: a learner that gave up waits for a quarter more messages; a full memory is renewed."""
        if self.memory.is_worn:
            self.forget_values()
        if not self.gave_up:
            return
        if self.known >= _MORE * self.knew:
            self.gave_up = ""
            return
        diary.gave_up = f"in an earlier run {self.gave_up}"

    def forget_values(self) -> None:
        """Begin anew with values of the function: those that followed an error are none."""
        self.memory = Memory(of_one=True)

    def give_up(self, reason: str, diary: Diary) -> None:
        """Nothing is predicted any more in this run."""
        diary.gave_up = self.gave_up = reason
        self.knew = self.known

    @property
    def known(self) -> int:
        """The number of messages that were learned or are waiting to be."""
        return len(self.operator) + (0 if self.waiting is None else len(self.waiting))

    def watch(self, questions: Questions, exact: Answer) -> None:
        """Keep the answers while it does not predict, to learn them when there are enough."""
        fine = usable(questions.incoming) & _with_numbers(exact) & _is_sure(exact)
        if fine.any():
            self._wait(Recorded.of(questions.incoming, exact)[fine])

    def _wait(self, new: Recorded) -> None:
        self.waiting = new if self.waiting is None else self.waiting + new

    def prepare(self, questions: Questions, diary: Diary) -> None:
        """Choose settings anew if too many incoming messages are unlike those they were chosen on."""
        operator = self.operator
        lawful = usable(questions.incoming)
        if not self.rules.refresh or len(operator) < self.rules.initial or not lawful.any():
            return
        assert operator.range is not None
        incoming = questions[lawful].incoming
        outside = int(operator.range.outside(incoming).sum())
        diary.strays += outside
        if outside > max(_OUTSIDE * len(questions), 1) or diary.strays >= _STRAYS:
            with diary.clock("learning"):
                diary.refreshed("messages left the range")
                self.operator = operator.refit(also=incoming)

    def guess(self, questions: Questions) -> Predicted | None:
        """Predictions for all questions; an improper message has no embedding, and is infinitely new."""
        lawful = usable(questions.incoming)
        if not self.operator.fitted or not lawful.any():
            return None
        if lawful.all():
            return self.operator.predict(questions.incoming)
        place = np.maximum(np.cumsum(lawful) - 1, 0)  # the others get the prediction of a neighbour, which nobody uses
        guess = self.operator.predict(questions[lawful].incoming)[place]
        guess.novelty[~lawful] = np.inf
        return guess

    def in_doubt(self, questions: Questions, guess: Predicted | None, diary: Diary) -> np.ndarray:
        """Which questions the oracle has to answer."""
        lawful = usable(questions.incoming)
        asked = ~lawful
        if len(self.operator) < self.rules.initial:
            room = min(-(-self.rules.initial // 2), self.rules.initial - len(self.operator))
            if not self.operator.fitted and not _enough(questions[lawful].incoming):
                room = len(questions)
            asked[questions.generator().permutation(np.flatnonzero(lawful))[:room]] = True
            return asked
        if guess is None:
            return asked
        # Far outside, all distributions look alike to a kernel, and nothing there is new to it.
        outside = lawful & guess.outside
        diary.outside += int(outside.sum())
        asked |= outside
        limit = self.rules.threshold / diary.caution
        doubtful = np.flatnonzero(lawful & ~asked & (guess.novelty > limit))
        if len(doubtful):
            asked[doubtful[self.operator.regression.choose(questions[doubtful].incoming, limit)]] = True
        return asked

    def to_audit(self, questions: Questions, accepted: np.ndarray, guess: Predicted | None) -> np.ndarray:
        """A random part of the accepted messages; none before it is trusted, or when it is for the evidence."""
        trusted = guess is not None and len(self.operator) >= self.rules.initial
        if not trusted or questions.sweep is None or not self.rules.audit:
            return np.zeros(len(questions), bool)
        return accepted & (questions.generator().random(len(questions)) < self.rules.audit)

    def learn(
        self,
        questions: Questions,
        wanted: np.ndarray,
        audited: np.ndarray,
        exact: Answer,
        guess: Predicted | None,
        diary: Diary,
    ) -> None:
        """Audits are compared with predictions; then what the oracle said about those `wanted` is learned.

        Audits alone are kept until something else is learned: otherwise every sweep would change the operator a little,
        and beliefs would never converge.
        """
        refresh = self.rules.refresh
        if audited.any():
            assert guess is not None
            known = audited.copy()
            known[wanted] &= _is_sure(exact)
            if known.any():
                places = known[wanted]
                diary.compare(self.operator.scores(questions[known].incoming, exact[places], guess[known]))
        lawful = usable(questions.incoming)
        fine = lawful[wanted] & _with_numbers(exact) & _is_sure(exact)
        if fine.any():
            self._wait(Recorded.of(questions[wanted].incoming, exact)[fine])
        failed = refresh and diary.recent_audits() >= _AUDITS and diary.recent_score() > _TOO_FAR
        ready = self.operator.fitted or (self.waiting is not None and _enough(self.waiting.incoming))
        if ready and ((wanted & ~audited).any() or failed):
            self.settle()
        if failed:
            diary.caution *= diary.recent_score() ** 2
        known, fitted_on = len(self.operator), self.operator.fitted_on
        started = 0 < fitted_on < self.rules.initial <= known
        if failed or started or (refresh and self.operator.fitted and known >= 2 * fitted_on):
            reason = "audits failed" if failed else "the first batch was learned" if started else "much was learned"
            diary.refreshed(reason)
            self.operator = self.operator.refit(also=questions[lawful].incoming if refresh else None)

    def settle(self) -> None:
        """Learn what waits."""
        if self.waiting is not None and (self.operator.fitted or _enough(self.waiting.incoming)):
            self.operator, self.waiting = self.operator.learn_recorded(self.waiting), None

    def combined(
        self, questions: Questions, guess: Predicted | None, asked: np.ndarray, exact: Answer | None
    ) -> Answer:
        """Answers of the oracle where it was asked, predictions elsewhere."""
        n, rest = len(questions), ~asked
        empty = tuple(jax.tree.map(np.zeros_like, m) if isinstance(m, Family) else None for m in questions.incoming)
        answer = Answer(empty, np.zeros(n), doubt=np.zeros(n))
        if exact is not None and asked.any():
            count = int(asked.sum())
            doubt = np.zeros(count) if exact.doubt is None else exact.doubt
            answer = answer.put(asked, Answer(exact.messages, exact.log_normaliser, doubt=doubt))
        if rest.any():
            incoming = questions[rest].incoming
            # Messages that were new may be known by now: what was just learned serves the whole plate.
            said = self.operator.predict(incoming) if guess is None or asked.any() else guess[rest]
            doubt = self.operator.doubt(incoming, said)
            answer = answer.put(rest, Answer(said.messages, said.log_normaliser, doubt=doubt))
        return answer


def _with_numbers(answer: Answer) -> np.ndarray:
    """Which members have messages of finite numbers; others are left out by sweeps too."""
    leaves = [np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1) for leaf in jax.tree.leaves(answer.messages)]
    return np.logical_and.reduce(leaves)


def _is_sure(answer: Answer) -> np.ndarray:
    """Which answers the oracle itself does not doubt altogether: of one sampled point a precision may be 10²³."""
    return np.ones(len(answer.log_normaliser), bool) if answer.doubt is None else answer.doubt <= _DOUBTED


def _enough(incoming: tuple[Any, ...]) -> bool:
    """Whether messages are enough, and different enough, to take widths from."""
    return len(usable(incoming)) >= FEWEST and bool(varying(incoming))
