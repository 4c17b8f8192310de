"""Messages from draws of the tilted distribution by Hamiltonian Monte Carlo, for factors of many or badly shaped
variables.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError
from meanmap.core.extras import optional
from meanmap.core.types import Array
from meanmap.ep import doubt
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.lines import Nodes, project
from meanmap.ep.oracles.laplace import student_points
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.tilted import Tilted, check_smooth

__all__ = ["MCMC"]

# Chains are cut into this many pieces in all, each long enough to be nearly independent of the next one: they tell the
# error.
_PIECES = 32
# Each chain starts at one of this many draws from the cavity, where the density is above zero.
_STARTS = 100
# The length of trajectories, in adapted standard deviations, and the most steps of one. Where the density ends abruptly
# within that length no trajectory is accepted, and adapted steps would get shorter without end.
_LENGTH, _MOST_STEPS = 1.5, 1000


class MCMC(Oracle):
    """Messages of a smooth black-box factor from draws by Hamiltonian Monte Carlo (Neal 2011), by numpyro.

    `ep.infer(model, ep.MCMC())` uses it for every black-box factor.

    Parameters
    ----------
    draws : int
        In all chains of a message together.
    warmup : int
        Draws of each chain that adapt step size and scales, and are thrown away.
    chains : int
        Started apart, from draws of the cavity: 2, 4, 8, 16 or 32.

    Notes
    -----
    All chains of all members of a plate run side by side, in the coordinates x, log x and logit x, on trajectories of
    1.5 adapted standard deviations: trees that grow until they turn (NUTS) would wait for the longest of the plate, and
    gave half the effective draws in three times the time. Errors are those of leaving out each of 32 pieces of the
    chains (a jackknife), and the effective sample size is the smallest over coordinates. The normaliser is estimated by
    importance sampling from a Student distribution with the draws' moments. The incoming message is subtracted from
    what the draws project to, and their noise stays in the difference: where the factor has little information
    compared with its cavity, `Stratified` or `Laplace` are more accurate at less cost. Where errors are too large it
    draws more. Draws jump where a proposal is accepted that was not before, so a run counts as converged when beliefs
    move by no more than the stated doubt.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from meanmap import ep
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> ring = ep.Density(lambda w: -8 * ((w**2).sum() - 4.0) ** 2, w, name="ring")
    >>> answer = ep.extending.ask(ring, w.prior, oracle=ep.MCMC(draws=800, warmup=100), rng=0)
    >>> (w.prior * answer.messages[0]).sd().round(1).tolist()
    [1.4, 1.4]
    """

    draws: int = eqx.field(static=True)
    warmup: int = eqx.field(static=True)
    chains: int = eqx.field(static=True)
    wanders: ClassVar[bool] = True

    def __init__(self, draws: int = 4000, warmup: int = 200, chains: int = 4):
        self.chains = int(parameter(chains, "chains", axes=0, integer=True, at_least=2))
        if _PIECES % self.chains:
            raise ParameterError(f"chains is {self.chains}; expected 2, 4, 8, 16 or 32.")
        self.warmup = int(parameter(warmup, "warmup", axes=0, integer=True, at_least=20))
        draws = int(parameter(draws, "draws", axes=0, integer=True, at_least=2 * _PIECES))
        self.draws = -(-draws // _PIECES) * _PIECES

    @property
    def block(self) -> int:
        """Memory for draws: a few million numbers."""
        return max(2**20 // self.draws, 1)

    def check(self, factor: FactorLike) -> None:
        """Derivatives are needed."""
        check_smooth("ep.MCMC()", factor)

    def more(self, times: int) -> "MCMC":
        """More draws of each chain."""
        return MCMC(self.draws * times, self.warmup, self.chains)

    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Draws, and their projections."""
        tilted = Tilted.of(factor, incoming, power)
        drawing, weighing = jax.random.split(key)
        u = self._sample(tilted, drawing)
        _, outputs = tilted.weigh(u)
        equal = jnp.zeros(len(u))
        messages, errors, doubts = [None] * len(incoming), [None] * len(incoming), []
        mean_errors: list[Any] = [None] * len(incoming)
        places = list(zip(tilted.over, tilted.nodes(u), strict=True))
        places += [(at, Nodes(grid.coordinate, grid.x, jnp.zeros(()))) for at, grid in outputs.items()]
        for at, grid in places:

            def belief(log_weights, at=at, grid=grid):
                return project(type(incoming[at]), grid, log_weights)

            messages[at] = jax.tree.map(jnp.subtract, belief(equal), incoming[at])
            errors[at], mean_errors[at], doubted = doubt.jackknife(belief, equal, _PIECES)
            doubts.append(doubted)
        log_total, undefined = self._log_total(tilted, u, weighing)
        worst = jnp.stack(doubts).max()
        return Answer(tuple(messages), log_total, tuple(errors), _effective(u), worst, tuple(mean_errors), undefined)

    def _sample(self, tilted: Tilted, key: jax.Array) -> jax.Array:
        """Draws (draws, d), chain after chain.

        They move in standard deviations of the cavity: a trajectory in the units of a cavity of 10⁻⁶ would take a
        million steps before scales are adapted. Draws are NaN where a chain cannot move.
        """
        with optional("sampling by Hamiltonian Monte Carlo"):
            from numpyro.infer.hmc import hmc  # here: numpyro takes a second to load

        centre, scale = tilted.centre(), tilted.scale()

        def potential(v):
            value = tilted.log_density(centre + scale * v)
            return jnp.where(jnp.isnan(value), jnp.inf, -value)

        def chain(key):
            starting, running = jax.random.split(key)
            places = jax.random.normal(starting, (_STARTS, *centre.shape), centre.dtype)
            start = places[jnp.isfinite(jax.vmap(potential)(places)).argmax()]
            initialise, step = hmc(potential_fn=potential, algo="HMC")
            state = initialise(start, num_warmup=self.warmup, trajectory_length=_LENGTH, rng_key=running)
            state = jax.lax.fori_loop(0, self.warmup, lambda _, s: _bounded(step(s)), state)
            _, found = jax.lax.scan(
                lambda s, _: (lambda new: (new, new.z))(step(s)), state, length=self.draws // self.chains
            )
            return jnp.where((found != found[0]).any(), found, jnp.nan)

        found = jax.vmap(chain)(jax.random.split(key, self.chains))
        return centre + scale * found.reshape(-1, found.shape[-1])

    def _log_total(self, tilted: Tilted, u: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The log normaliser, and the share of the cavity on which the function returned no number."""
        mean = u.mean(0)
        nodes, log_cavity = student_points(tilted, mean, _precision(u - mean, tilted.scale()), len(u), key)
        values = {at: grid.x for at, grid in zip(tilted.over, nodes, strict=True)}
        log_factor, _, undefined = tilted.factor.weigh(values, tilted.incoming, tilted.power, None)
        laws = sum(tilted.incoming[at].log_normaliser for at in tilted.over)
        share = jnp.where(undefined, jax.nn.softmax(log_cavity), 0.0).sum()
        return jax.nn.logsumexp(log_cavity + log_factor) + laws, share


def _bounded(state: Any) -> Any:
    """The state of a chain with steps long enough for its trajectories to end."""
    size = jnp.maximum(state.adapt_state.step_size, _LENGTH / _MOST_STEPS)
    return state._replace(adapt_state=state.adapt_state._replace(step_size=size))


def _precision(centred: jax.Array, usual: jax.Array) -> jax.Array:
    """The inverse of the covariance of draws about their mean (n, d); a number that does not vary counts as `usual`.

    A direction in which draws vary by less than rounding counts as that wide: proposals are to reach all that draws
    have reached, and may be wider, as each is weighed by its density.
    """
    scale = jnp.sqrt(jnp.sum(centred**2, axis=0) / (len(centred) - 1))
    scale = jnp.where(scale > 0, scale, usual)
    white = centred / scale
    values, directions = jnp.linalg.eigh(white.T @ white / (len(centred) - 1))
    floor = jnp.finfo(centred.dtype).eps * max(centred.shape) * values[-1]
    turned = directions / scale[:, None]
    return turned / jnp.maximum(values, jnp.where(floor > 0, floor, 1.0)) @ turned.T


def _effective(u: jax.Array) -> jax.Array:
    """The effective sample size for the mean: the variance over that of the means of pieces."""
    means = u.reshape(_PIECES, -1, u.shape[1]).mean(1)
    return jnp.minimum((_PIECES * u.var(0) / means.var(0, ddof=1)).min(), len(u))
