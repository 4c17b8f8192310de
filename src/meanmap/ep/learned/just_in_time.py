"""The oracle that learns: it predicts where it is sure, asks another oracle where it is not, and audits itself."""

from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError, ParameterError
from meanmap.ep.factor import Answer
from meanmap.ep.host import HostOracle, check_answer
from meanmap.ep.infer import with_oracle
from meanmap.ep.learned.diary import Diary
from meanmap.ep.learned.kernel_regression import KernelRegression
from meanmap.ep.learned.operator import MessageOperator, Predicted
from meanmap.ep.learned.points import varying
from meanmap.ep.learned.recorded import Recorded, usable
from meanmap.ep.learned.signature import Signature
from meanmap.ep.oracle import Oracle
from meanmap.ep.questions import Questions
from meanmap.ep.sampling import ImportanceSampling
from meanmap.families import Bernoulli, Beta, Family, Gamma, Normal

__all__ = ["Learned"]

# Nothing is learned from fewer messages than this.
_FEWEST = 10
# Settings are chosen anew when so much of what comes in lies outside the range they were chosen on.
_OUTSIDE = 0.05
# ... or when so many messages from outside were learned one by one, as a factor without a plate sends them.
_STRAYS = 20
# ... or when so many audits, at least, are off by so many of their standard deviations.
_AUDITS, _TOO_FAR = 10, 2.0


class Learned(HostOracle):
    """Messages learned just in time (Jitkrittum et al. 2015): an operator answers, and asks the oracle when in doubt.

    A first batch is asked, half of it in each of two sweeps, because cavities of the first sweep are wider than all
    that follow. After that it is asked where more training would reduce the variance of the prediction by more than
    `threshold` times the noise; which members of a plate these are is known before any of them is asked. The object
    keeps what it has learned: pass it to the next problem.

    Parameters
    ----------
    oracle : Oracle, HostOracle or callable, optional
        What is asked: by default as `infer` would choose.
    threshold : float
        How much variance, in units of the noise s², may be left to learn. A quarter is what four looks at the same
        message leave. The papers' limit of −9 on the logarithm of the predictive variance is .234, because s² is 10⁻⁴.
    initial : int
        How many answers come before the operator is trusted.
    audit : float
        The part of accepted messages that is asked all the same, at random, to compare. Where they are further off
        than was said, settings are chosen anew and the threshold is lowered.
    refresh : bool
        Whether widths and noise are chosen anew when incoming messages leave the range they were chosen on, when twice
        as much has been learned, and when audits fail.
    operator : MessageOperator, optional
        How it learns, and what it knows already: the settings for every factor that comes. Trained ones are given by
        [`Learned.reuse`][].

    Notes
    -----
    Works for factors of Normal, Beta, Gamma and Bernoulli variables and given numbers. A message that comes in improper
    has no embedding, and is always asked about. Learning pays for oracles over about .3 ms a message; the report says
    what was gained or lost.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> z = ep.Variable("z", ep.Normal, plate=300)
    >>> model = ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=(X[:, 0] > 0).astype(int)))
    >>> learned, exact = ep.infer(model, messages=ep.Learned(), rng=0), ep.infer(model)
    >>> bool(exact["w"].kl(learned["w"]) < 1e-3), learned.report.counts["Logistic(z): asked of the oracle"] < 1000
    (True, True)
    """

    def __init__(
        self,
        oracle: Any = None,
        *,
        threshold: float = 0.25,
        initial: int = 300,
        audit: float = 0.01,
        refresh: bool = True,
        operator: MessageOperator | None = None,
    ):
        self.oracle = oracle
        self.threshold = _threshold(threshold)
        self.initial = int(parameter(initial, "initial", axes=0, integer=True, at_least=2 * _FEWEST))
        self.audit = float(audit)
        if not 0 <= self.audit <= 1:
            raise ParameterError(f"audit is {audit!r}; expected the part of messages to audit, between 0 and 1.")
        self.refresh = bool(refresh)
        self.operator = MessageOperator() if operator is None else operator
        if not isinstance(self.operator, MessageOperator):
            raise KindError(f"operator is a {type(operator).__name__}; expected an ep.learned.MessageOperator.")
        if self.operator.fitted:
            raise ParameterError("operator is trained already: type learned.reuse(factor, operator).")
        self.operators: dict[Signature, MessageOperator] = {}
        self._waiting: dict[Signature, Recorded] = {}
        self._oracles: dict[str, Any] = {}
        self._diaries: dict[str, Diary] = {}

    @classmethod
    def published(cls, oracle: Any = None, initial: int = 300) -> "Learned":
        """The setting of the paper and its code, to compare with: tilted moments, frozen widths, no audits.

        The limit is −9, every message is replaced by a Normal for its embedding, widths come from the mean variance of
        the first batch, and the oracle draws 500,000 points from N(0, 200).
        """
        oracle = ImportanceSampling(500_000, proposal=Normal(0.0, 200.0), paired=False) if oracle is None else oracle
        regression = KernelRegression(widths="within", tune=False, as_normal=True)
        return cls(
            oracle,
            threshold=np.exp(-9) / regression.noise - 1,
            initial=initial,
            audit=0.0,
            refresh=False,
            operator=MessageOperator(regression, target="tilted moments"),
        )

    def reuse(self, factor: Any, operator: MessageOperator, power: float = 1.0) -> "Learned":
        """Start from an operator that was trained for a factor before; returns the same object."""
        if not isinstance(operator, MessageOperator) or not operator.fitted:
            raise KindError(f"operator is {operator!r}; expected a trained ep.learned.MessageOperator.")
        self.operators[Signature.of(factor, power)] = operator
        return self

    def check(self, factor: Any) -> None:
        """Families that can be learned, and an oracle that can answer."""
        self._oracles[factor.name] = with_oracle(factor, self.oracle).oracle
        for argument in factor.arguments:
            family = getattr(getattr(argument, "variable", argument), "family", None)
            if family is not None and not issubclass(family, Normal | Beta | Gamma | Bernoulli):
                raise KindError(
                    f"{factor.name} has {argument.name!r}, a {family.__name__}; learned are messages to Normal, Beta, "
                    f"Gamma and Bernoulli variables. Type messages={{{factor.name!r}: ep.ImportanceSampling()}} for it."
                )

    def answer(self, questions: Questions) -> Answer:
        """Predictions where the operator is sure, answers of the oracle elsewhere."""
        name, signature = questions.factor.name, Signature.of(questions.factor, questions.power)
        if questions.sweep == 0 or name not in self._diaries:
            self._diaries[name] = Diary(self._diaries.get(name))
        diary, operator = self._diaries[name], self.operators.get(signature, self.operator)
        operator = self._suited(operator, questions, diary)
        with diary.clock("predicting"):
            guess = self._guess(operator, questions)
            asked = self._in_doubt(operator, questions, guess, diary)
        audited = self._to_audit(questions, ~asked, guess)
        wanted = asked | audited
        exact = None
        if wanted.any():
            with diary.clock("asking", int(wanted.sum())):
                exact = self._ask(questions[wanted])
            with diary.clock("learning"):
                operator = self._learn(operator, questions, wanted, audited, exact, guess, diary)
        elif questions.sweep is None and operator.fitted:
            operator = self._settle(operator, signature)
        self.operators[signature] = operator
        with diary.clock("predicting"):
            answer = _combined(questions, operator, guess, asked, None if exact is None else exact[asked[wanted]])
        novelty = np.nan if guess is None else float(np.median(guess.novelty))
        diary.add(int(asked.sum()), int((~asked).sum()), int(audited.sum()), novelty)
        return answer

    def _suited(self, operator: MessageOperator, questions: Questions, diary: Diary) -> MessageOperator:
        """The operator, with settings chosen anew if too much of what comes in is unlike what they were chosen on."""
        if not self.refresh or len(operator) < self.initial:
            return operator
        assert operator.range is not None
        lawful = usable(questions.incoming)
        if not lawful.any():
            return operator
        incoming = questions[lawful].incoming
        outside = int(operator.range.outside(incoming).sum())
        diary.strays += outside
        if outside <= max(_OUTSIDE * len(questions), 1) and diary.strays < _STRAYS:
            return operator
        with diary.clock("learning"):
            diary.refreshed("messages left the range")
            return operator.refit(also=incoming)

    def _guess(self, operator: MessageOperator, questions: Questions) -> Predicted | None:
        """Predictions for all questions; a message that is no law has no embedding, and is infinitely new."""
        lawful = usable(questions.incoming)
        if not operator.fitted or not lawful.any():
            return None
        if lawful.all():
            return operator.predict(questions.incoming)
        place = np.maximum(np.cumsum(lawful) - 1, 0)  # the others get the prediction of a neighbour, which nobody uses
        guess = operator.predict(questions[lawful].incoming)[place]
        guess.novelty[~lawful] = np.inf
        return guess

    def _in_doubt(
        self, operator: MessageOperator, questions: Questions, guess: Predicted | None, diary: Diary
    ) -> np.ndarray:
        """Which questions the oracle has to answer."""
        lawful = usable(questions.incoming)
        asked = ~lawful
        if len(operator) < self.initial:
            room = min(-(-self.initial // 2), self.initial - len(operator))
            if not operator.fitted and not _enough(questions[lawful].incoming):
                room = len(questions)
            asked[questions.generator().permutation(np.flatnonzero(lawful))[:room]] = True
            return asked
        if guess is None:
            return asked
        limit = self.threshold / diary.caution
        doubtful = np.flatnonzero(lawful & (guess.novelty > limit))
        if len(doubtful):
            asked[doubtful[operator.regression.choose(questions[doubtful].incoming, limit)]] = True
        return asked

    def _to_audit(self, questions: Questions, accepted: np.ndarray, guess: Predicted | None) -> np.ndarray:
        if guess is None or questions.sweep is None or not self.audit:
            return np.zeros(len(questions), bool)
        return accepted & (questions.generator().random(len(questions)) < self.audit)

    def _ask(self, questions: Questions) -> Answer:
        oracle = self._oracles[questions.factor.name]
        return questions.ask(oracle) if isinstance(oracle, Oracle) else check_answer(oracle, questions)

    def _learn(
        self,
        operator: MessageOperator,
        questions: Questions,
        wanted: np.ndarray,
        audited: np.ndarray,
        exact: Answer,
        guess: Predicted | None,
        diary: Diary,
    ) -> MessageOperator:
        """Audits are compared with predictions; then what the oracle said is learned.

        Audits alone are kept until something else is learned: otherwise every sweep would change the operator a little,
        and beliefs would never come to rest.
        """
        if audited.any():
            assert guess is not None
            places = audited[wanted]
            diary.compare(operator.scores(questions[audited].incoming, exact[places], guess[audited]))
        lawful = usable(questions.incoming)[wanted]
        signature = Signature.of(questions.factor, questions.power)
        if lawful.any():
            new = Recorded.of(questions[wanted].incoming, exact)[lawful]
            waiting = self._waiting.pop(signature, None)
            self._waiting[signature] = new if waiting is None else waiting + new
        failed = self.refresh and diary.recent_audits() >= _AUDITS and diary.recent_score() > _TOO_FAR
        waiting = self._waiting.get(signature)
        ready = operator.fitted or (waiting is not None and _enough(waiting.incoming))
        if ready and ((wanted & ~audited).any() or failed):
            operator = self._settle(operator, signature)
        if failed:
            diary.caution *= diary.recent_score() ** 2
        started = 0 < operator.fitted_on < self.initial <= len(operator)
        if failed or started or (self.refresh and operator.fitted and len(operator) >= 2 * operator.fitted_on):
            reason = "audits failed" if failed else "the first batch was learned" if started else "much was learned"
            diary.refreshed(reason)
            return operator.refit(also=questions[usable(questions.incoming)].incoming if self.refresh else None)
        return operator

    def _settle(self, operator: MessageOperator, signature: Signature) -> MessageOperator:
        """Learn what waits."""
        waiting = self._waiting.pop(signature, None)
        return operator if waiting is None else operator.learn_recorded(waiting)

    def trained(self, factor: Any, power: float = 1.0) -> MessageOperator:
        """The operator for a factor as it is now, to save it or to give it to another."""
        signature = Signature.of(factor, power)
        if signature not in self.operators:
            raise ParameterError(f"nothing was learned for {factor.name} ({signature.factor}, power {power:g}).")
        return self.operators[signature]

    def diary(self, name: str) -> Diary:
        """What the last run did about a factor: sweeps, audits, reasons, seconds."""
        if name not in self._diaries:
            raise ParameterError(f"no factor {name!r} was answered; known are {', '.join(map(repr, self._diaries))}.")
        return self._diaries[name]

    def counts(self, factor: Any) -> dict[str, int]:
        """Asked, predicted, audited, and how often settings were chosen anew, in the last run."""
        return self._diaries[factor.name].counts() if factor.name in self._diaries else {}

    def notes(self, factor: Any) -> tuple[str, ...]:
        """What audits found, and whether learning paid."""
        return self._diaries[factor.name].notes() if factor.name in self._diaries else ()

    def __repr__(self) -> str:
        known = ", ".join(f"{s.factor}: {len(o)} messages" for s, o in self.operators.items())
        return f"Learned({known or 'nothing yet'})"


def _combined(
    questions: Questions, operator: MessageOperator, guess: Predicted | None, asked: np.ndarray, exact: Answer | None
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
        # What was new may be known by now: the same learning answers the whole plate.
        said = operator.predict(incoming) if guess is None or asked.any() else guess[rest]
        answer = answer.put(rest, Answer(said.messages, said.log_normaliser, doubt=operator.doubt(incoming, said)))
    return answer


def _enough(incoming: tuple[Any, ...]) -> bool:
    """Whether messages are enough, and different enough, to take widths from."""
    return len(usable(incoming)) >= _FEWEST and bool(varying(incoming))


def _threshold(value: Any) -> float:
    value = float(value)
    if not value > 0:
        raise ParameterError(
            f"threshold is {value:g}; expected a number above 0, in units of the noise: no learning brings the "
            "variance that is left below 0, so that the oracle would be asked for ever. The limit −9 of the papers is "
            ".234 (ep.Learned.published())."
        )
    return value
