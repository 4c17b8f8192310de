"""The oracle that learns: it predicts where it is certain, asks another oracle where it is not, and audits itself."""

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type, in_digits, with_article
from meanmap.ep.asking.chosen_oracle import with_oracle
from meanmap.ep.doubt import ENOUGH, Lean
from meanmap.ep.factor import Answer, FactorLike, replaced
from meanmap.ep.learned.card import ranges
from meanmap.ep.learned.diary import Diary
from meanmap.ep.learned.factor_learner import FactorLearner, Rules
from meanmap.ep.learned.kernel_regression import KernelRegression
from meanmap.ep.learned.operator import MessageOperator, NothingToLearn
from meanmap.ep.learned.recorded import families_into, families_of
from meanmap.ep.learned.signature import Functions, Signature
from meanmap.ep.learned.targets import is_learned
from meanmap.ep.learned.values import QUICK, answer_by_values, are_learned
from meanmap.ep.oracles.host import HostOracle, check_answer
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.piecewise.memory import Kept
from meanmap.ep.quadrature.enough import is_remembered
from meanmap.families import Normal

__all__ = ["Learned"]

# A common bias of predictions may move a belief by this many standard deviations.
_LEAN = 0.05
# After this many checks of a whole plate that found a bias beyond this many standard errors, all of its messages are
# asked; after twice as many where it is smaller. Errors come from eight groups: one check in twelve finds more than two
# where there is no bias, one in fifty more than three.
_LOOKS, _CLEAR = 2, 3.0
# Without an oracle of its own it learns where that pays: a prediction takes this many seconds, and what is compiled and
# chosen for the first one as many as that; runs are expected to take this many sweeps. A first batch that takes longer
# than the last number is not asked again to be timed: that was not for compiling alone.
_PREDICTED, _SETTINGS, _SWEEPS, _SLOW = 1e-3, 20.0, 10, 100.0
# From check to check, samplers draw anew: what they drew in a run they draw in all of its sweeps.
_ANEW = 0x9E3779B9


@dataclass(frozen=True)
class _Sample:
    """Predictions that were compared at convergence: exact answers to some of them, and how many there were."""

    questions: Questions
    exact: Answer
    of: int


class Learned(HostOracle):
    """Messages learned just in time (Jitkrittum et al. 2015): an operator predicts, and asks an oracle when uncertain.

    `ep.infer(model, ep.Learned())` uses it for every black-box factor.

    The oracle answers a first batch, half of it in each of two sweeps, because cavities of the first sweep are wider
    than all that follow. After that it is asked where more training would reduce the variance of the prediction by more
    than `threshold` times the noise; which members of a plate these are is known before any of them is asked. The
    object keeps what it has learned: pass it to the next problem.

    Where a sampler is the oracle of a function on the host without noise, of at most six numbers in all, unknown or
    given, and the output is normal, values of the function are learned instead of messages: the sampler draws the same
    points, and polynomials answer most of them.

    Parameters
    ----------
    oracle : Oracle, HostOracle or callable, optional
        The oracle to ask. By default the one that `infer` would choose, and no messages are learned where that takes
        less than 1 ms per message, or less for ten sweeps of all problems so far than learning, some 20 s, and no
        values of a function that takes less than 10 µs: the report says so.
    threshold : float
        The largest reducible variance, in units of the noise s², at which a prediction is used. A quarter is what
        remains after four observations of the same message. The papers' limit of −9 on the logarithm of the predictive
        variance is .234, because s² is 10⁻⁴.
    initial : int
        The number of answers before the operator is used.
    audit : float
        The share of accepted predictions, drawn at random, for which the oracle is asked as well, to compare. Where
        errors exceed the stated ones, settings are chosen anew and the threshold is lowered. With 0 a run ends when
        beliefs converge for the first time, whatever the final sample shows, and no values are learned.
    refresh : bool
        Whether widths and noise are chosen anew when incoming messages leave the range they were chosen on, when twice
        as much has been learned, and when audits fail.
    operator : MessageOperator, optional
        The settings of the operator of every factor. Trained operators are passed to `Learned.reuse`.

    Notes
    -----
    Works for factors of Normal, MultivariateNormal, Beta, Dirichlet, Gamma and Bernoulli variables and given numbers.
    An improper incoming message has no embedding and is always asked, and so is one outside the range of those that
    were answered. The report says what was gained or lost.
    Messages about vectors are predicted within their doubt, but whole runs have not been cheaper by them: predictions
    keep sweeps from converging, and the oracle is asked in the end. Doubt is that of one message. Biased errors add up
    over a plate in the beliefs that its members share, so at convergence a sample of `initial / 2` predictions is
    compared with the oracle: if its errors, scaled up to all members, move a shared belief by more than .05 standard
    deviations and two standard errors, it is learned, sweeps go on, and the next sample is twice as large, drawn anew
    where the oracle samples. If predictions for a plate are still biased after all of it was learned twice, if sweeps
    do not converge, or if they lose messages, the oracle is asked from then on. The report says what bias remains. The
    log normalisers of predictions are corrected by the mean error of the last sample, and the report states the
    standard error that is left.

    What was learned belongs to a function and the data that it reads. In every run a function on the host is called at
    four points, and its code and the globals it names are compared; where either differs it is learned anew. Changes of
    data in files that change no value at these points go unnoticed (nor at 64 points more, where values are learned).
    Values are kept from run to run, but not with saved operators. Their stated error, a root mean square over the
    points of all rows, or over four of the belief of a row if that is more, is part of the doubt; a narrow peak that no
    point met is not known. Where predictions were given up, later runs ask the oracle alone until a quarter more is
    known.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> X = np.random.default_rng(0).normal(size=(64, 2))
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> z = ep.Variable("z", ep.Normal, plate=64)
    >>> model = ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=(X[:, 0] > 0).astype(int)))
    >>> learned = ep.infer(model, messages=ep.Learned(ep.Quadrature(), initial=40), rng=0)
    >>> bool(ep.infer(model)["w"].kl(learned["w"]) < 1e-2), learned.report.counts["Logistic(z): predicted"] > 0
    (True, True)
    """

    def __init__(
        self,
        oracle: object = None,
        *,
        threshold: float = 0.25,
        initial: int = 300,
        audit: float = 0.01,
        refresh: bool = True,
        operator: MessageOperator | None = None,
    ):
        self.oracle = oracle
        self.rules = Rules.of(threshold, initial, audit, refresh)
        self.operator = MessageOperator() if operator is None else operator
        if not isinstance(self.operator, MessageOperator):
            raise KindError(f"operator is {a_type(operator)}; expected an ep.learned.MessageOperator.")
        if self.operator.fitted:
            raise ParameterError("operator is trained already: type learned.reuse(factor, operator).")
        # What is kept from run to run: by function, what was learned and what reused operators were trained on.
        self._functions = Functions()
        self._learners: dict[Signature, FactorLearner] = {}
        self._ranges: dict[Signature, tuple[tuple[str, float, float], ...]] = {}
        # What belongs to a run, by the name of a factor: its function at the start, its oracle, its record, the ranges
        # of a reused operator, and the predictions that were compared at convergence.
        self._signatures: dict[str, Signature] = {}
        self._oracles: dict[str, Any] = {}
        self._diaries: dict[str, Diary] = {}
        self._reused: dict[str, tuple[tuple[str, float, float], ...]] = {}
        self._samples: dict[str, _Sample] = {}

    predicts: ClassVar[bool] = True

    @classmethod
    def published(cls, oracle: object = None, initial: int = 300) -> "Learned":
        """The setting of the paper and its authors' code, to compare with: tilted moments, frozen widths, no audits.

        The limit is −9, every message is replaced by a Normal for its embedding, and the oracle draws 500,000 points
        from N(0, 200): inputs have to be numbers. The width inside the embedding comes from the mean variance of the
        first batch, as in the code; the paper states the median heuristic, which here gives the outer width only. What
        the paper does not state is as in the code, but outputs are centred, and the first batch is drawn over two
        sweeps.
        """
        oracle = ImportanceSampling(500_000, proposal=Normal(0.0, 200.0), paired=False) if oracle is None else oracle
        regression = KernelRegression(d_in=300, d_out=500, widths="within", tune=None, as_normal=True)
        return cls(
            oracle,
            threshold=np.exp(-9) / regression.noise - 1,
            initial=initial,
            audit=0.0,
            refresh=False,
            operator=MessageOperator(regression, target="tilted moments"),
        )

    def reuse(self, factor: FactorLike, operator: MessageOperator, power: float = 1.0) -> "Learned":
        """Start from an operator that was trained for a factor before; returns the same object."""
        if not isinstance(operator, MessageOperator) or not operator.fitted:
            raise KindError(f"operator is {operator!r}; expected a trained ep.learned.MessageOperator.")
        assert operator.seen is not None
        known, wanted = families_of(operator.seen.incoming), families_into(factor)
        if known != wanted:
            raise KindError(
                f"this operator was trained on messages of {', '.join(known)}; {factor.name} has {', '.join(wanted)}."
            )
        signature = self._functions.signature(factor, power, operator.seen.incoming)
        self._learners[signature] = FactorLearner(operator, self.rules)
        self._ranges[signature] = ranges(factor, operator.seen)
        return self

    def check(self, factor: FactorLike) -> None:
        """The families must be learnable, and the oracle able to answer."""
        # The factor may name this object as its own oracle, which is not the one that is asked.
        self._oracles[factor.name] = with_oracle(replaced(factor, oracle=None), self.oracle).oracle
        for argument in factor.arguments:
            if not (argument.known or is_learned(argument.variable.family)):
                family = with_article(argument.variable.family.__name__)
                raise KindError(
                    f"{factor.name} has {argument.name!r}, {family}; expected numbers, normal vectors or a "
                    "Dirichlet: other messages are not learned. Type "
                    f"messages={{{factor.name!r}: ep.ImportanceSampling()}}; factors that are to be learned are named "
                    "in the same mapping, with ep.Learned()."
                )

    def answer(self, questions: Questions) -> Answer:
        """Predictions where the operator is sure, answers of the oracle elsewhere."""
        name = questions.factor.name
        if questions.sweep == 0 or name not in self._diaries:
            self._diaries[name] = Diary(self._diaries.get(name))
            self._signatures[name] = self._functions.signature(questions.factor, questions.power, questions.incoming)
            self._reused[name] = self._ranges.get(self._signatures[name], ())
            self._learner(name).begin(self._diaries[name])
        diary, learner = self._diaries[name], self._learner(name)
        if questions.factor.host:  # values of its function are kept from run to run
            kept = (questions.factor.memory or Kept(0))._replace(number=learner.memory.number)
            questions = replace(questions, factor=replaced(questions.factor, memory=kept))
        oracle = self._oracles[name]
        if self.rules.audit and not diary.gave_up and are_learned(questions.factor, questions.incoming, oracle):
            quickest = QUICK if self.oracle is None else 0.0
            if answer := answer_by_values(questions, oracle, self._ask, learner.memory, diary, quickest):
                return answer
        if not diary.gave_up:
            try:
                return self._predicted(questions, learner, diary)
            except NothingToLearn as problem:
                learner.give_up(str(problem).split(":")[0], diary)
        with diary.clock("asking", len(questions)):
            answer = self._ask(questions)
        learner.met += len(questions)
        if questions.sweep is None:
            learner.watch(questions, answer)
        diary.add(len(questions), 0, 0, np.nan)
        diary.evidence_error = 0.0
        return answer

    def _learner(self, name: str) -> FactorLearner:
        """What is learned about a factor's function as it was when the run began."""
        return self._learners.setdefault(self._signatures[name], FactorLearner(self.operator, self.rules))

    def _predicted(self, questions: Questions, learner: FactorLearner, diary: Diary) -> Answer:
        """Predictions where they are sure, and what is asked is learned."""
        learner.prepare(questions, diary)
        with diary.clock("predicting"):
            guess = learner.guess(questions)
            asked = learner.in_doubt(questions, guess, diary)
        audited = learner.to_audit(questions, ~asked, guess)
        wanted, exact = asked | audited, None
        if wanted.any():
            with diary.clock("asking", int(wanted.sum())):
                exact = self._ask(questions[wanted])
            if self.oracle is None and not learner.operator.fitted:
                self._refuse_quick(questions[wanted], len(questions), learner, diary)
            with diary.clock("learning"):
                learner.learn(questions, wanted, audited, exact, guess, diary)
        elif questions.sweep is None:
            learner.settle()
        with diary.clock("predicting"):
            answer = learner.combined(questions, guess, asked, None if exact is None else exact[asked[wanted]])
        if questions.sweep is None:
            answer = self._with_sample(questions, answer, asked, diary)
        novelty = np.nan if guess is None else float(np.median(guess.novelty))
        diary.add(int(asked.sum()), int((~asked).sum()), int(audited.sum()), novelty)
        return answer

    def _refuse_quick(self, asked: Questions, rows: int, learner: FactorLearner, diary: Diary) -> None:
        """Raise where the oracle, by itself, takes less time than learning: asked once more, nothing is compiled."""
        factor = asked.factor
        if diary.seconds["asking"] > _SLOW:
            return
        start = time.perf_counter()
        self._ask(asked[np.zeros(len(asked), int)])  # a function on the host is not called for copies
        each = time.perf_counter() - start
        over = [type(asked.incoming[at]) for at in factor.inputs(asked.incoming)]
        if not factor.host or is_remembered(factor, over):
            each /= len(asked)
        if each < _PREDICTED or each * (learner.met + _SWEEPS * rows) < _SETTINGS:
            oracle = type(self._oracles[factor.name]).__name__
            raise NothingToLearn(
                f"learning was switched off, as the oracle needed only {in_digits(1e3 * each)} ms per message (to "
                f"learn anyway, pass ep.Learned(ep.{oracle}()))"
            )

    def _ask(self, questions: Questions) -> Answer:
        factor = questions.factor
        oracle, diary = self._oracles[factor.name], self._diaries.get(factor.name)

        def ask() -> Answer:
            try:
                return check_answer(oracle, questions) if oracle.on_host else questions.ask(oracle)
            except BaseException:
                self._learner(factor.name).forget_values()
                raise

        if not factor.host or diary is None or diary.asked or diary.audited:
            return ask()
        answer = self._functions.around(factor, ask)
        was, now = self._signatures[factor.name], self._functions.signature(factor, questions.power, looked=True)
        if was in self._learners:
            self._learners.setdefault(now, self._learners.pop(was))
        self._signatures[factor.name] = now
        return answer

    def _with_sample(self, questions: Questions, answer: Answer, asked: np.ndarray, diary: Diary) -> Answer:
        """The answer with exact messages for a sample of predictions, and log normalisers that are unbiased.

        An error that all predictions share would otherwise be multiplied by the number of members: the others move by
        the mean of the sample.
        """
        rest = np.flatnonzero(~asked)
        if not len(rest):
            diary.evidence_error = 0.0
            return answer
        count = self.rules.initial // 2 * 2**diary.looks
        sampled = questions.generator().permutation(rest)[:count]
        drawn = questions[sampled]
        drawn = replace(drawn, keys=drawn.keys + np.uint32(_ANEW * (diary.looks + 1) % 2**32))
        with diary.clock("asking"):
            exact = self._ask(drawn)
        self._samples[questions.factor.name] = _Sample(drawn, exact, len(rest))
        off, left = exact.log_normaliser - answer.log_normaliser[sampled], len(rest) - len(sampled)
        total = np.array(answer.log_normaliser)
        total[rest] += off.mean()
        answer = replace(answer, log_normaliser=total)
        diary.evidence_error = float(off.std(ddof=1) * left * np.sqrt(1 / len(sampled) + 1 / left)) if left else 0.0
        diary.sampled = len(sampled)
        doubt = np.zeros(len(sampled)) if exact.doubt is None else exact.doubt
        return answer.put(sampled, Answer(exact.messages, exact.log_normaliser, doubt=doubt))

    def accepts(self, factor: FactorLike, lean: Lean) -> bool:
        """Whether the errors of a sample add up to little; if not, it is learned, and the next is twice as large.

        Where a whole plate was learned and predictions are still biased, all of it is asked from then on.
        """
        diary, sample = self._diaries[factor.name], self._samples.pop(factor.name, None)
        if sample is None:
            diary.lean = None
            return True
        drawn = len(sample.questions)
        diary.lean = lean.times(sample.of / drawn)
        if sample.exact.doubt is None or (sample.exact.doubt <= ENOUGH).all():
            # The only randomness is in which members were drawn, and more can be drawn.
            diary.lean = diary.lean._replace(error=np.zeros_like(lean.error))
        if not self.rules.audit or not diary.lean.matters(_LEAN):
            return True
        learner, whole = self._learner(factor.name), drawn == sample.of
        diary.looks, diary.whole_looks = diary.looks + 1, diary.whole_looks + whole
        diary.clear_looks += whole and diary.lean.matters(_LEAN, _CLEAR)
        if diary.clear_looks == _LOOKS or diary.whole_looks == 2 * _LOOKS:
            learner.give_up("predictions stayed biased whatever was learned", diary)
        diary.asked += drawn
        with diary.clock("learning"):
            learner.learn(sample.questions, np.ones(drawn, bool), np.zeros(drawn, bool), sample.exact, None, diary)
        return False

    def stop_predicting(self, factor: FactorLike) -> bool:
        """Ask the oracle for all messages from now on, because sweeps with predictions do not converge."""
        diary = self._diaries.get(factor.name)
        if diary is None or diary.gave_up or not diary.predicted or not self.rules.audit:
            return False
        self._learner(factor.name).give_up("sweeps with predictions did not converge", diary)
        return True

    def trained(self, factor: FactorLike, power: float = 1.0) -> MessageOperator:
        """The current operator for a factor, to save it or to pass it to another `Learned`."""
        signature = self._functions.signature(factor, power)
        if signature not in self._learners:
            raise ParameterError(f"nothing was learned for {factor.name} ({signature.factor}, power {power:g}).")
        return self._learners[signature].operator

    def diary(self, name: str) -> Diary:
        """What the last run did about a factor: sweeps, audits, reasons, seconds."""
        if name not in self._diaries:
            raise ParameterError(f"factor {name!r} was not learned; known are {', '.join(map(repr, self._diaries))}.")
        return self._diaries[name]

    def counts(self, factor: FactorLike) -> dict[str, int]:
        """Asked, predicted, audited, and how often settings were chosen anew, in the last run."""
        return self._diaries[factor.name].counts() if factor.name in self._diaries else {}

    def doubts_itself(self, factor: FactorLike) -> bool:
        """Whether audits found errors much larger than stated."""
        return factor.name in self._diaries and self._diaries[factor.name].doubtful

    def notes(self, factor: FactorLike) -> tuple[str, ...]:
        """Which messages lay outside the range of a reused operator, what audits found, and whether learning paid."""
        if factor.name not in self._diaries:
            return ()
        diary, notes = self._diaries[factor.name], ()
        if diary.outside and self._reused[factor.name]:
            known = "; ".join(f"{name} {low:.3g} to {high:.3g}" for name, low, high in self._reused[factor.name])
            told = f"{diary.outside} messages lay outside the range that the reused operator was trained on ({known})"
            notes = (f"{told}, so the oracle answered them",)
        return (*notes, *diary.notes())

    def __repr__(self) -> str:
        known = ", ".join(f"{s.factor}: {len(p.operator)} messages" for s, p in self._learners.items())
        return f"Learned({known or 'nothing yet'})"
