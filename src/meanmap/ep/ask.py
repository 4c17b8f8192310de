"""Asking one factor for its messages, outside any model: to look at an oracle's errors, or to train an operator."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.rng import Rng
from meanmap.ep.blackbox import BlackBoxFactor
from meanmap.ep.factor import Answer, Factor
from meanmap.ep.infer import with_oracle
from meanmap.ep.sweep import compiled_answer
from meanmap.ep.variables import Given, Selection
from meanmap.families import Family

__all__ = ["ask"]


def ask(factor: Factor, *incoming: Family, oracle: Any = None, power: float = 1.0, rng: Any = None) -> Answer:
    """The outgoing messages of a factor for these incoming ones.

    Parameters
    ----------
    factor : Factor
        Any factor; what is given in it stays as it is.
    *incoming : Family
        One for each of its variables, in the order of its arguments: a batch of the size of the factor's plate, or a
        batch of any size if the factor has no plate, one member for each question.
    oracle : Oracle, optional
        For a black-box factor; by default its own, or as `infer` would choose.
    power : number
        α of power expectation propagation.
    rng : None, int, numpy Generator or JAX key
        For oracles that sample.

    Returns
    -------
    Answer
        `messages`, their standard `errors` in natural parameters, `effective` sample sizes and `log_normaliser`.

    Examples
    --------
    >>> from meanmap import ep
    >>> factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    >>> answer = ep.ask(factor, ep.Normal([0.0, 3.0], 1.0))
    >>> answer.messages[0].precision.round(4).tolist(), bool(answer.errors[0].precision.max() < 1e-9)
    ([0.2059, 0.0554], True)
    """
    if isinstance(factor, BlackBoxFactor):
        factor = with_oracle(factor, oracle)
    elif oracle is not None:
        raise KindError(f"{factor.name} computes its own messages; leave out oracle.")
    variables = [a for a in factor.arguments if not isinstance(a, Given)]
    if len(variables) != len(incoming):
        raise ShapeError(f"{factor.name} has {len(variables)} variables; got {len(incoming)} incoming messages.")
    for argument, message in zip(variables, incoming, strict=True):
        variable = argument.variable if isinstance(argument, Selection) else argument
        if type(message) is not variable.family:
            raise KindError(
                f"the message from {variable.name!r} to {factor.name} is a {type(message).__name__}; "
                f"expected a {variable.family.__name__}."
            )
    messages = iter(incoming)
    with jax.enable_x64(True):
        filled = tuple(
            a.values
            if isinstance(a, Given)
            else jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), next(messages))
            for a in factor.arguments
        )
        answer = compiled_answer(factor, jax.tree.map(jnp.asarray, filled), power, Rng.of(rng).key)
        return jax.tree.map(np.array, answer)
