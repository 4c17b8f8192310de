"""Messages by points that are spread evenly over the cavity: two in each of many strata."""

from functools import cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.bisection import bisect
from meanmap.core.errors import KindError
from meanmap.core.language import with_article
from meanmap.core.types import Array
from meanmap.ep.factor import FactorLike
from meanmap.ep.lines import REACH, Nodes, as_nodes, log_message, nodes_of_cavity, to_nodes
from meanmap.ep.oracles.sampling import Sampler
from meanmap.families import Bernoulli, Family, Normal

__all__ = ["Stratified"]


class Stratified(Sampler):
    """Messages from draws of the cavity that are spread evenly: two in each of points/2 strata of equal mass.

    `ep.infer(model, ep.Stratified())` uses it for every black-box factor.

    Parameters
    ----------
    points : int
        The number of draws for each message, an even number.

    Notes
    -----
    The strata of one variable are between quantiles of a mixture of its cavity and a wider distribution, in the
    coordinate x, log x or logit x; draws are uniform in a stratum and weighted by cavity over density, so nothing is
    approximated. Two draws per stratum give the error without repetition. Several variables meet in random order (Latin
    hypercube), and the error is then that of strata of the first alone. The cavity's moments are those of the same
    points.

    Examples
    --------
    >>> import jax
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> p = ep.Variable("p", ep.Beta)
    >>> model = ep.FactorGraph(ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=1))
    >>> post = ep.infer(model, messages=ep.Stratified(), rng=0)
    >>> bool(abs(post["z"].mean() - 0.4132) < 0.001)
    True
    """

    points: int = eqx.field(static=True)
    group: ClassVar[int] = 2

    def __init__(self, points: int = 1000):
        points = int(parameter(points, "points", axes=0, integer=True, at_least=4))
        self.points = points + points % 2

    @property
    def subtract_points(self) -> bool:
        """Always: the moments of the cavity are taken from the same strata, so that their errors cancel."""
        return True

    def check(self, factor: FactorLike) -> None:
        """Inputs are numbers: a vector has no quantiles."""
        for variable in factor.integrated():
            if not variable.family.is_scalar():
                family = with_article(variable.family.__name__)
                raise KindError(
                    f"{variable.name!r} of {factor.name} is {family}, which has no strata: "
                    "type messages=ep.ImportanceSampling()."
                )

    def draw(
        self, factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array, key: jax.Array
    ) -> tuple[list[Nodes], jax.Array]:
        """Draws of every input, and cavity over interpolated density."""
        del factor, power
        nodes, log_cavity = [], jnp.full(self.points, -jnp.log(self.points))
        for number, (at, one) in enumerate(zip(over, jax.random.split(key, len(over)), strict=True)):
            drawing, mixing = jax.random.split(one)
            grid, log_weight = _strata(incoming[at], self.points, drawing)
            if number:
                order = jax.random.permutation(mixing, self.points)
                grid, log_weight = Nodes(*(leaf[order] for leaf in grid)), log_weight[order]
            nodes.append(grid)
            log_cavity = log_cavity + log_weight
        return nodes, log_cavity


def _strata(cavity: Family, count: int, key: jax.Array) -> tuple[Nodes, jax.Array]:
    """Two draws from each of count/2 strata, and log(cavity / density of the draws)."""
    strata = count // 2
    # Thirty-two random bits place a point in its stratum finely enough, and cost half of sixty-four.
    bits = jax.random.bits(key, (strata, 2), jnp.uint32)
    uniform = (bits.astype(cavity.natural[0].dtype) + 0.5) * 2.0**-32
    if isinstance(cavity, Bernoulli):
        level = ((jnp.arange(strata)[:, None] + uniform) / strata).reshape(-1)
        return as_nodes(Bernoulli, (level < cavity.mean()).astype(level.dtype)), jnp.zeros(count)
    if isinstance(cavity, Normal):
        edges = jnp.asarray(cavity.mean() + cavity.sd() * _normal_edges(strata))
    else:
        edges = _edges(cavity, strata)
    width = jnp.diff(edges)
    c = (edges[:-1, None] + width[:, None] * uniform).reshape(-1)
    nodes = to_nodes(type(cavity), c, jnp.zeros(()))
    log_density = log_message(cavity, nodes) + nodes.log_weight - cavity.log_normaliser
    return nodes, log_density + jnp.repeat(jnp.log(width * strata), 2)


@cache
def _normal_edges(strata: int) -> np.ndarray:
    """Where the mixture of N(0, 1) and its fourth root, N(0, 4), is cut into parts of equal mass; by bisection."""
    from scipy.special import ndtr

    level = np.arange(1, strata) / strata
    start = np.full(strata - 1, -REACH), np.full(strata - 1, REACH)
    low, high = bisect(lambda x: (ndtr(x) + ndtr(x / 2)) / 2 <= level, *start, 60)
    return np.concatenate([[-REACH], (low + high) / 2, [REACH]])


def _edges(cavity: Family, strata: int) -> jax.Array:
    """Where a distribution on a grid is cut into strata: whatever the edges are, draws are weighted by their density.

    Half of the mass is the cavity flattened to its fourth root: the message is about how the factor bends in the tails,
    and equal shares of the cavity itself leave a whole tail to one stratum.
    """
    grid = nodes_of_cavity(cavity, 385)
    log_mass = log_message(cavity, grid) + grid.log_weight
    log_cell = jnp.logaddexp(log_mass[1:], log_mass[:-1])  # between grid points
    mass = (jax.nn.softmax(log_cell) + jax.nn.softmax(log_cell / 4)) / 2
    ends = jnp.concatenate([jnp.zeros(1), jnp.cumsum(mass)])
    inner = jnp.interp(jnp.arange(1, strata) / strata, ends, grid.coordinate)
    return jnp.concatenate([grid.coordinate[:1], inner, grid.coordinate[-1:]])
