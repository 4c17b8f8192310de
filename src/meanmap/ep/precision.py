"""A Gaussian whose precision is unknown: one-dimensional quadrature over the precision, all else in closed form."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.ep.factor import Answer, Factor, check_family, common_plate
from meanmap.ep.gaussian import log_overlap, moments
from meanmap.ep.lines import log_message, nodes_of_cavity, refined, tilted_natural
from meanmap.ep.variables import Given, read_argument
from meanmap.families import Gamma, Normal

__all__ = ["GaussianPrecision"]

_NODES = 129


class GaussianPrecision(Factor):
    """x ~ N(mean, 1/τ) with a Gamma belief about the precision τ, for each member of a plate.

    Made by [`Gaussian`][] when its precision is a variable.

    Parameters
    ----------
    mean, x : Variable or array_like
        Normals, or known numbers.
    precision : Variable
        A Gamma.

    Notes
    -----
    Given τ everything is Gaussian; the average over τ is a trapezium rule in log τ. For given mean and x the factor is
    conjugate, and the message is Gamma(3/2, (x − mean)²/2), exactly. Gammas are projected on E[log τ] and E[τ].

    Examples
    --------
    >>> from meanmap import ep
    >>> tau = ep.Variable("tau", ep.Gamma(1.0, 1.0))
    >>> post = ep.infer(ep.FactorGraph(ep.Gaussian(0.0, observed=[1.0, -2.0], precision=tau)))
    >>> post["tau"]
    Gamma(shape=2, rate=3.5, mean=0.5714, sd=0.4041)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    approximate: ClassVar[bool] = True
    powered: ClassVar[bool] = True

    def __init__(self, mean: Any, x: Any, precision: Any, name: str | None = None):
        mean, x, precision = (read_argument(v, n) for v, n in ((mean, "mean"), (x, "out"), (precision, "precision")))
        label = name or f"Gaussian({mean.name}, {x.name}, {precision.name})"
        check_family(label, "mean", mean, Normal, given=True)
        check_family(label, "out", x, Normal, given=True)
        check_family(label, "precision", precision, Gamma)
        common_plate(label, {"mean": mean, "out": x, "precision": precision})
        self.arguments, self.name = (mean, x, precision), label

    @property
    def constant(self) -> bool:
        """With mean and outcome given."""
        return all(isinstance(argument, Given) for argument in self.arguments[:2])

    def needs_proper(self, position: int) -> bool:
        """At most the precision has to be a law: flat Normals are the case of infinite variance."""
        return position == 2 and not self.constant

    def answer(self, incoming: tuple[Any, ...], power: Any, key: jax.Array) -> Answer:
        """A mixture over the nodes of τ."""
        del key
        mean, x, tau = incoming
        if not isinstance(mean, Normal) and not isinstance(x, Normal):
            return self._conjugate(mean, x, tau, power)
        (m, v), (y, u) = moments(mean), moments(x)
        # N(x; mean, 1/τ)^α is N(x; mean, 1/(α τ)) times (2π/τ)^((1−α)/2) α^(−½).
        target, centre, spread = (mean, y, u) if isinstance(mean, Normal) else (x, m, v)

        def log_factor(precision):
            constant = (1 - power) / 2 * jnp.log(2 * jnp.pi / precision) - jnp.log(power) / 2
            return log_overlap(target, centre, spread + 1 / (power * precision)) + constant

        nodes = nodes_of_cavity(tau)
        log_weights = log_factor(nodes.x) + log_message(tau, nodes) + nodes.log_weight
        nodes = refined(Gamma, nodes, log_weights, _NODES)
        log_weights = log_factor(nodes.x) + log_message(tau, nodes) + nodes.log_weight
        weights = jax.nn.softmax(log_weights, 0)
        noise = 1 / (power * nodes.x)
        messages = (
            _mixture(mean, y, u + noise, weights),
            _mixture(x, m, v + noise, weights),
            tilted_natural(Gamma, nodes, log_weights, tau),
        )
        other = x if target is mean else mean
        known = other.log_normaliser if isinstance(other, Normal) else 0.0
        return Answer(messages, jax.nn.logsumexp(log_weights, 0) + known)

    def _conjugate(self, mean: jax.Array, x: jax.Array, tau: Gamma, power: Any) -> Answer:
        half = jnp.broadcast_to(power / 2, tau.shape)
        message = Gamma.from_natural(half, jnp.broadcast_to(-power * (x - mean) ** 2 / 2, tau.shape))
        total = jax.tree.map(jnp.add, tau, message)
        return Answer((None, None, message), total.log_normaliser - half * jnp.log(2 * jnp.pi))


def _mixture(message: Any, centre: jax.Array, variance: jax.Array, weights: jax.Array) -> Normal | None:
    """What is sent to a Normal when it meets N(centre, variance) with these weights over the first axis."""
    if not isinstance(message, Normal):
        return None
    precision = message.precision + 1 / variance
    means = (message.precision_mean + centre / variance) / precision
    mean = (weights * means).sum(0)
    spread = (weights * (1 / precision + (means - mean) ** 2)).sum(0)
    return Normal.from_natural(mean / spread - message.precision_mean, 1 / spread - message.precision)
