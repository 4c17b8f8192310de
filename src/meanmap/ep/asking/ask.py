"""Messages of one factor outside any model: to examine the errors of an oracle, or to train an operator."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.language import a_type, with_article
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Seed
from meanmap.ep.asking.chosen_oracle import with_oracle
from meanmap.ep.factor import Answer, Factor, FactorLike
from meanmap.ep.oracles.host import check_answer, refuse_no_oracle
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.piecewise.memory import remembering
from meanmap.ep.sweeps.sweep import compiled_answer
from meanmap.ep.variables import concrete
from meanmap.families import Family

__all__ = ["ask"]


@own_words
def ask(
    factor: Factor,
    *incoming: Family,
    oracle: Any = None,
    error: float | None = None,
    power: float = 1.0,
    rng: Seed = None,
) -> Answer:
    """The outgoing messages of a factor for these incoming ones.

    Parameters
    ----------
    factor : Factor
        Any factor; its given values stay as they are.
    *incoming : Family
        One for each of its variables, in the order of its arguments: a batch of the size of the factor's plate, or a
        batch of any size if the factor has no plate, one member for each question.
    oracle : Oracle, optional
        For a black-box factor; by default its own, or as `infer` would choose.
    error : float, optional
        The largest acceptable error of a belief, in standard deviations: members in more `doubt` are computed again
        with more work.
    power : number
        α of power expectation propagation.
    rng : None, int, numpy Generator or JAX key
        For oracles that sample.

    Returns
    -------
    Answer
        `messages`, their standard `errors` in natural parameters, `effective` sample sizes, `doubt` and
        `log_normaliser`, as NumPy arrays; not for use inside `jax.jit`, `vmap` or `grad`.

    Examples
    --------
    >>> from meanmap import ep
    >>> factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    >>> answer = ep.extending.ask(factor, ep.Normal([0.0, 3.0], 1.0))
    >>> answer.messages[0].precision.round(4).tolist(), bool(answer.errors[0].precision.max() < 1e-9)
    ([0.2059, 0.0554], True)
    >>> drawing = ep.ImportanceSampling()
    >>> sampled = ep.extending.ask(factor, ep.Normal([0.0, 3.0], 1.0), oracle=drawing, error=0.005, rng=0)
    >>> bool(sampled.doubt.max() <= 0.005)
    True
    """
    with remembering() as memory:
        return _asked(factor, incoming, oracle, power, error, rng, memory)


def _asked(
    factor: Any,
    incoming: tuple[Any, ...],
    oracle: Any,
    power: float,
    error: float | None,
    rng: Seed,
    memory: Any,
) -> Answer:
    refuse_no_oracle(oracle, "oracle")
    if factor.asks_oracle:
        factor = with_oracle(factor, oracle, memory)
    elif oracle is not None:
        raise KindError(f"{factor.name} computes its own messages; leave out oracle.")
    variables = [a for a in factor.arguments if not a.known]
    if len(variables) != len(incoming):
        raise ShapeError(f"{factor.name} has {len(variables)} variables; got {len(incoming)} incoming messages.")
    for argument, message in zip(variables, incoming, strict=True):
        variable = argument.variable
        if type(message) is not variable.family:
            raise KindError(
                f"the message from {variable.name!r} to {factor.name} is {a_type(message)}; "
                f"expected {with_article(variable.family.__name__)}."
            )
    messages = iter(incoming)
    with concrete("ask"), Door():
        filled = tuple(
            a.values if a.known else jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), next(messages))
            for a in factor.arguments
        )
        if factor.asks_oracle:
            return _questions(factor, filled, power, Rng.of(rng).key, error)
        answer = compiled_answer(factor, jax.tree.map(jnp.asarray, filled), power, Rng.of(rng).key)
        return jax.tree.map(np.array, answer)


def _questions(factor: FactorLike, filled: tuple[Any, ...], power: float, key: Array, error: float | None) -> Answer:
    """A black box is asked in batches; one question is a batch of one."""
    shapes = [message.shape for message in filled if isinstance(message, Family)]
    shape = shapes[0]
    if set(shapes) != {shape}:
        listed = ", ".join(map(str, shapes))
        raise ShapeError(f"the messages to {factor.name} have batch shapes {listed}; expected the same one for all.")
    if len(shape) > 1:
        raise ShapeError(f"the messages to {factor.name} have batch shape {shape}; expected one axis, the plate.")
    batch = filled if shape else jax.tree.map(lambda leaf: np.asarray(leaf)[None], filled)
    questions = Questions.of(factor, batch, power, key)
    oracle = factor.oracle
    answer = check_answer(oracle, questions) if oracle.on_host else questions.ask(oracle, error)
    return answer if shape else answer[0]
