"""The gradient of the log evidence of a run with respect to what its priors are made of."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean
from meanmap.ep.variables import Variable
from meanmap.families import Family

__all__ = ["evidence_gradient"]

# Priors whose expected statistics differ by more than this, relative to the largest, are not those of the run.
_SAME = 1e-4


def evidence_gradient(
    priors: Callable[[Any], Mapping[str, Family]],
    at: Any,
    variables: dict[str, Variable],
    beliefs: dict[str, Family],
    joint: dict[str, np.ndarray],
) -> Any:
    """Of log Z = log ∫ p(x; at) m(x) dx, where m is what all factors say about x.

    At a fixed point of EP the derivatives of log Z with respect to messages vanish, and so m is kept as it is. With
    `joint` draws from the posterior the gradient is the mean of that of log p.
    """
    with jax.enable_x64(True):
        at = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), at)
        used = _read(priors, at, variables)
        drawn = {name: joint[name] for name in used if name in joint}
        told = {name: beliefs[name] / variables[name].prior for name in used if name not in drawn}

        def log_evidence(parameters: Any) -> jax.Array:
            made = priors(parameters)
            of_draws = (made[name]._log_density(jnp.asarray(x)).mean() for name, x in drawn.items())
            return sum((_gained(made[name], message) for name, message in told.items()), sum(of_draws, jnp.zeros(())))

        return jax.tree.map(np.asarray, jax.grad(log_evidence)(at))


def _read(priors: Callable[[Any], Mapping[str, Family]], at: Any, variables: dict[str, Variable]) -> tuple[str, ...]:
    """The names of the variables whose priors these are, which must be the priors of the run."""
    made = priors(at)
    if not isinstance(made, Mapping) or not made:
        raise KindError(
            f"priors gives {a_type(made)}; expected a dictionary of priors by name, such as "
            "{'w': ep.Normal(0.0, variance)}."
        )
    for name, prior in made.items():
        if name not in variables:
            known = ", ".join(map(repr, variables))
            raise ParameterError(
                f"priors names {name!r}{did_you_mean(str(name), variables)}; the variables are {known}."
            )
        own = variables[name].prior
        if own is None or type(prior) is not type(own):
            had = "no prior" if own is None else type(own).__name__
            raise KindError(f"priors gives {name!r} {a_type(prior)}; the run had {had}.")
        new, old = (
            np.concatenate([*map(np.ravel, law.expected_statistics)]) for law in (prior.broadcast_to(own.shape), own)
        )
        if np.abs(new - old).max() > _SAME * np.abs(old).max():
            raise ParameterError(
                f"the prior of {name!r} at these parameters is not the one of this run: build the model with "
                "priors(at), run it, and ask that posterior."
            )
    return tuple(made)


def _gained(prior: Family, message: Family) -> jax.Array:
    """log ∫ p m, of all members of a plate together."""
    belief = prior * message
    return (belief._log_normaliser() - prior.broadcast_to(belief.shape)._log_normaliser()).sum()
