"""Messages by weighted points: importance sampling, and stratified sampling of the cavity."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.ep.factor import Answer
from meanmap.ep.lines import LINES, Nodes, log_message, nodes_of_cavity, project, to_nodes
from meanmap.ep.oracle import Oracle
from meanmap.families import Bernoulli, Distribution, Family, Normal

__all__ = ["ImportanceSampling", "Stratified"]

# Errors of a message with more parameters than this (vectors) would cost a pass over the points for each.
_MOST_PARAMETERS = 2


class Sampler(Oracle):
    """What oracles with weighted points share: the ratio of two projections of the same points, with its error.

    With weights w of the tilted law and c of the cavity, the outgoing natural parameters are η(w) − η(c), where η
    projects the points. The incoming parameters themselves could be subtracted instead of η(c): that is what
    importance sampling does in the papers, and leaves the scatter of the points in the message, whereas here it
    cancels.

    The standard error is that of the delta method: ∂η/∂log wᵢ is the influence of point i, and the influences of
    independent groups of points are independent.
    """

    block: ClassVar[int] = 64

    @abstractmethod
    def draw(self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], key: jax.Array) -> tuple:
        """Points of each input, and the log of how much each of them counts towards the cavity."""

    @property
    @abstractmethod
    def group(self) -> int:
        """How many consecutive points make one stratum (1: all points are independent)."""

    @property
    @abstractmethod
    def subtract_points(self) -> bool:
        """Whether the cavity's moments are those of the points."""

    def check(self, factor: Any) -> None:
        """Any factor will do."""

    def member(self, factor: Any, incoming: tuple[Any, ...], power: Any, key: jax.Array) -> Answer:
        """Weighted points of the inputs, and their images under the factor."""
        over = factor.inputs(incoming)
        drawing, calling = jax.random.split(key)
        nodes, log_cavity = self.draw(factor, incoming, over, drawing)
        values = {at: grid.x for at, grid in zip(over, nodes, strict=True)}
        log_factor, outputs = factor.weigh(values, incoming, power, calling)
        log_tilted = log_cavity + log_factor
        messages, errors = [None] * len(incoming), [None] * len(incoming)
        places = [(at, grid, self.subtract_points) for at, grid in zip(over, nodes, strict=True)]
        places += [(at, grid, False) for at, grid in outputs.items()]
        for at, grid, paired in places:
            messages[at], errors[at] = self._message(incoming[at], grid, log_tilted, log_cavity, paired)
        weights = jax.nn.softmax(log_tilted)
        laws = sum(incoming[at].log_normaliser for at in over)
        return Answer(tuple(messages), jax.nn.logsumexp(log_tilted) + laws, tuple(errors), 1 / (weights**2).sum())

    def _message(
        self, incoming: Family, nodes: Nodes, log_tilted: jax.Array, log_cavity: jax.Array, paired: bool
    ) -> tuple[Any, Any]:
        kind = type(incoming)

        def ratio(log_tilted, log_cavity):
            base = project(kind, nodes, log_cavity) if paired else incoming
            return jax.tree.map(lambda a, b: a - b, project(kind, nodes, log_tilted), base)

        if len(jax.tree.leaves(incoming)) > _MOST_PARAMETERS or incoming.event_shape:
            return ratio(log_tilted, log_cavity), jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), incoming)
        message, back = jax.vjp(ratio, log_tilted, log_cavity)
        leaves, structure = jax.tree.flatten(message)
        found = []
        for at in range(len(leaves)):
            one = jax.tree.unflatten(
                structure, [jnp.ones_like(v) if k == at else jnp.zeros_like(v) for k, v in enumerate(leaves)]
            )
            influence = sum(back(one))
            found.append(jnp.sqrt(self._variance(influence)))
        return message, jax.tree.unflatten(structure, found)

    def _variance(self, influence: Any) -> jax.Array:
        n = influence.shape[0]
        if self.group == 1:
            return (influence**2).sum() * n / (n - 1)
        strata = influence.reshape(-1, self.group)
        return self.group / (self.group - 1) * ((strata - strata.mean(1, keepdims=True)) ** 2).sum()


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
    def group(self) -> int:
        """One: the draws are independent."""
        return 1

    @property
    def subtract_points(self) -> bool:
        """As `paired` says."""
        return self.paired

    def draw(self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], key: jax.Array) -> tuple:
        """Draws of every input, and cavity over proposal."""
        del factor
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
    The strata of one variable are between quantiles of a mixture of its cavity and a wider law, interpolated on a grid;
    each draw is weighted by cavity over interpolated density, so that nothing is approximated. Two draws a stratum tell
    the error without repetition. Several variables meet in random order (Latin hypercube), and the error is then
    that of strata of the first alone. The cavity's moments are those of the same points.

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

    def __init__(self, points: int = 1000):
        points = int(parameter(points, "points", axes=0, integer=True, at_least=4))
        self.points = points + points % 2

    @property
    def group(self) -> int:
        """Two draws a stratum."""
        return 2

    @property
    def subtract_points(self) -> bool:
        """Always."""
        return True

    def check(self, factor: Any) -> None:
        """Inputs are numbers: a vector has no quantiles."""
        for variable in factor.integrated():
            if variable.family not in LINES:
                raise KindError(
                    f"{variable.name!r} of {factor.name} is a {variable.family.__name__}, which has no strata: "
                    "type messages=ep.ImportanceSampling()."
                )

    def draw(self, factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], key: jax.Array) -> tuple:
        """Draws of every input, and cavity over interpolated density."""
        del factor
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
    uniform = jax.random.uniform(key, (count // 2, 2), cavity.natural[0].dtype)
    level = ((jnp.arange(count // 2)[:, None] + uniform) * (2 / count)).reshape(-1)
    if isinstance(cavity, Bernoulli):
        x = (level < cavity.mean).astype(level.dtype)
        return _as_nodes(Bernoulli, x), jnp.zeros(count)
    grid = nodes_of_cavity(cavity, 385)
    log_mass = log_message(cavity, grid) + grid.log_weight
    log_cell = jnp.logaddexp(log_mass[1:], log_mass[:-1])  # between grid points
    # Half from the cavity flattened to its fourth root: the message is about how the factor bends in the tails, and
    # equal shares of the cavity itself leave a whole tail to one stratum.
    mass = (jax.nn.softmax(log_cell) + jax.nn.softmax(log_cell / 4)) / 2
    ends = jnp.concatenate([jnp.zeros(1), jnp.cumsum(mass)])
    cell = jnp.clip(jnp.searchsorted(ends, level, side="right") - 1, 0, mass.shape[0] - 1)
    step = grid.coordinate[1] - grid.coordinate[0]
    c = grid.coordinate[cell] + step * jnp.clip((level - ends[cell]) / mass[cell], 0, 1)
    nodes = to_nodes(type(cavity), c, jnp.log(step))
    log_density = log_message(cavity, nodes) + nodes.log_weight - cavity.log_normaliser
    return nodes, log_density - jnp.log(mass[cell])


def _as_nodes(kind: type, x: jax.Array) -> Nodes:
    name = getattr(kind, "coordinates", ("x",))[-1]
    if name == "log":
        return Nodes(jnp.log(x), x, jnp.zeros(()))
    return Nodes(jnp.log(x) - jnp.log1p(-x) if name == "logit" else x, x, jnp.zeros(()))
