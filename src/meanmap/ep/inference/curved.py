"""How unknowns that meet in a function vary together: slopes and curvatures of the function at the beliefs."""

from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.families import MultivariateNormal, Normal

__all__ = ["curvatures", "has_slopes", "slopes"]


def has_slopes(factor: Factor) -> TypeGuard[BlackBoxFactor]:
    """Whether the function can be differentiated: it is no sampler, and JAX runs it."""
    return isinstance(factor, BlackBoxFactor) and not factor.host and not factor.random


def slopes(factor: BlackBoxFactor, beliefs: dict[str, Any]) -> list[np.ndarray]:
    """Derivatives of the output with respect to each Gaussian input, (members, length) each, at the means."""
    middles = _middles(factor, beliefs)[:-1]
    places = _gaussian(factor)[:-1]
    with jax.enable_x64(True):
        found = jax.vmap(jax.jacfwd(factor.function, argnums=places))(*map(jnp.asarray, middles))
    return [np.asarray(each).reshape(len(each), -1) for each in found]


def curvatures(factor: BlackBoxFactor, beliefs: dict[str, Any], sent: tuple[Any, ...]) -> np.ndarray:
    """Minus second derivatives of the log factor by all Gaussian unknowns that go in, one after another, a member each.

    Means of them over the beliefs, by the points that have all moments up to the third: where one coefficient
    multiplies others its curvature at their means leaves out their variances, and ties look tighter than they are.
    The incoming message from an output that is not Gaussian is part of the factor.
    """
    middles, places = _middles(factor, beliefs), _gaussian(factor)
    last = len(middles) - 1
    incoming = tuple(
        _cavity(argument, beliefs, message, factor.plate or 1) if factor.outputs and at == last else middles[at]
        for at, (argument, message) in enumerate(zip(factor.arguments, sent, strict=True))
    )
    lengths = [int(np.prod(middles[at].shape[1:])) for at in places]
    asked = [at for at, a in enumerate(factor.arguments) if not a.known and not (factor.outputs and at == last)]

    def height(moved: Array, came: tuple[Any, ...]) -> tuple[Array, Array]:
        values = {at: came[at][None] for at in asked}
        for at, part in zip(places, jnp.split(moved, np.cumsum(lengths)[:-1]), strict=True):
            values[at] = part.reshape(came[at].shape)[None]
        found, _, undefined = factor.weigh(values, came, jnp.asarray(1.0), jax.random.key(0))
        return found.sum(), undefined.any()

    start = np.concatenate([middles[at].reshape(len(middles[at]), -1) for at in places], axis=1)
    spread = np.concatenate([_spread(factor.arguments[at], beliefs, len(start)) for at in places], axis=1)
    size = start.shape[1]
    with jax.enable_x64(True):
        second = jax.vmap(jax.hessian(height, has_aux=True))
        came = jax.tree.map(jnp.asarray, incoming)
        ends = (start + side * np.sqrt(size) * spread * axis for axis in np.eye(size) for side in (-1, 1))
        evaluated = [second(jnp.asarray(place), came) for place in (start, *ends)]
    # Where the function has no value there are no derivatives either.
    middle, *found = (
        np.where(np.asarray(undefined)[:, None, None], np.nan, np.asarray(hessian)) for hessian, undefined in evaluated
    )
    mean = np.mean(found, axis=0)
    # A function that is not defined so far out is evaluated at the means.
    return -np.where(np.isfinite(mean).all((1, 2), keepdims=True), mean, middle)


def _gaussian(factor: BlackBoxFactor) -> tuple[int, ...]:
    """Positions of Gaussian unknowns."""
    families = (Normal, MultivariateNormal)
    return tuple(at for at, a in enumerate(factor.arguments) if not a.known and a.variable.family in families)


def _middles(factor: BlackBoxFactor, beliefs: dict[str, Any]) -> list[np.ndarray]:
    """The means of unknowns, and given values, one for each member."""
    count, found = factor.plate or 1, []
    for argument in factor.arguments:
        if argument.known:
            values = np.asarray(argument.values)
            found.append(values if values.ndim else np.broadcast_to(values, (count,)))
            continue
        mean = np.asarray(beliefs[argument.name].mean())
        mean = mean.reshape(argument.variable.plate or 1, *mean.shape[mean.ndim - bool(argument.variable.dimension) :])
        taken = mean[argument.index]
        found.append(np.broadcast_to(taken, (count, *taken.shape[1:])))
    return found


def _spread(argument: Any, beliefs: dict[str, Any], count: int) -> np.ndarray:
    """Standard deviations of a Gaussian unknown, (count, length), one row for each member."""
    belief, size = beliefs[argument.name], argument.variable.plate or 1
    if isinstance(belief, Normal):
        variances = np.asarray(belief.var())
    else:
        variances = np.diagonal(np.asarray(belief.cov()), axis1=-2, axis2=-1)
    taken = np.sqrt(variances).reshape(size, -1)[argument.index]
    return np.broadcast_to(taken, (count, taken.shape[1]))


def _cavity(argument: Any, beliefs: dict[str, Any], message: Any, count: int) -> Any:
    """The incoming message from an unknown number, for each member."""
    belief = beliefs[argument.name]
    each = [np.broadcast_to(np.ravel(one)[argument.index], (count,)) for one in belief.natural]
    return type(belief).from_natural(
        *(mine - np.ravel(np.asarray(sent)) for mine, sent in zip(each, message.natural, strict=True))
    )
