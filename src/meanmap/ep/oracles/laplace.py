"""Messages from the mode of the tilted distribution and its curvature, checked by importance sampling around it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.types import Array
from meanmap.ep import doubt
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.sampling import Sampler
from meanmap.ep.oracles.student import Student
from meanmap.ep.oracles.tilted import Tilted, check_smooth

__all__ = ["AroundMode", "Laplace", "student_points"]

# Newton's steps: each is tried in full and in halves, and curvatures of the wrong sign are turned around.
_STEPS = 60
_HALVINGS = 12
_ENOUGH = 1e-12  # of the decrease that the next step promises


class Laplace(Oracle):
    """Messages of a smooth black-box factor by Laplace's approximation, in the coordinates of its families.

    `ep.infer(model, ep.Laplace())` uses it for every black-box factor.

    Parameters
    ----------
    points : int
        Draws around the mode, which estimate the error of the approximation.

    Notes
    -----
    The mode of the tilted distribution is found by Newton's method in x, log x or logit x, or over whole vectors; each
    message has its mode and marginal curvature there (Hobbhahn & Hennig 2022): exact where the tilted distribution is
    of the family. The approximation does not show how good it is, so it is compared with importance sampling by
    `points` draws from a Student distribution around the mode: the stated error is the difference, plus its standard
    error. Where that is too large, the answer is that of importance sampling. Cost: some ten gradients and Hessians,
    and `points` calls of the factor.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from meanmap import ep
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(3))
    >>> flips = ep.Density(lambda w, y: -jnp.logaddexp(0, -y * w.sum()), w, 1.0)
    >>> post = ep.infer(ep.FactorGraph(flips), messages=ep.Laplace(), rng=0)
    >>> post["w"].mean().round(3).tolist()
    [0.293, 0.293, 0.293]
    """

    points: int = eqx.field(static=True)

    def __init__(self, points: int = 1000):
        self.points = int(parameter(points, "points", axes=0, integer=True, at_least=32))

    @property
    def block(self) -> int:
        """As many as for the draws that check it."""
        return AroundMode(self.points).block

    def check(self, factor: FactorLike) -> None:
        """Derivatives are needed."""
        check_smooth("ep.Laplace()", factor)

    def more(self, times: int) -> "AroundMode":
        """Importance sampling around the mode."""
        return AroundMode(self.points * times)

    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """The mode, its curvature, and the estimates of sampling around it."""
        tilted = Tilted.of(factor, incoming, power)
        mode, precision = find_mode(tilted)
        covariance = jnp.linalg.inv(precision)
        points = student_points(tilted, mode, precision, self.points, key)
        judge = AroundMode(self.points).conclude(factor, incoming, power, *points, key)
        messages, errors = [None] * len(incoming), [None] * len(incoming)
        doubts, at = [judge.doubt], 0
        beliefs = {}
        for position in tilted.over:
            kind = type(incoming[position])
            if not kind.is_scalar():
                own = slice(at, at + incoming[position].event_shape[0])
                beliefs[position] = kind._at_mode(mode[own], jnp.linalg.inv(covariance[own, own]))
                at = own.stop
            else:
                beliefs[position] = kind._at_mode(mode[at], 1 / covariance[at, at])
                at += 1
        slopes = jax.jacfwd(tilted.outputs)(mode)
        for position, coordinate in tilted.outputs(mode).items():
            slope = slopes[position]
            kind = type(incoming[position])
            beliefs[position] = kind._at_mode(coordinate, 1 / (slope @ covariance @ slope))
        for position, belief in beliefs.items():
            message = jax.tree.map(jnp.subtract, belief, incoming[position])
            sampled = jax.tree.map(jnp.add, judge.messages[position], incoming[position])
            messages[position] = message
            errors[position] = jax.tree.map(
                lambda a, b, e: jnp.abs(a - b) + e, belief, sampled, (judge.errors or {})[position]
            )
            doubts.append(judge.doubt + doubt.between(sampled, belief))
        _, log_determinant = jnp.linalg.slogdet(precision)
        log_total = tilted.log_density(mode) + (mode.shape[0] * jnp.log(2 * jnp.pi) - log_determinant) / 2
        worst = jnp.stack(doubts).max()
        return Answer(tuple(messages), log_total, tuple(errors), judge.effective, worst, undefined=judge.undefined)


class AroundMode(Sampler):
    """Importance sampling from a Student distribution at the tilted one's mode: the second stage of `Laplace`."""

    points: int = eqx.field(static=True)

    def check(self, factor: FactorLike) -> None:
        """Derivatives are needed."""
        check_smooth("ep.Laplace()", factor)

    def draw(
        self, factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...], power: Array, key: jax.Array
    ) -> tuple[list[Any], jax.Array]:
        """Draws around the mode, and cavity over proposal."""
        tilted = Tilted.of(factor, incoming, power)
        mode, precision = find_mode(tilted)
        return student_points(tilted, mode, precision, self.points, key)


def student_points(
    tilted: Tilted, centre: jax.Array, precision: jax.Array, count: int, key: jax.Array
) -> tuple[list[Any], jax.Array]:
    """Draws from a multivariate Student distribution with this centre and precision, and log(cavity / density of the
    draws).
    """
    inverse = jnp.linalg.cholesky(precision).T
    law = Student(centre, jax.scipy.linalg.solve_triangular(inverse, jnp.eye(len(centre))), inverse)
    u = law.sample(count, key)
    nodes = tilted.nodes(u)
    laws = sum(tilted.incoming[at].log_normaliser for at in tilted.over)
    return nodes, tilted.log_cavity(nodes) - laws - law.log_density(u) - jnp.log(count)


def find_mode(tilted: Tilted) -> tuple[jax.Array, jax.Array]:
    """The mode of the tilted distribution, and minus the Hessian of its log there.

    Newton's method in units of the cavity's standard deviations; eigenvalues of the wrong sign are turned around, so
    that each step goes uphill. The best of the full step and its halves is taken.
    """
    centre, scale = tilted.centre(), tilted.scale()

    def height(v):
        value = tilted.log_density(centre + scale * v)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def improve(carried):
        v, _, count = carried
        slope = jax.grad(height)(v)
        step = _uphill(jax.hessian(height)(v), slope)
        tries = v + step * 0.5 ** jnp.arange(_HALVINGS)[:, None]
        heights = jax.vmap(height)(tries)
        best = jnp.argmax(heights)
        better = heights[best] > height(v)
        return jnp.where(better, tries[best], v), jnp.where(better, slope @ step, 0.0), count + 1

    def unfinished(carried):
        _, promise, count = carried
        return (promise > _ENOUGH) & (count < _STEPS)

    v, _, _ = jax.lax.while_loop(unfinished, improve, (jnp.zeros_like(centre), jnp.asarray(jnp.inf), 0))
    curvature = -jax.hessian(height)(v)
    return centre + scale * v, curvature / (scale[:, None] * scale)


def _uphill(hessian: jax.Array, slope: jax.Array) -> jax.Array:
    values, vectors = jnp.linalg.eigh(hessian)
    # The incoming distributions have curvature of order 1 in these units: what is nearly flat is no reason for a giant
    # step.
    return vectors @ ((vectors.T @ slope) / jnp.maximum(jnp.abs(values), 1e-2))
