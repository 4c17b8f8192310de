"""Messages from weighted points: the base class of such oracles, and importance sampling."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.core.settings import truth
from meanmap.core.types import Array
from meanmap.ep import doubt
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.lines import Nodes, as_nodes, project
from meanmap.ep.oracles.oracle import Oracle
from meanmap.families import Distribution, Family, Normal

__all__ = ["FEW", "ImportanceSampling", "Sampler"]

# Messages with more parameters than this are vectors'. Their errors come from leaving out each of this many groups.
_MOST_PARAMETERS = 2
_GROUPS = 16

# An effective sample size below this makes a standard error itself unreliable.
FEW = 30

# In memory at once, over all members of a block.
_POINTS_AT_ONCE = 2**16


class Sampler(Oracle):
    """Base class of oracles with weighted points: the ratio of two projections of the same points, with its error.

    With weights w of the tilted law and c of the cavity, the outgoing natural parameters are η(w) − η(c), where η
    projects the points. The incoming parameters themselves could be subtracted instead of η(c), as importance sampling
    does in the papers: this leaves the scatter of the points in the message, whereas here it cancels.

    The standard error is that of the delta method: ∂η/∂log wᵢ is the influence of point i, and the influences of
    independent groups of points are independent. Where the effective sample size m is below 30, the doubt is 1/√m at
    least.
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
        self, factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array, key: jax.Array
    ) -> tuple[list[Nodes], jax.Array]:
        """Points of each input, and the log weight of each of them towards the cavity."""

    def check(self, factor: FactorLike) -> None:
        """Any factor will do."""

    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Weighted points of the inputs, and their images under the factor."""
        over = factor.inputs(incoming)
        drawing, calling = jax.random.split(key)
        return self.conclude(factor, incoming, power, *self.draw(factor, incoming, over, power, drawing), calling)

    def conclude(
        self,
        factor: FactorLike,
        incoming: tuple[Any, ...],
        power: Array,
        nodes: list[Nodes],
        log_cavity: jax.Array,
        key: Array,
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
        effective = 1 / (weights**2).sum()
        # Where few points have all the weight their scatter tells nothing: of a single one there is none.
        worst = jnp.stack(doubts).max()
        worst = jnp.where(effective < FEW, jnp.fmax(worst, 1 / jnp.sqrt(effective)), worst)
        laws = sum(incoming[at].log_normaliser for at in over)
        return Answer(
            tuple(messages),
            jax.nn.logsumexp(log_tilted) + laws,
            tuple(errors),
            effective,
            worst,
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
    """Messages from independent draws, from the cavity or from a given distribution.

    `ep.infer(model, ep.ImportanceSampling())` uses it for every black-box factor.

    Parameters
    ----------
    points : int
        How many draws for each message.
    proposal : Distribution, optional
        The distribution of the draws of every input; by default its cavity, the incoming message.
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
    >>> bool(abs(post["z"].mean() - 0.4132) < 0.01), bool(post.effective_sample_size["sigmoid(z, p)"] > 50_000)
    (True, True)
    """

    points: int = eqx.field(static=True)
    proposal: Any
    paired: bool = eqx.field(static=True)

    def __init__(self, points: int = 10_000, proposal: object = None, paired: bool = True):
        self.points = int(parameter(points, "points", axes=0, integer=True, at_least=4))
        if proposal is not None and not (isinstance(proposal, Distribution) and proposal.shape == ()):
            raise KindError(f"proposal is {proposal!r}; expected one distribution, such as Normal(0.0, 200.0).")
        self.proposal, self.paired = proposal, truth(paired, "paired")

    @classmethod
    def of_the_paper(cls) -> "ImportanceSampling":
        """What the paper's experiments use: 500,000 draws from N(0, 200)."""
        return cls(500_000, Normal(0.0, 200.0), paired=False)

    @property
    def subtract_points(self) -> bool:
        """As `paired` says."""
        return self.paired

    def more(self, times: int) -> "ImportanceSampling":
        """With this many times the draws."""
        return ImportanceSampling(self.points * times, self.proposal, self.paired)

    def draw(
        self, factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array, key: jax.Array
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
            nodes.append(as_nodes(type(cavity), x))
        return nodes, log_cavity
