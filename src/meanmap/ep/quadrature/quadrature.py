"""Messages by quadrature, over one or two numbers: where the tilted distribution has its mass, however narrow or far
that is.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import with_article
from meanmap.core.types import Array
from meanmap.ep.factor import Answer, FactorLike, replaced
from meanmap.ep.lines import Nodes, log_message, tilted_natural, to_nodes, values, window
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.piecewise.pieces import MARKS
from meanmap.ep.quadrature.beyond import PLACES, continued, places
from meanmap.ep.quadrature.enclosed import enclosed
from meanmap.ep.quadrature.enough import DEPTH_OF_TWO, is_remembered, known_well
from meanmap.ep.quadrature.few import FewNodes
from meanmap.ep.quadrature.integrals import NODES, RULES, answered, conclude, spread_out
from meanmap.ep.quadrature.mesh import DEPTH, Grid, Weighed
from meanmap.ep.quadrature.plane import bent, followed
from meanmap.families import Normal

__all__ = ["Quadrature", "with_few_nodes"]

# A distribution on a single value, such as the output of a step, is represented by a Normal _OF_ONE_VALUE times as
# precise as the incoming message, which rounding then preserves. The same holds for a distribution more than
# _TOO_PRECISE times as precise, if other values have next to no weight (less than _NO_WEIGHT beyond a tenth of a
# standard deviation): the incoming message would be lost, and sweeps would not converge. Narrow distributions on many
# values keep their spread.
_OF_ONE_VALUE, _TOO_PRECISE, _NO_WEIGHT = 1e8, 1e12, 1e-3

# An interpolated function of two numbers is evaluated first in this share of the window of the cavity, for a Normal
# ±2.1 standard deviations.
_FIRST = 0.22

# Outputs are far from the data if none comes within this many standard deviations: e⁻²⁰ of what they could be.
_FAR = 6.5

# Nodes along each dimension.
_DEFAULT = {1: NODES, 2: 97}


class Quadrature(Oracle):
    """Messages of a black-box factor by quadrature that searches for the mass of the tilted distribution.

    `ep.infer(model, ep.Quadrature())` uses it for every black-box factor; it is the default for one or two numbers.

    In one dimension the trapezium rule comes first, in the coordinate of the family (x, log x, logit x), with few nodes
    over the incoming messages: the error is near rounding where the factor is smooth and not much narrower. A member
    for which this is not accurate enough gets nodes that are moved to where its mass is, dense about the core and
    sparse far away; and if that is not enough, panels of its own, cut where a peak may hide between nodes and where
    errors are large, and extended where an end still matters. Labels and counts of a Normal (`Logistic`, `Poisson`)
    need 21 nodes if the incoming message is narrow, and these show whether they are enough. In two dimensions a
    grid follows the mass: it is moved, stretched and sheared until it fits.

    A function of one or two numbers that JAX cannot trace is never evaluated twice at the same point: during a run it
    is kept as polynomials on pieces of the line, or on rectangles, for all sweeps and all rows whose other arguments
    are equal. It is called for more only where the tilted distribution has its mass and the error of a polynomial would
    show in a message; on the line jumps, and ends of regions without numbers, are found by bisection. The remaining
    error is part of `doubt`, and so is the noise of the function's own computing, in single precision or by solvers
    with a tolerance: stated errors of noisy functions hold at 99.9% of points, at 99.8% where the noise grows tenfold
    along a piece, and not at outliers. A function of two numbers is called first within 2.1 standard deviations of the
    mean of the cavity, and further out only where the tilted density is above e⁻²⁰ of its peak at an end or at one of
    64 points. Errors below 10⁻⁵ of its values that three cuts did not reduce tenfold, as for solvers whose steps depend
    on the arguments, are stated and not reduced further; after 4096 evaluations, those below 10⁻³.

    Polynomials are checked at values between their nodes. Each sixteenth of the mass of the root of a belief, .22
    standard deviations at its centre, has a point at which the function was called; where all rows share the function,
    so has each eightieth of the mass of the incoming message. Over two numbers each of 64 shares of the mass of the
    roots of both distributions has one. A peak that fits between these points, and is 0 at them, is missed, and so is
    one that lies where the incoming message has almost no mass, beyond 9.5 standard deviations of a Normal, with a
    valley before it: `doubt` covers neither, unless no value that was seen comes within 6.5 standard deviations of the
    belief about the output: that has a doubt of 1, unless the program of a JAX function of one number shows that no
    value between these points comes nearer either. A wider prior makes it look further.

    Parameters
    ----------
    points : int, optional
        Nodes along each dimension: 257 for one, 97 for two.

    Notes
    -----
    Only for factors that integrate over at most two numbers, and no sampler with randomness of its own. Remaining
    errors are in `doubt`, and in the notes of a run; an unresolved peak has a doubt of 1 or more, over two numbers as
    much as the share of the distribution that it may have. A peak that changes nothing at any node cannot be seen by
    any rule: one of width .002 above a floor of .001 was missed. Over two numbers a kink along neither axis, such as
    that of max(a, b), may leave .0003 standard deviations without doubt. Cost: `points` calls of the factor per
    message, and 97 for each round in which nodes are moved, mostly one; 12 points for each of up to 30 rounds where
    panels are cut, and points² / 4 + points² in two dimensions. Of a function that is kept, 100 to 700 calls in all for
    rows that share its arguments; of two numbers, 250 to 3500 where it is smooth, and 8192, and those near jumps, where
    it is not: after 65,536 it is not called again. Panels are a separate program, compiled when it is first needed.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 4.0))
    >>> heavy = ep.Density(lambda z: -2 * jnp.log1p((z - 1) ** 2), z)
    >>> post = ep.infer(ep.FactorGraph(heavy), messages=ep.Quadrature(points=513))
    >>> round(float(post["z"].mean()), 4)
    0.8697
    >>> narrow = ep.Density(lambda z: -(((z - 15) / 1e-6) ** 2) / 2, z)
    >>> round(float(ep.infer(ep.FactorGraph(narrow))["z"].mean()), 9)
    15.0
    """

    points: int | None = eqx.field(static=True)
    level: int = eqx.field(static=True, repr=False)

    def __init__(self, points: int | None = None):
        if points is not None:
            points = int(parameter(points, "points", axes=0, integer=True, at_least=9))
            points += -(points - 1) % 4  # so that every second and every fourth node is a rule too
        self.points, self.level = points, len(RULES) - 1

    def check(self, factor: FactorLike) -> None:
        """At most two numbers, and no randomness."""
        if getattr(factor, "random", False):
            raise KindError(
                f"{factor.name} is a random sampler, which has no density to integrate: "
                "type messages=ep.Stratified() or ep.ImportanceSampling()."
            )
        for argument in factor.integrated():
            if not argument.family.is_scalar():
                family = with_article(argument.family.__name__)
                raise KindError(
                    f"{argument.name!r} of {factor.name} is {family}; quadrature is over numbers. "
                    "Type messages=ep.ImportanceSampling() or ep.Laplace()."
                )
        if len(factor.integrated()) > 2:
            raise ParameterError(
                f"{factor.name} integrates over {len(factor.integrated())} variables; quadrature takes at most 2. "
                "Type messages=ep.ImportanceSampling() or ep.Laplace()."
            )

    def more(self, times: int) -> "Quadrature":
        """More nodes along each dimension."""
        return Quadrature((self.points or max(_DEFAULT.values())) * times)

    def quick(self, families: tuple[Any, ...]) -> "Quadrature":
        """Without the rule that costs most."""
        line = len(families) == 1 and families[0].states is None
        return replaced(self, level=self.level - 1) if line and self.level else self

    def answer(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Few nodes for all members, a grid for those that these leave in doubt, and panels for what is left."""
        over = factor.inputs(incoming)
        smooth = self.points is None and getattr(factor, "smooth", False)
        oracle = FewNodes(parts=self.parts) if smooth else super()
        first = oracle.answer(factor, incoming, power, key)
        if len(over) == 2 or incoming[over[0]].states is not None:
            return first

        def ask(rule, given):
            return rule(_weigher(factor, given, over, power), given, window(given[over[0]]), self._count(over))

        return answered(range(0 if smooth else 1, self.level + 1), self.parts, first, ask, incoming)

    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Few nodes over one number, or a grid that follows the mass of two."""
        del key
        over = factor.inputs(incoming)
        weigh = _weigher(factor, incoming, over, power)
        windows = [window(incoming[at]) if incoming[at].states is None else None for at in over]
        if len(over) == 2:
            kept = is_remembered(factor, [type(incoming[at]) for at in over])
            if kept:  # a solver may take minutes far out, or fail there
                windows = [_middle(incoming[at], one) for at, one in zip(over, windows, strict=True)]
            depth = DEPTH_OF_TWO if kept else DEPTH
            grid, found, overlooked, undefined = followed(weigh, windows, self._count(over), depth, steps=kept)
            shape = [2 if one is None else self._count(over) for one in windows]
            resolved = spread_out(found, grid)
            return conclude(
                incoming, found, grid, resolved, overlooked, undefined, cautious=bent(found, shape, grid.log_weights[0])
            )
        if windows[0] is None:
            known = jnp.array(incoming[over[0]].states)
            states = Grid(known, jnp.zeros((3, len(known))))
            return conclude(incoming, weigh(states.points), states, True)
        return RULES[0](weigh, incoming, windows[0], self._count(over))

    def _count(self, over: tuple[int, ...]) -> int:
        return self.points or _DEFAULT[len(over)]


def with_few_nodes(factor: Any) -> Any:
    """A smooth factor with few nodes alone, in place of all rules of a quadrature; every other one as it is."""
    oracle: Any = getattr(factor, "oracle", None)
    few = isinstance(oracle, Quadrature) and oracle.points is None and factor.smooth
    return replaced(factor, oracle=FewNodes(parts=oracle.parts)) if few else factor


def _weigher(
    factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array
) -> Callable[..., Weighed]:
    """What a factor says at points of the coordinates of its inputs."""
    # In log x or logit x a density goes on beyond the numbers at which its function can be called.
    goes_on = len(over) == 1 and factor.powered and incoming[over[0]].coordinates[-1] != "x"

    def weigh(*coordinates, moving=False):
        if goes_on:
            coordinates = (jnp.concatenate([coordinates[0], places(coordinates[0])]),)
        nodes = {at: to_nodes(type(incoming[at]), c, jnp.zeros(())) for at, c in zip(over, coordinates, strict=True)}
        log_cavity: Any = sum(log_message(incoming[at], grid) + grid.log_weight for at, grid in nodes.items())
        error = marks = jumps = None
        if is_remembered(factor, [type(incoming[at]) for at in over]):
            found, error, marks = known_well(factor, incoming, over, coordinates, log_cavity, power, moving)
            log_factor, outputs, undefined = factor.judge(found, incoming, power)
            if len(over) == 1:
                marks, jumps = marks[:, :MARKS], marks[:, MARKS:]
        else:
            points = {at: grid.x for at, grid in nodes.items()}
            log_factor, outputs, undefined = factor.weigh(points, incoming, power, None)
        unknown = None
        if goes_on:
            kept = slice(len(coordinates[0]) - PLACES)
            coordinate = coordinates[0][kept]
            log_factor, unknown = continued(coordinate, log_factor[kept], log_factor[kept.stop :])
            nodes = {at: Nodes(*(part[kept] for part in grid)) for at, grid in nodes.items()}
            log_cavity, undefined = log_cavity[kept], undefined[kept]
            error = None if error is None else error[kept]
        # Where a value cannot be, there is no answer at all.
        height = jnp.where(jnp.isnan(log_factor).any(), jnp.nan, log_cavity + log_factor)
        log_undefined = log_cavity - sum(incoming[at].log_normaliser for at in over)
        log_undefined = jnp.where(undefined, log_undefined, -jnp.inf)
        every = nodes | {at: Nodes(*map(jnp.ravel, out)) for at, out in outputs.items()}
        wanted = {at: values(type(incoming[at]), grid) for at, grid in every.items()}
        least = [_least(incoming[at]) if at in outputs else 0.0 for at, found in wanted.items() for _ in found]
        wanted = [value for found in wanted.values() for value in found]
        messages = {at: _projection(incoming[at], grid) for at, grid in every.items()}
        unreached = _unreached(incoming, outputs)
        above = _above(factor, incoming, over)
        return Weighed(
            height, log_factor, wanted, messages, error, marks, jumps, log_undefined, unknown, unreached, least, above
        )

    return weigh


def _unreached(incoming: tuple[Any, ...], outputs: dict[int, Nodes]) -> Any:
    """Whether all values of an output lie far from what other factors say of it: a narrow region may have others."""
    found: Any = np.False_
    for at, values_of in outputs.items():
        if type(incoming[at]) is Normal:
            known = incoming[at].precision > 0
            mean = jnp.where(known, incoming[at].mean(), 0.0)
            apart = incoming[at].precision * (values_of.x - mean) ** 2
            found = found | (known & (jnp.where(jnp.isnan(apart), jnp.inf, apart).min() > _FAR**2))
    return found


def _above(factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...]) -> Callable[..., jax.Array] | None:
    """How high the log of a factor may be between points of its one number, if its program says what the output is."""
    at, *more = over
    if more or factor.host or not factor.outputs or type(incoming[-1]) is not Normal:
        return None
    kind, others = type(incoming[at]), [value for place, value in enumerate(incoming[:-1]) if place != at]

    def above(low: jax.Array, high: jax.Array) -> jax.Array:
        first, last = (to_nodes(kind, end, jnp.zeros(())).x for end in (low, high))
        images = enclosed(factor.function, first, last, at, others)
        nearest = jnp.clip(incoming[-1].mean(), images.low, images.high)
        return jnp.asarray(log_message(incoming[-1], to_nodes(Normal, nearest, jnp.zeros(()))))

    return above


def _least(incoming: Any) -> Any:
    """Of an output with a smaller variance the projection is that of one value."""
    known = type(incoming) is Normal
    return jnp.where(incoming.precision > 0, 1 / (_TOO_PRECISE * incoming.precision), 0.0) if known else 0.0


def _middle(message: Any, window: Any) -> tuple[jax.Array, jax.Array]:
    """The part of a window about the mean that is looked at first."""
    mean = jnp.asarray(message.mean_in(message.coordinates[-1]))
    return tuple(mean + _FIRST * (end - mean) for end in window)


def _projection(incoming: Any, every: Nodes) -> Callable[[jax.Array, slice], Any]:
    if type(incoming) is not Normal:
        return lambda log_weights, some: tilted_natural(type(incoming), every.some(some), log_weights, incoming)

    def message(log_weights: jax.Array, some: slice) -> Normal:
        nodes = every.some(some)
        found = tilted_natural(Normal, nodes, log_weights, incoming)
        weights = jax.nn.softmax(jnp.broadcast_to(log_weights, nodes.x.shape))
        mean = jnp.where(weights > 0, weights * nodes.x, 0.0).sum()
        variance = jnp.where(weights > 0, weights * (nodes.x - mean) ** 2, 0.0).sum()
        most = jnp.where(jnp.isnan(found.precision), _OF_ONE_VALUE, _TOO_PRECISE)
        others = jnp.where((nodes.x - mean) ** 2 > 0.01 * variance, weights, 0.0).sum()
        one = (variance * most * incoming.precision < 1) & (incoming.precision > 0) & (weights > 0).any()
        one = one & (jnp.isnan(found.precision) | (others < _NO_WEIGHT))
        precision = _OF_ONE_VALUE * incoming.precision
        point = Normal.from_natural(precision * mean, precision)
        return jax.tree.map(lambda a, b: jnp.where(one, a, b), point, found)

    return message
