"""A Gaussian of known or unknown precision: over an unknown one by quadrature, all else in closed form."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data
from meanmap.ep.factor import Answer, Factor, check_family, common_plate, replaced
from meanmap.ep.factors.gaussian import HALF_LOG_TWO_PI, Sum
from meanmap.ep.lines import log_message, tilted_natural, to_nodes, values, window
from meanmap.ep.oracles.oracle import spread
from meanmap.ep.quadrature.integrals import NODES, RULES, answered
from meanmap.ep.quadrature.mesh import Weighed
from meanmap.ep.variables import Argument, read_argument, read_given
from meanmap.families import Gamma, Normal

__all__ = ["Gaussian", "GaussianPrecision"]


@own_words
def Gaussian(
    mean: Argument, out: Argument = None, *, precision: Argument = 1.0, observed: Data = None, name: str | None = None
) -> Any:
    """out ~ N(mean, 1/precision), for each member of a plate; the precision known, or a Gamma variable.

    Parameters
    ----------
    mean : Variable or array_like
        A Normal, or known numbers.
    out : Variable
        A Normal; leave it out where the outcome is `observed`.
    precision : array_like or Variable
        1/variance: positive numbers, or a Gamma.
    observed : array_like
        Outcomes, instead of `out`.
    name : str, optional
        Of the factor, for reports.

    Notes
    -----
    With a known precision this is `Sum` with noise. A Gamma is averaged over by quadrature; see `infer` for models in
    which everything else is linear.

    Examples
    --------
    >>> from meanmap import ep
    >>> mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    >>> post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=[1.0, 2.0, 3.0], precision=1.0)))
    >>> post["mu"]
    Normal(mean=1.5, sd=0.5)
    """
    if (out is None) == (observed is None):
        raise KindError("Gaussian needs an outcome: a Variable as out, or numbers as observed, and not both.")
    target = read_given(observed, "observed") if out is None else out
    if read_argument(precision, "precision").known:
        label = name or f"Gaussian({', '.join(read_argument(a, 'mean').name for a in (mean, target))})"
        return Sum(mean, out=target, precision=precision, name=label)
    return GaussianPrecision(mean, target, precision, name=name)


class GaussianPrecision(Factor):
    """x ~ N(mean, 1/τ) with a Gamma belief about the precision τ, for each member of a plate.

    Made by `Gaussian` when its precision is a variable.

    Parameters
    ----------
    mean, x : Variable or array_like
        Normals, or known numbers.
    precision : Variable
        A Gamma.

    Notes
    -----
    Given τ everything is Gaussian; the average over τ is by quadrature in log τ, as in `Quadrature`. Where the
    message from one side is flat, so are those to the other side and to τ. For given mean and x the factor is
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
    level: int = eqx.field(static=True, repr=False)
    parts: int = eqx.field(static=True, repr=False, default=1)
    approximate: ClassVar[bool] = True
    powered: ClassVar[bool] = True

    def __init__(self, mean: Argument, x: Argument, precision: Argument, name: str | None = None):
        mean, x, precision = (read_argument(v, n) for v, n in ((mean, "mean"), (x, "out"), (precision, "precision")))
        label = name or f"Gaussian({mean.name}, {x.name}, {precision.name})"
        check_family(label, "mean", mean, Normal, given=True)
        check_family(label, "out", x, Normal, given=True)
        check_family(label, "precision", precision, Gamma)
        common_plate(label, {"mean": mean, "out": x, "precision": precision})
        self.arguments, self.name, self.level = (mean, x, precision), label, len(RULES) - 1

    @property
    def constant(self) -> bool:
        """With mean and outcome given."""
        return all(argument.known for argument in self.arguments[:2])

    def needs_proper(self, position: int) -> bool:
        """Only the precision needs a proper distribution: flat Normals are the case of infinite variance."""
        return position == 2 and not self.constant

    def quick(self) -> "GaussianPrecision":
        """Without the rule that costs most."""
        return self if self.constant or not self.level else replaced(self, level=self.level - 1)

    def in_parts(self, number: int) -> Factor:
        """Each part of the plate by itself."""
        return replaced(self, parts=number)

    @property
    def has_density(self) -> bool:
        """It is one of numbers."""
        return True

    def log_density(self, *numbers: Any) -> jax.Array:
        """The log of the normal density."""
        mean, x, tau = numbers
        return jnp.log(tau) / 2 - tau * (x - mean) ** 2 / 2 - HALF_LOG_TWO_PI

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """A mixture over the nodes of τ."""
        del key
        mean, x, tau = incoming
        if self.constant:
            return self._conjugate(mean, x, tau, power)

        def ask(rule, given):
            return _whole(rule(_weigher(given, power), given, window(given[2]), NODES), given)

        def quick(given):
            return ask(RULES[0], given)

        first = jax.vmap(quick)(spread(incoming, tau.shape[0])) if tau.shape else quick(incoming)
        return answered(range(1, self.level + 1), self.parts, first, ask, incoming)

    def _conjugate(self, mean: jax.Array, x: jax.Array, tau: Gamma, power: Array) -> Answer:
        half = jnp.broadcast_to(power / 2, tau.shape)
        message = Gamma.from_natural(half, jnp.broadcast_to(-power * (x - mean) ** 2 / 2, tau.shape))
        total = jax.tree.map(jnp.add, tau, message)
        return Answer((None, None, message), total.log_normaliser - half * jnp.log(2 * jnp.pi))


def _weigher(incoming: tuple[Any, ...], power: Array) -> Callable[[jax.Array], Weighed]:
    """What the factor says at points of log τ, for one member, but for what is the same at all of them.

    N(x; mean, 1/τ)^α is N(x; mean, 1/(α τ)) times (2π/τ)^((1−α)/2) α^(−½).
    """
    mean, x, tau = incoming

    def weigh(points):
        nodes = to_nodes(Gamma, points, jnp.zeros(()))
        precision = power * nodes.x
        constant = (1 - power) / 2 * (2 * HALF_LOG_TWO_PI - nodes.coordinate) - jnp.log(power) / 2
        log_factor = _log_meeting(mean, x, precision) + constant
        height = log_factor + log_message(tau, nodes) + nodes.log_weight
        wanted = values(Gamma, nodes)
        messages: dict[int, Any] = {2: lambda w, some: tilted_natural(Gamma, nodes.some(some), w, tau)}
        for at, own, other in ((0, mean, x), (1, x, mean)):
            if isinstance(own, Normal):
                told = _told(own, other, precision)
                wanted += told[:2]
                messages[at] = partial(_mixture, own, *told)
        return Weighed(height, log_factor, wanted, messages)

    return weigh


def _centre(message: Normal) -> tuple[Any, Any]:
    """Whether a message has zero precision, and its mean, 0 in that case."""
    none = message.precision == 0
    return none, jnp.where(none, 0.0, message.precision_mean / jnp.where(none, 1.0, message.precision))


def _log_meeting(mean: Any, x: Any, precision: Array) -> jax.Array:
    """log ∫∫ exp(ν m − p m²/2 + ν' x − p' x²/2) N(x; m, 1/precision), but for what is the same at every precision.

    In differences of means, so that large ones do not cancel; what is flat meets everything alike.
    """
    first, second = sorted((mean, x), key=lambda side: not isinstance(side, Normal))
    none, centre = _centre(first)
    tilt = jnp.where(none, first.precision_mean**2 / (2 * precision), 0.0)
    if not isinstance(second, Normal):
        widened = 1 + first.precision / precision
        return tilt - (first.precision * (centre - second) ** 2 / widened + jnp.log(widened)) / 2
    other_none, other = _centre(second)
    tilt = tilt + jnp.where(other_none, second.precision_mean**2 / (2 * precision), 0.0)
    widened = first.precision + second.precision + first.precision * second.precision / precision
    widened = jnp.where(none & other_none, 1.0, widened)
    return tilt - (first.precision * second.precision * (centre - other) ** 2 / widened + jnp.log(widened)) / 2


def _whole(answer: Answer, incoming: tuple[Any, ...]) -> Answer:
    """With the part of the normaliser that is the same at every precision; ∞ where nothing is known on either side."""
    total = answer.log_normaliser
    for own, other in (incoming[:2], incoming[1::-1]):
        if not isinstance(own, Normal):
            continue
        none, centre = _centre(own)
        met, nothing = other, jnp.asarray(False)
        if isinstance(other, Normal):
            other_none, other_centre = _centre(other)
            more = own.precision_mean / (2 * jnp.where(other_none, 1, other.precision))
            met, nothing = other_centre + jnp.where(other_none, jnp.inf, more), none & other_none
            total = total + HALF_LOG_TWO_PI / 2
        towards = jnp.where(own.precision_mean == 0, 0.0, own.precision_mean * met)
        total = total + jnp.where(none, towards, own.precision_mean * centre / 2) + jnp.where(nothing, jnp.inf, 0.0)
    return Answer(answer.messages, total, answer.errors, doubt=answer.doubt, undefined=answer.undefined)


def _told(own: Normal, other: Any, precision: Array) -> list[jax.Array]:
    """Mean and standard deviation of one side given each precision, and whether nothing is known of it."""
    if isinstance(other, Normal):
        share = precision / (other.precision + precision)
        more, towards = other.precision * share, other.precision_mean * share
    else:
        more, towards = precision, precision * other
    total = own.precision + more
    nothing = total == 0
    mean = jnp.where(nothing, 0.0, (own.precision_mean + towards) / jnp.where(nothing, 1.0, total))
    return [mean, 1 / jnp.sqrt(jnp.where(nothing, 1.0, total)), nothing]


def _mixture(
    own: Normal, mean: jax.Array, sd: jax.Array, nothing: jax.Array, log_weights: jax.Array, some: slice
) -> Normal:
    """What is sent to a side that has these means and deviations, with these weights of some of them."""
    mean, sd = mean[some], sd[some]
    weights = jax.nn.softmax(log_weights)
    middle = (weights * mean).sum()
    precision = 1 / (weights * (sd**2 + (mean - middle) ** 2)).sum()
    message = Normal.from_natural(middle * precision - own.precision_mean, precision - own.precision)
    return jax.tree.map(lambda leaf: jnp.where(nothing.any(), 0.0, leaf), message)
