"""The questions to an oracle on the host: the incoming messages of many members of a factor, as NumPy arrays."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import EmptyError
from meanmap.core.points import bucket
from meanmap.core.types import Array
from meanmap.ep.calls import user_errors
from meanmap.ep.doubt import ENOUGH
from meanmap.ep.factor import Answer, FactorLike, replaced
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.sweeps.sweep import compiled_answer
from meanmap.families import Family

__all__ = ["Questions"]

# An oracle does at most this many times the work of its first answer.
_MOST_WORK = 1024


@dataclass(frozen=True)
class Questions:
    """Incoming messages of a factor, one question for each member; `questions[index]` are some of them.

    Attributes
    ----------
    factor : BlackBox or Density
        The factor that asks, with `factor.name` and `factor.function`.
    incoming : tuple
        For each argument of the factor a batch of one family, or the given numbers, along a first axis. All are proper
        where the factor needs that.
    members : numpy.ndarray of int
        The place of each question in the factor's plate.
    power : float
        α of power expectation propagation.
    keys : numpy.ndarray of uint32
        Randomness, one row for each member: the same in every sweep.
    sweep : int or None
        Which sweep asks, from 0; None when it is for the evidence, after the last one.
    undefined : list of numbers
        For each answer of a compiled oracle, the largest share of an incoming distribution on which the function
        returned no number.

    Notes
    -----
    `questions.ask(oracle)` passes questions on to a compiled oracle, a whole batch at once: an oracle that learns may
    ask an exact one where it is in doubt, or audit itself.

    Examples
    --------
    >>> from meanmap import ep
    >>> def widened(questions):
    ...     exact = questions.ask(ep.Quadrature()).messages[0]
    ...     return (exact**0.5, None)  # for each argument a message; labels are given
    >>> z = ep.Variable("z", ep.Normal([0.0, 1.0], 1.0))
    >>> ep.infer(ep.FactorGraph(ep.Logistic(z, observed=[1, 0])), messages=widened)["z"].mean().round(4).tolist()
    [0.2259, 0.6792]
    """

    factor: Any
    incoming: tuple[Any, ...]
    members: np.ndarray
    power: float
    keys: np.ndarray
    sweep: int | None = 0
    undefined: list[float] = field(default_factory=list, compare=False)

    @classmethod
    def of(
        cls, factor: FactorLike, incoming: tuple[Any, ...], power: float, key: Array, sweep: int | None = 0
    ) -> "Questions":
        """Questions about all members; values given for all are repeated."""
        size = next(message.shape[0] for message in incoming if isinstance(message, Family))
        spread = tuple(
            value if isinstance(value, Family) else np.broadcast_to(value, (size, *np.shape(value)[1:]))
            for value in incoming
        )
        keys = np.asarray(jax.random.key_data(jax.random.split(key, size)))
        return cls(factor, spread, np.arange(size), power, keys, sweep)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: int | list[int] | np.ndarray) -> "Questions":
        """Some of the questions: places in this batch, or a mask."""
        chosen = np.atleast_1d(np.asarray(index))
        chosen = chosen if len(chosen) else chosen.astype(int)
        incoming = jax.tree.map(lambda leaf: leaf[chosen], self.incoming)
        return replace(self, incoming=incoming, members=self.members[chosen], keys=self.keys[chosen])

    def generator(self) -> np.random.Generator:
        """Randomness for NumPy: the same whenever the same run comes to this sweep."""
        last = [] if self.sweep is None else [self.sweep + 1]
        return np.random.default_rng([*self.keys.ravel()[:2].tolist(), *last])

    def ask(self, oracle: Oracle, error: float | None = None) -> Answer:
        """The answers of a compiled oracle; batches are padded to sizes of a short list, so that few are compiled.

        Parameters
        ----------
        oracle : Oracle
            Which to ask.
        error : float, optional
            Ask again with more work, up to 1024 times as much, for members whose `doubt` is above this many standard
            deviations of the belief. What remains is in `doubt`.
        """
        if not len(self):
            raise EmptyError(f"there are no questions of {self.factor.name} to ask; expected at least one.")
        oracle.check(self.factor)
        answer, work = self._ask(oracle), 1
        while error is not None and answer.doubt is not None and work < _MOST_WORK:
            doubtful = np.flatnonzero(~(answer.doubt <= error))
            if not len(doubtful):
                break
            worst = np.nan_to_num(answer.doubt[doubtful] / error, nan=np.inf).max()
            times = min(4 if worst < 2 else 16, _MOST_WORK // work)  # few sizes, because each is compiled
            oracle, before = oracle.more(times), oracle
            if oracle is before:
                break
            answer, work = answer.put(doubtful, self[doubtful]._ask(oracle)), work * times
        return answer

    def _ask(self, oracle: Oracle) -> Answer:
        """The quick answers, and better ones for doubtful members: most runs never compile these."""
        quick = oracle.quick(tuple(type(self.incoming[at]) for at in self.factor.inputs(self.incoming)))
        answer = self._compiled(quick)
        if quick is oracle:
            return answer
        doubtful = np.flatnonzero(~(answer.doubt <= ENOUGH))
        return answer.put(doubtful, self[doubtful]._compiled(oracle)) if len(doubtful) else answer

    def _compiled(self, oracle: Oracle) -> Answer:
        # By copies of the last one: a function on the host is not called for those.
        padded = self[np.minimum(np.arange(bucket(len(self))), len(self) - 1)]
        factor = replaced(self.factor, oracle=oracle, arguments=())
        with jax.enable_x64(True), user_errors():
            keys = jax.random.wrap_key_data(jnp.asarray(padded.keys))
            answer = compiled_answer(factor, jax.tree.map(jnp.asarray, padded.incoming), self.power, keys)
            # Cut by NumPy: JAX would compile a program for every number of questions.
            answer = jax.tree.map(lambda leaf: np.array(leaf)[: len(self)], answer)
        if answer.undefined is not None:
            self.undefined.append(float(np.max(answer.undefined)))
        return answer
