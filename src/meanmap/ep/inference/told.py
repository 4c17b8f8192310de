"""What factors say of one unknown whatever comes in: messages, and what these leave out of the log density."""

from functools import partial
from typing import Any

import jax
import numpy as np

from meanmap.ep.factor import Factor
from meanmap.ep.sweeps.plan import Plan, Port, fetched, gather, unpadded
from meanmap.ep.sweeps.sweep import compiled_answer
from meanmap.ep.variables import Selection

__all__ = ["told_by"]


def told_by(plan: Plan, factors: tuple[Factor, ...], places: list[int]) -> tuple[dict[str, list[Any]], float]:
    """The messages of the factors at these places, by the name of the unknown, and the sum of their constants."""
    told, constant = {a.name: [] for factor in factors for a in factor.arguments if not a.known}, 0.0
    for at in places:
        message, left = _said(plan, factors[at], at)
        argument = next(each for each in factors[at].arguments if not each.known)
        if isinstance(argument, Selection):
            message = jax.tree.map(partial(_added, argument), message)
        elif argument.plate is None and factors[at].plate is not None:
            message = jax.tree.map(lambda leaf: np.asarray(leaf).sum(0), message)
        told[argument.name].append(message)
        constant += left
    return told, constant


def _added(argument: Selection, leaf: Any) -> np.ndarray:
    """What rows say about members of a plate, added up."""
    total = np.zeros((*argument.variable.shape, *np.shape(leaf)[1:]))
    np.add.at(total, argument.index, leaf)
    return total


def _said(plan: Plan, factor: Factor, at: int) -> tuple[Any, float]:
    """What a factor says about its one unknown whatever comes in: its message, and the log of its constant."""
    incoming, position = [], 0
    for place, port in enumerate(plan.factors[at].arguments):
        if isinstance(port, Port):
            position, shape = place, plan.shapes[at]
            flat: Any = plan.flats[port.variable]
            given = plan.with_prior[port.variable]
            prior = plan.priors[port.variable] if given else type(flat).standard(shape)
            incoming.append(gather(prior, port, shape) if given else prior)
        else:
            incoming.append(port.values)
    with jax.enable_x64(True):
        answer = compiled_answer(plan.factors[at], tuple(incoming), 1.0, jax.random.key(0))
        message = jax.tree.map(fetched, answer.messages[position])
        both = jax.tree.map(lambda a, b: a + b, incoming[position], message)
        left = np.ravel(fetched(answer.log_normaliser - both.log_normaliser))[: factor.plate or 1]
    return unpadded(message, factor.plate), float(left.sum())
