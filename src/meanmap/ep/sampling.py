"""Messages by weighted points: importance sampling, and stratified sampling of the cavity."""

from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.ep import doubt
from meanmap.ep.factor import Answer
from meanmap.ep.lines import LINES, REACH, Nodes, log_message, nodes_of_cavity, project, to_nodes
from meanmap.ep.oracle import Oracle
from meanmap.families import Bernoulli, Distribution, Family, Normal

__all__ = ["ImportanceSampling", "Stratified"]

# Messages with more parameters than this are vectors'. Their errors come from leaving out each of so many groups.
_MOST_PARAMETERS = 2
_GROUPS = 16

# In memory at once, over all members of a block.
_POINTS_AT_ONCE = 2**16


class Sampler(Oracle):
    """What oracles with weighted points share: the ratio of two projections of the same points, with its error.

    With weights w of the tilted law and c of the cavity, the outgoing natural parameters are η(w) − η(c), where η
    projects the points. The incoming parameters themselves could be subtracted instead of η(c): that is what
    importance sampling does in the papers, and leaves the scatter of the points in the message, whereas here it
    cancels.

    The standard error is that of the delta method: ∂η/∂log wᵢ is the influence of point i, and the influences of
    independent groups of points are independent.
    """

    points: eqx.AbstractVar[int]

    # How many consecutive points make one stratum; 1: all points are independent.
    group: ClassVar[int] = 1

    @property
    def subtract_points(self) -> bool:
        """Whether the cavity's moments are those of the points."""
        return False

    @property
    def block(self) -> int:
        """Members in memory at once: some megabytes an array."""
        return max(_POINTS_AT_ONCE // self.points, 1)

    @abstractmethod
    def draw(
        self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], power: Any, key: jax.Array
    ) -> tuple[list[Nodes], jax.Array]:
        """Points of each input, and the log of how much each of them counts towards the cavity."""

    def check(self, factor: Any) -> None:
        """Any factor will do."""

    def member(self, factor: Any, incoming: tuple[Any, ...], power: Any, key: jax.Array) -> Answer:
        """Weighted points of the inputs, and their images under the factor."""
        over = factor.inputs(incoming)
        drawing, calling = jax.random.split(key)
        return self.conclude(factor, incoming, power, *self.draw(factor, incoming, over, power, drawing), calling)

    def conclude(
        self, factor: Any, incoming: tuple[Any, ...], power: Any, nodes: list[Nodes], log_cavity: jax.Array, key: Any
    ) -> Answer:
        """The messages that points make, which count so much towards the cavity."""
        over = factor.inputs(incoming)
        values = {at: grid.x for at, grid in zip(over, nodes, strict=True)}
        log_factor, outputs = factor.weigh(values, incoming, power, key)
        log_tilted = log_cavity + log_factor
        messages, errors, doubts = [None] * len(incoming), [None] * len(incoming), []
        places = [(at, grid, self.subtract_points) for at, grid in zip(over, nodes, strict=True)]
        places += [(at, grid, False) for at, grid in outputs.items()]
        for at, grid, paired in places:
            messages[at], errors[at], doubted = self._message(incoming[at], grid, log_tilted, log_cavity, paired)
            doubts.append(doubted)
        weights = jax.nn.softmax(log_tilted)
        laws = sum(incoming[at].log_normaliser for at in over)
        return Answer(
            tuple(messages),
            jax.nn.logsumexp(log_tilted) + laws,
            tuple(errors),
            1 / (weights**2).sum(),
            jnp.stack(doubts).max(),
        )

    def _message(
        self, incoming: Family, nodes: Nodes, log_tilted: jax.Array, log_cavity: jax.Array, paired: bool
    ) -> tuple[Any, Any, jax.Array]:
        kind = type(incoming)

        def ratio(log_tilted, log_cavity):
            base = project(kind, nodes, log_cavity) if paired else incoming
            return jax.tree.map(lambda a, b: a - b, project(kind, nodes, log_tilted), base)

        if len(jax.tree.leaves(incoming)) > _MOST_PARAMETERS or incoming.event_shape:
            # An influence on each entry of a matrix would cost a pass over the points for each: groups are left out.
            ends = jnp.stack([log_tilted, log_cavity], 1)
            message = ratio(log_tilted, log_cavity)
            errors, doubted = doubt.jackknife(
                lambda ends: jax.tree.map(jnp.add, ratio(ends[:, 0], ends[:, 1]), incoming), ends, _GROUPS
            )
            return message, errors, doubted
        message, back = jax.vjp(ratio, log_tilted, log_cavity)
        leaves, structure = jax.tree.flatten(message)
        rows = []
        for at in range(len(leaves)):
            one = jax.tree.unflatten(
                structure, [jnp.ones_like(v) if k == at else jnp.zeros_like(v) for k, v in enumerate(leaves)]
            )
            rows.append(sum(back(one)))
        covariance = self._covariance(jnp.stack(rows))
        errors = jax.tree.unflatten(structure, [jnp.sqrt(covariance[k, k]) for k in range(len(leaves))])
        belief = jax.tree.map(jnp.add, message, incoming)
        return message, errors, doubt.from_covariance(belief, covariance)

    def _covariance(self, influence: jax.Array) -> jax.Array:
        """Of the natural parameters: the sum over independent groups of points."""
        n = influence.shape[1]
        if self.group == 1:
            return influence @ influence.T * (n / (n - 1))
        strata = influence.reshape(len(influence), -1, self.group)
        centred = (strata - strata.mean(2, keepdims=True)).reshape(len(influence), n)
        return centred @ centred.T * (self.group / (self.group - 1))


class ImportanceSampling(Sampler):
    """Messages from independent draws, from the cavity or from a law of one's own.

    Parameters
    ----------
    points : int
        How many draws for each message.
    proposal : Distribution, optional
        What to draw every input from; by default its cavity, the law that comes in.
    paired : bool
        Whether to subtract the cavity's moments as those of the same points, which cancels most of the noise.

    Notes
    -----
    `ImportanceSampling.of_the_paper()` is Jitkrittum et al. (2015), section 5.1: 5 · 10⁵ draws from N(0, 200), and the
    cavity subtracted as it is.

    Examples
    --------
    >>> import jax
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> p = ep.Variable("p", ep.Beta)
    >>> model = ep.FactorGraph(ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=1))
    >>> post = ep.infer(model, messages=ep.ImportanceSampling(points=100_000), rng=0)
    >>> bool(abs(post["z"].mean - 0.4132) < 0.01), bool(post.effective_sample_size["sigmoid(z, p)"] > 50_000)
    (True, True)
    """

    points: int = eqx.field(static=True)
    proposal: Any
    paired: bool = eqx.field(static=True)

    def __init__(self, points: int = 10_000, proposal: Any = None, paired: bool = True):
        self.points = int(parameter(points, "points", axes=0, integer=True, at_least=4))
        if proposal is not None and not (isinstance(proposal, Distribution) and proposal.shape == ()):
            raise KindError(f"proposal is {proposal!r}; expected one distribution, such as Normal(0.0, 200.0).")
        self.proposal, self.paired = proposal, bool(paired)

    @classmethod
    def of_the_paper(cls) -> "ImportanceSampling":
        """What the paper's experiments use: 500,000 draws from N(0, 200)."""
        return cls(500_000, Normal(0.0, 200.0), paired=False)

    @property
    def subtract_points(self) -> bool:
        """As `paired` says."""
        return self.paired

    def more(self, times: int) -> "ImportanceSampling":
        """More draws."""
        return ImportanceSampling(self.points * times, self.proposal, self.paired)

    def draw(
        self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], power: Any, key: jax.Array
    ) -> tuple[list[Nodes], jax.Array]:
        """Draws of every input, and cavity over proposal."""
        del factor, power
        nodes, log_cavity = [], jnp.full(self.points, -jnp.log(self.points))
        for at, one in zip(over, jax.random.split(key, len(over)), strict=True):
            cavity = incoming[at]
            law = cavity if self.proposal is None else jax.tree.map(jnp.asarray, self.proposal)
            x = law.sample(self.points, one)
            if self.proposal is not None:
                log_cavity = log_cavity + cavity.log_density(x) - law.log_density(x)
            nodes.append(_as_nodes(type(cavity), x))
        return nodes, log_cavity


class Stratified(Sampler):
    """Messages from draws of the cavity that are spread evenly: two in each of points/2 strata of equal mass.

    Parameters
    ----------
    points : int
        How many draws for each message, an even number.

    Notes
    -----
    The strata of one variable are between quantiles of a mixture of its cavity and a wider law, in the coordinate x,
    log x or logit x; draws are uniform in a stratum and weighted by cavity over density, so nothing is approximated.
    Two draws a stratum tell the error without repetition. Several variables meet in random order (Latin hypercube), and
    the error is then that of strata of the first alone. The cavity's moments are those of the same points.

    Examples
    --------
    >>> import jax
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> p = ep.Variable("p", ep.Beta)
    >>> model = ep.FactorGraph(ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=1))
    >>> post = ep.infer(model, messages=ep.Stratified(), rng=0)
    >>> bool(abs(post["z"].mean - 0.4132) < 0.001)
    True
    """

    points: int = eqx.field(static=True)
    group: ClassVar[int] = 2

    def __init__(self, points: int = 1000):
        points = int(parameter(points, "points", axes=0, integer=True, at_least=4))
        self.points = points + points % 2

    @property
    def subtract_points(self) -> bool:
        """Always."""
        return True

    def more(self, times: int) -> "Stratified":
        """More draws."""
        return Stratified(self.points * times)

    def check(self, factor: Any) -> None:
        """Inputs are numbers: a vector has no quantiles."""
        for variable in factor.integrated():
            if variable.family not in LINES:
                raise KindError(
                    f"{variable.name!r} of {factor.name} is a {variable.family.__name__}, which has no strata: "
                    "type messages=ep.ImportanceSampling()."
                )

    def draw(
        self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], power: Any, key: jax.Array
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
        return _as_nodes(Bernoulli, (level < cavity.mean).astype(level.dtype)), jnp.zeros(count)
    if isinstance(cavity, Normal):
        edges = cavity.mean + cavity.sd * _normal_edges(strata)
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
    low, high = np.full(strata - 1, -REACH), np.full(strata - 1, REACH)
    middle = np.zeros(strata - 1)
    for _ in range(60):
        middle = (low + high) / 2
        above = (ndtr(middle) + ndtr(middle / 2)) / 2 > level
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.concatenate([[-REACH], middle, [REACH]])


def _edges(cavity: Family, strata: int) -> jax.Array:
    """The same for a law on a grid, interpolated: whatever the edges are, the draws are weighted by their density.

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


def _as_nodes(kind: type, x: jax.Array) -> Nodes:
    name = getattr(kind, "coordinates", ("x",))[-1]
    if name == "log":
        return Nodes(jnp.log(x), x, jnp.zeros(()))
    return Nodes(jnp.log(x) - jnp.log1p(-x) if name == "logit" else x, x, jnp.zeros(()))
