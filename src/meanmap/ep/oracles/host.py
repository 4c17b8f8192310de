"""Oracles that run on the host and may keep state: they see a whole plate's incoming messages in each sweep."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.meant import nearest
from meanmap.core.points import pad
from meanmap.core.types import Array
from meanmap.ep.doubt import Lean
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.sweeps.plan import Plan, State
from meanmap.ep.sweeps.sweep import compiled_cavities
from meanmap.families import Family

__all__ = ["FunctionOracle", "HostOracle", "ask_host", "check_answer", "refuse_no_oracle"]

_NAMES = ("ImportanceSampling", "Laplace", "Learned", "MCMC", "Quadrature", "Stratified")


class HostOracle(ABC):
    """An oracle in plain Python: asked once per sweep for all members of a factor, it may keep state between sweeps.

    To write one, give `answer`. What is learned from one factor, or model, may serve the next: pass the same object.

    Examples
    --------
    An oracle that counts its questions and passes every one on:

    >>> from meanmap import ep
    >>> class Counting(ep.extending.HostOracle):
    ...     asked = 0
    ...     def answer(self, questions):
    ...         self.asked += len(questions)
    ...         return questions.ask(ep.Quadrature())
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    >>> counting = Counting()
    >>> post = ep.infer(ep.FactorGraph(ep.Logistic(z, observed=[0, 1, 1])), messages=counting)
    >>> post["z"].mean().round(4).tolist(), counting.asked
    ([-0.4132, 0.4132, 0.4132], 12)
    """

    # Whether answers are predictions, whose errors may be biased: `accepts` gets the sum of these.
    predicts: ClassVar[bool] = False
    on_host: ClassVar[bool] = True

    @abstractmethod
    def answer(self, questions: Questions) -> Answer:
        """Outgoing messages of all members that ask, in the order of the questions, as NumPy arrays."""

    def check(self, factor: FactorLike) -> None:
        """Raise if this oracle cannot answer for a factor."""
        del factor

    def accepts(self, factor: FactorLike, lean: Lean) -> bool:
        """Whether a run may end, given how far the final answers move beliefs; if not, it goes on."""
        del factor, lean
        return True

    def stop_predicting(self, factor: FactorLike) -> bool:
        """Called when sweeps do not converge: whether answers were predictions and will be exact from now on."""
        del factor
        return False

    def counts(self, factor: FactorLike) -> dict[str, int]:
        """Counts about a factor for the report of a run."""
        del factor
        return {}

    def notes(self, factor: FactorLike) -> tuple[str, ...]:
        """Notes about a factor for the report of a run."""
        del factor
        return ()

    def doubts_itself(self, factor: FactorLike) -> bool:
        """Whether these notes say that answers are worse than was stated."""
        del factor
        return False


class FunctionOracle(HostOracle):
    """A function of `Questions` as an oracle; it returns an `Answer`, or one message for each argument."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def answer(self, questions: Questions) -> Answer:
        """The answer of the function."""
        found = self.function(questions)
        return found if isinstance(found, Answer) else Answer(found, np.full(len(questions), np.nan))

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def refuse_no_oracle(value: object, argument: str) -> None:
    """Refuse what cannot compute messages, with what to type where the name or class of an oracle came; None is the
    default.
    """
    if value is None or isinstance(value, Oracle | HostOracle) or (callable(value) and not isinstance(value, type)):
        return
    name = value.__name__ if isinstance(value, type) else value
    meant = nearest(name, _NAMES) if isinstance(name, str) else None
    if meant:
        raise KindError(f"{argument} is {value!r}; expected an oracle: type {argument}=ep.{meant}().")
    several = ", or a dictionary of them by factor name" if argument == "messages" else ""
    raise KindError(
        f"{argument} is {value!r}; expected an oracle such as ep.Quadrature(), ep.ImportanceSampling() or "
        f"ep.Learned(), or a function of ep.extending.Questions{several}."
    )


class Asked(NamedTuple):
    """Incoming messages of a factor, which members can use them, the answers of an oracle to those, and the count."""

    incoming: tuple[Any, ...]
    usable: jax.Array
    answer: Answer
    number: int


def ask_host(
    plan: Plan, state: State, at: int, oracle: HostOracle, key: Array, sweep: int | None, power: float
) -> Asked:
    """Ask for the messages of all members of a factor that can use their incoming messages."""
    factor: Any = plan.factors[at]
    shape, size = plan.shapes[at], int(plan.sizes[at])
    incoming, usable = compiled_cavities(plan, state, at, power)

    def as_batch(value: Any) -> Any:
        if not isinstance(value, Family):
            return np.array(value)[:size] if shape and np.ndim(value) else np.array(value)
        return jax.tree.map(lambda leaf: np.array(leaf)[:size] if shape else np.array(leaf)[None], value)

    questions = Questions.of(factor, tuple(map(as_batch, incoming)), power, key, sweep)
    good = np.array(usable)[:size] if shape else np.array(usable)[None]
    blank = _blank(Answer(_like(questions), np.zeros(len(questions))), len(questions))
    asked = int(good.sum())
    answer = blank
    if asked:
        found = check_answer(oracle, questions[good])
        if found.undefined is None and questions.undefined:  # an oracle that learns passes questions on
            found = replace(found, undefined=np.full(asked, max(questions.undefined)))
        answer = found if good.all() else _blank(found, len(questions)).put(good, found)
    widened = jax.tree.map(lambda leaf: jnp.asarray(pad(leaf, shape[0]) if shape else leaf[0], jnp.float64), answer)
    return Asked(incoming, usable, widened, asked)


def check_answer(oracle: HostOracle, questions: Questions) -> Answer:
    """The answer of an oracle, of the right form, or an error that names factor and oracle."""
    name, count, expected = questions.factor.name, len(questions), _like(questions)
    try:
        answer = oracle.answer(questions)
    except Exception as error:
        error.add_note(f"while {_label(oracle)} answered {count} questions of {name}")
        raise
    if not isinstance(answer, Answer):
        raise KindError(
            f"{_label(oracle)} returned {type(answer).__name__} for {name}; expected an ep.extending.Answer."
        )
    messages = answer.messages
    number = len(messages) if isinstance(messages, tuple | list) else None
    if number != len(expected):
        raise ShapeError(
            f"{_label(oracle)} returned {repr(messages) if number is None else number} messages "
            f"for {name}; expected {len(expected)}, one for each argument and None for given values."
        )
    for position, (message, own) in enumerate(zip(messages, expected, strict=True)):
        if type(message) is not type(own):
            raise KindError(
                f"message {position} of {_label(oracle)} for {name} is {_kind(message)}; expected {_kind(own)}."
            )
        if own is not None and (message.shape != (count,) or message.event_shape != own.event_shape):
            raise ShapeError(
                f"message {position} of {_label(oracle)} for {name} has batch shape {message.shape} and event shape "
                f"{message.event_shape}; expected {(count,)} and {own.event_shape}, one for each question."
            )
    for part in ("log_normaliser", "effective", "doubt", "undefined"):
        value = getattr(answer, part)
        if value is not None and np.shape(value) != (count,):
            raise ShapeError(f"{part} of {_label(oracle)} for {name} has shape {np.shape(value)}; expected {(count,)}.")
    total = np.full(count, np.nan) if answer.log_normaliser is None else answer.log_normaliser
    rest = answer.errors, answer.effective, answer.doubt, answer.mean_errors, answer.undefined
    return Answer(tuple(messages), total, *rest)


def _like(questions: Questions) -> tuple[Any, ...]:
    return tuple(message if isinstance(message, Family) else None for message in questions.incoming)


def _blank(like: Answer, count: int) -> Answer:
    """An answer without information for every member, of the form of another one."""
    return jax.tree.map(lambda leaf: np.zeros((count, *np.shape(leaf)[1:])), like)


def _label(oracle: HostOracle) -> str:
    return repr(oracle) if isinstance(oracle, FunctionOracle) else type(oracle).__name__


def _kind(message: object) -> str:
    return "None" if message is None else a_type(message)
