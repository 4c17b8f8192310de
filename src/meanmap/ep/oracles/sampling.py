"""Messages from weighted points: the base class of such oracles, and importance sampling."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.core.settings import truth
from meanmap.core.types import Array
from meanmap.ep import doubt
from meanmap.ep.factor import Answer, FactorLike, replaced
from meanmap.ep.lines import Nodes, as_nodes, project
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.refined import MOST_DIMENSIONS, refined
from meanmap.ep.oracles.tilted import Tilted
from meanmap.families import Distribution, Family, Normal

__all__ = ["FEW", "ImportanceSampling", "Sampler"]

# Messages with more parameters than this are vectors'. Their errors come from leaving out each of this many groups.
_MOST_PARAMETERS = 2
_GROUPS = 16

# An effective sample size below this makes a standard error itself unreliable.
FEW = 30

# If it is below this share of the draws from the incoming messages, the mass is searched for.
_SEARCHED = 0.02

# In memory at once, over all members of a block.
_POINTS_AT_ONCE = 2**16


class Sampler(Oracle):
    """Base class of oracles with weighted points: the ratio of two projections of the same points, with its error.

    With weights w of the tilted distribution and c of the cavity, the outgoing natural parameters are η(w) − η(c),
    where η projects the points. The incoming parameters themselves could be subtracted instead of η(c), as importance
    sampling does in the papers: this leaves the scatter of the points in the message, whereas here it cancels.

    The standard error is that of the delta method: ∂η/∂log wᵢ is the influence of point i, and the influences of
    independent groups of points are independent. Where the effective sample size m is below 30, the doubt is 1/√m at
    least.
    """

    points: eqx.AbstractVar[int]

    # The number of consecutive points in a stratum; 1: all points are independent.
    group: ClassVar[int] = 1

    @property
    def subtract_points(self) -> bool:
        """Whether the cavity's moments are those of the points."""
        return False

    @property
    def block(self) -> int:
        """Members in memory at once: some megabytes an array."""
        return max(_POINTS_AT_ONCE // self.points, 1)

    def more(self, times: int) -> Self:
        """With this many times the draws, on one device."""
        return replaced(self, points=self.points * times, parts=1)

    @abstractmethod
    def draw(
        self, factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array, key: jax.Array
    ) -> tuple[list[Nodes], jax.Array]:
        """Points of each input, and the log weight of each of them towards the cavity."""

    def check(self, factor: FactorLike) -> None:
        """Any factor can be sampled."""

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
        values = {at: grid.x for at, grid in zip(factor.inputs(incoming), nodes, strict=True)}
        found = factor.weigh(values, incoming, power, key)
        return self.weighed(factor, incoming, nodes, log_cavity, found, self.subtract_points)

    def weighed(
        self,
        factor: FactorLike,
        incoming: tuple[Any, ...],
        nodes: list[Nodes],
        log_cavity: jax.Array,
        found: tuple[Any, ...],
        subtract_points: bool | jax.Array,
    ) -> Answer:
        """The messages that points make, given what the factor weighs there."""
        over, (log_factor, outputs, undefined) = factor.inputs(incoming), found
        log_tilted = log_cavity + log_factor
        messages, errors, doubts = [None] * len(incoming), [None] * len(incoming), []
        mean_errors: list[Any] = [None] * len(incoming)
        places = [(at, grid, subtract_points) for at, grid in zip(over, nodes, strict=True)]
        places += [(at, grid, False) for at, grid in outputs.items()]
        for at, grid, paired in places:
            message = self._message(incoming[at], grid, log_tilted, log_cavity, paired)
            messages[at], errors[at], mean_errors[at], doubted = message
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
            tuple(mean_errors),
            jnp.where(undefined, jax.nn.softmax(log_cavity), 0.0).sum(),
        )

    def _message(
        self, incoming: Family, nodes: Nodes, log_tilted: jax.Array, log_cavity: jax.Array, paired: bool | jax.Array
    ) -> tuple[Any, Any, jax.Array, jax.Array]:
        kind = type(incoming)

        def ratio(log_tilted, log_cavity):
            base = incoming
            if paired is not False:
                base = jax.tree.map(lambda a, b: jnp.where(paired, a, b), project(kind, nodes, log_cavity), incoming)
            return jax.tree.map(lambda a, b: a - b, project(kind, nodes, log_tilted), base)

        if len(jax.tree.leaves(incoming)) > _MOST_PARAMETERS or incoming.event_shape:
            # An influence on each entry of a matrix would cost a pass over the points for each: groups are left out.
            ends = jnp.stack([log_tilted, log_cavity], 1)
            message = ratio(log_tilted, log_cavity)
            found = doubt.jackknife(
                lambda ends: jax.tree.map(jnp.add, ratio(ends[:, 0], ends[:, 1]), incoming), ends, _GROUPS
            )
            return message, *found
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
        return message, errors, doubt.mean_error(belief, covariance), doubt.from_covariance(belief, covariance)

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
        The number of draws for each message.
    proposal : Distribution, optional
        The distribution of the draws of every input; by default its cavity, the incoming message.
    paired : bool
        Whether to subtract the cavity's moments as those of the same points, which cancels most of the noise.

    Notes
    -----
    If draws from the cavities have an effective size below a fiftieth of their number (or below 30, or a tenth of few
    draws), and the factor takes a vector, the mass is searched for: up to twelve rounds of 1000 draws from a Student
    distribution, each fitted to the weighted draws before (adaptive importance sampling; Cornuet et al. 2012). As many
    draws again then come from the best of these, and all are weighted by the mixture of both. This takes normal
    vectors, also together with numbers, of 20 dimensions in all at most, and no sampler with randomness of its own. A
    mode that no draw comes near stays unknown.

    `post.standard_errors`, the report and print give the standard errors of the means that sampling leaves, and the
    effective sample sizes; where an error is above .05 standard deviations, which is that of 400 independent draws
    (Vehtari et al. 2021), the status says so.

    `ImportanceSampling.of_the_paper()` is Jitkrittum et al. (2015), section 4: 5 · 10⁵ draws from N(0, 200), and the
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

    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """From draws of the cavity, and where these miss the mass from draws of a distribution that was moved there
        besides.
        """
        if self.proposal is not None or not _movable(factor, incoming):
            return super().member(factor, incoming, power, key)
        drawing, rest = jax.random.split(key)
        searching, last = jax.random.split(rest)
        tilted = Tilted.of(factor, incoming, power)
        laws = sum(incoming[at].log_normaliser for at in tilted.over)

        def weighed(u):
            nodes = tilted.nodes(u)
            values = {at: grid.x for at, grid in zip(tilted.over, nodes, strict=True)}
            return tilted.log_cavity(nodes) - laws, *factor.weigh(values, incoming, power, None)

        def log_tilted(u):
            log_cavity, log_factor, *_ = weighed(u)
            return log_cavity + log_factor

        nodes, _ = self.draw(factor, incoming, tilted.over, power, drawing)
        u = jnp.concatenate([grid.coordinate.reshape(self.points, -1) for grid in nodes], 1)
        first = weighed(u)
        weights = jax.nn.softmax(first[1])
        missed = ~((weights**2).sum() * self._least < 1) & ~jnp.isnan(first[1]).any()
        law = refined(log_tilted, u, first[0] + first[1], first[0], missed, searching)

        def more(carried):
            points = jnp.where(carried[0], law.sample(self.points, last), jnp.nan)
            return jnp.asarray(False), points, weighed(points)

        _, moved, second = jax.lax.while_loop(lambda carried: carried[0], more, (missed, u, first))
        # Both kinds of draws take turns, so that each group of neighbours has as many of either. Weights are over the
        # mixture of both distributions: where the second has missed some mass, a draw of the first has a large one.
        u, (log_cavity, *found) = jax.tree.map(_in_turn, (u, first), (moved, second))
        log_mixture = jnp.where(missed, jnp.logaddexp(log_cavity, law.log_density(u)), log_cavity)
        log_weights = jnp.where(missed | (jnp.arange(2 * self.points) % 2 == 0), log_cavity - log_mixture, -jnp.inf)
        paired = ~missed if self.paired else False
        log_weights = log_weights - jnp.log(self.points)
        return self.weighed(factor, incoming, tilted.nodes(u), log_weights, tuple(found), paired)

    @property
    def _least(self) -> float:
        """An effective sample size below this is worth a search for the mass."""
        return min(max(_SEARCHED * self.points, FEW), self.points / 10)

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


def _movable(factor: FactorLike, incoming: tuple[Any, ...]) -> bool:
    """Whether the mass can be searched for: over a vector, with or without numbers beside it."""
    over = [incoming[at] for at in factor.inputs(incoming)]
    if factor.random or not all(type(one).smooth for one in over):
        return False
    dimensions = sum(one.event_shape[0] if one.event_shape else 1 for one in over)
    return any(one.event_shape for one in over) and dimensions <= MOST_DIMENSIONS


def _in_turn(one: jax.Array, other: jax.Array) -> jax.Array:
    """One of the first, one of the second, and so on; anything but an array of points is unchanged."""
    return jnp.stack([one, other], 1).reshape(-1, *one.shape[1:]) if one.ndim else one
