"""Linear maps without noise as functions, and factors in the order in which they compute unknowns from each other."""

from typing import Any

import jax.numpy as jnp

from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBox
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.inference.block import computed_by

__all__ = ["as_function", "in_order", "is_linear"]


def is_linear(factor: Factor) -> bool:
    """Whether a factor computes an unknown by a linear map without noise."""
    return isinstance(factor, Dot | Sum) and computed_by(factor) is not None


def as_function(factor: Any) -> Any:
    """The factor; of a linear map the same as a function."""
    if not is_linear(factor):
        return factor
    if isinstance(factor, Dot):
        return BlackBox(jnp.dot, *factor.arguments, name=factor.name)
    out, *terms = factor.arguments
    weights = factor.weights.tolist()
    return BlackBox(lambda *x: sum(a * b for a, b in zip(weights, x, strict=True)), *terms, out, name=factor.name)


def in_order(factors: tuple[Factor, ...], makers: list[int]) -> list[int] | None:
    """Those that compute unknowns, each after those whose results it takes; None if there is no such order."""
    made = {at: computed_by(factors[at]).name for at in makers}
    ordered = []
    while made:
        waiting = set(made.values())
        ready = [
            at for at, name in made.items() if not waiting & {a.name for a in factors[at].arguments if a.name != name}
        ]
        if not ready:
            return None
        ordered += ready
        made = {at: name for at, name in made.items() if at not in ready}
    return ordered
