"""Messages of a smooth factor to one Normal number, by nine nodes that say themselves whether they are enough."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander

from meanmap.core.types import Array
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.oracles.oracle import Oracle
from meanmap.families import Normal

__all__ = ["FewNodes"]

# The factor is a series of Hermite polynomials about the incoming message, of which Gauss and Hermite's rule confuses
# those of degree 2m − 2 and more with what is asked for. These are about the squares of those of degrees m − 2 and
# m − 1, which it finds: their share of the constant, squared, times this, is the doubt.
_NODES, _DEGREES, _CAREFUL = 9, (0, 1, 2, 7, 8), 100.0


class FewNodes(Oracle):
    """Gauss and Hermite's rule about the incoming message: enough where this is narrow beside the factor."""

    def member(self, factor: FactorLike, incoming: tuple, power: Array, key: jax.Array) -> Answer:
        """Of what changes the cavity, so that next to nothing keeps its digits."""
        del key
        (at,) = factor.inputs(incoming)
        nodes, weights = hermegauss(_NODES)
        polynomials = hermevander(nodes, _NODES)[:, _DEGREES] / np.sqrt([math.factorial(degree) for degree in _DEGREES])
        cavity = incoming[at]
        mean, sd = cavity.precision_mean / cavity.precision, 1 / jnp.sqrt(cavity.precision)
        log_factor, *_ = factor.weigh({at: mean + sd * nodes}, incoming, power, None)
        top = log_factor.max()
        total, *sums = jnp.exp(log_factor - top) @ (polynomials * (weights / weights.sum())[:, None])
        moved, two, *last = (each / total for each in sums)
        grown = 2**0.5 * two - moved**2
        precision = -grown / (1 + grown) * cavity.precision
        message = Normal.from_natural(precision * mean + moved / (sd * (1 + grown)), precision)
        doubt = _CAREFUL * jnp.maximum(*map(jnp.abs, last)) ** 2
        error = Normal.from_natural(doubt * (1 + jnp.abs(mean) / sd) / sd, doubt * cavity.precision)
        total = cavity.log_normaliser + jnp.log(total) + top
        one = [None] * len(incoming)
        messages, errors = ((*one[:at], each, *one[at + 1 :]) for each in (message, error))
        return Answer(messages, total, errors, doubt=doubt, undefined=jnp.zeros(()))
