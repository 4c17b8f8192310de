"""Messages of a smooth factor of one Normal number, by few nodes that say themselves whether they are enough."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander

from meanmap.core.types import Array
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.lines import tilted_natural
from meanmap.ep.oracles.oracle import Oracle
from meanmap.families import Normal

__all__ = ["FewNodes"]

# The factor is a series of Hermite polynomials about the incoming message, of which Gauss and Hermite's rule confuses
# those of degree 2m − 2 and more with what is asked for. These are about the squares of those of degrees m − 2 and
# m − 1, which it finds: their shares of the constant, squared, are about the error. Of what comes out, the products of
# the factor and each statistic are looked at in the same way. Errors were up to three times these squares, for labels
# of logits with standard deviations up to 3 and doubts below 1e-6; five times as much is stated, and the doubt is more
# careful. Up to .8 standard deviations of a logit there was none.
_NODES, _DEGREES, _CAREFUL, _OUTPUTS, _STATED = 21, (0, 1, 2, 19, 20), 1e4, 100.0, 5.0


class FewNodes(Oracle):
    """Gauss and Hermite's rule about the incoming message: enough where this is narrow beside the factor."""

    def member(self, factor: FactorLike, incoming: tuple, power: Array, key: jax.Array) -> Answer:
        """The messages by what changes the cavity, so that next to nothing keeps its digits."""
        del key
        (at,) = factor.inputs(incoming)
        nodes, weights = hermegauss(_NODES)
        polynomials = hermevander(nodes, _NODES)[:, _DEGREES] / np.sqrt(
            [float(math.factorial(degree)) for degree in _DEGREES]
        )
        cavity = incoming[at]
        mean, sd = cavity.precision_mean / cavity.precision, 1 / jnp.sqrt(cavity.precision)
        log_factor, outputs, _ = factor.weigh({at: mean + sd * nodes}, incoming, power, None)
        top, rule = log_factor.max(), polynomials * (weights / weights.sum())[:, None]
        tilted = jnp.exp(log_factor - top)
        total, *sums = tilted @ rule
        moved, two, *last = (each / total for each in sums)
        grown = 2**0.5 * two - moved**2
        precision = -grown / (1 + grown) * cavity.precision
        message = Normal.from_natural(precision * mean + moved / (sd * (1 + grown)), precision)
        off = jnp.maximum(*map(jnp.abs, last)) ** 2
        doubt = _CAREFUL * off
        shares = tilted * rule[:, 0] / total
        for to, reached in outputs.items():
            for each in _apart(type(incoming[to]), reached.x, shares):
                share = jnp.abs((tilted * each) @ rule[:, -2:] / total).max() ** 2
                off, doubt = jnp.maximum(off, share), jnp.maximum(doubt, _OUTPUTS * share)
        off = _STATED * off
        error = Normal.from_natural(off * (1 + jnp.abs(mean) / sd) / sd, off * cavity.precision)
        total = cavity.log_normaliser + jnp.log(total) + top
        messages: list[Any] = [None] * len(incoming)
        errors: list[Any] = [None] * len(incoming)
        messages[at], errors[at] = message, error
        for to, reached in outputs.items():
            messages[to] = tilted_natural(type(incoming[to]), reached, jnp.log(shares), incoming[to])
            errors[to] = jax.tree.map(lambda a, b: off * jnp.abs(a + b), messages[to], incoming[to])
        return Answer(tuple(messages), total, tuple(errors), doubt=doubt, undefined=jnp.zeros(()))


def _apart(kind: type[Any], values: jax.Array, shares: jax.Array) -> list[jax.Array]:
    """The statistics of a family at nodes, without means, uncorrelated and of variance 1 where these have shares."""
    found: list[jax.Array] = []
    for each in kind._statistics(values):
        rest = each - shares @ each
        for other in found:
            rest = rest - (shares @ (rest * other)) * other
        found.append(rest / jnp.sqrt(shares @ rest**2))
    return found
