"""Slow reference posteriors: long Hamiltonian Monte Carlo, weighted draws, and annealed sampling of the evidence."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from meanmap_papers.number import Number

__all__ = ["annealed", "nuts", "weighted", "worst_z"]


def nuts(log_density: Callable[[Any], Any], d: int, draws: int = 10_000, seed: int = 1) -> np.ndarray:
    """Draws (draws, d) of a density by the No-U-Turn sampler of NumPyro, after 1000 warm-up steps."""
    from numpyro.infer import MCMC, NUTS

    with jax.enable_x64(True):
        chain = MCMC(
            NUTS(potential_fn=lambda w: -log_density(w)), num_warmup=1000, num_samples=draws, progress_bar=False
        )
        chain.run(jax.random.key(seed), init_params=jnp.zeros(d))
        return np.asarray(chain.get_samples())


def annealed(
    log_likelihood: Callable[[Any], Any], prior_sds: Any, particles: int = 512, temperatures: int = 400, seed: int = 0
) -> tuple[float, float]:
    """log ∫ L(w) N(w; 0, sds²) dw by annealed importance sampling (Neal 2001), and its standard error.

    From prior to posterior by powers of the likelihood; at each one leapfrog trajectory, accepted or not, with a step
    that is adapted to the acceptance at the temperature before.
    """
    sds = jnp.asarray(prior_sds)

    def run(key):
        powers = jnp.linspace(0, 1, temperatures + 1) ** 3
        likelihood = jax.vmap(log_likelihood)

        def energy(u, power):
            return (u**2).sum() / 2 - power * log_likelihood(u * sds)

        gradient = jax.vmap(jax.grad(energy), (0, None))

        def anneal(carry, inputs):
            u, log_weight, step = carry
            (before, power), key = inputs
            log_weight = log_weight + (power - before) * likelihood(u * sds)
            one, two = jax.random.split(key)
            momentum = jax.random.normal(one, u.shape)
            start = jax.vmap(energy, (0, None))(u, power) + (momentum**2).sum(-1) / 2

            def leap(state, _):
                x, p = state
                p = p - step / 2 * gradient(x, power)
                x = x + step * p
                return (x, p - step / 2 * gradient(x, power)), None

            (x, p), _ = jax.lax.scan(leap, (u, momentum), None, 10)
            end = jax.vmap(energy, (0, None))(x, power) + (p**2).sum(-1) / 2
            taken = jnp.log(jax.random.uniform(two, start.shape)) < start - end
            step = step * jnp.exp(0.1 * (taken.mean() - 0.8))
            return (jnp.where(taken[:, None], x, u), log_weight, step), None

        first, rest = jax.random.split(key)
        u = jax.random.normal(first, (particles, len(prior_sds)))
        pairs = (powers[:-1], powers[1:])
        zero = jnp.zeros(particles)
        (_, log_weight, _), _ = jax.lax.scan(
            anneal, (u, zero, jnp.asarray(0.2)), (pairs, jax.random.split(rest, temperatures))
        )
        return log_weight

    with jax.enable_x64(True):
        logs = np.asarray(jax.jit(run)(jax.random.key(seed)))
    weights = np.exp(logs - logs.max())
    return float(np.log(weights.mean()) + logs.max()), float(weights.std() / weights.mean() / np.sqrt(particles))


def weighted(
    log_density: Callable[[Any], Any], draws: np.ndarray, n: int = 200_000, degrees: float = 8.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Independent draws (n, d) with their weights, the log mass of the density, and the standard error of that.

    They come from a Student distribution with the mean and covariance of `draws` and are weighted by the density over
    it, so averages are exact up to errors that are known: tails heavier than those of a posterior keep weights bounded.
    """
    rng = np.random.default_rng(seed)
    d = draws.shape[1]
    root = np.linalg.cholesky(np.cov(draws.T).reshape(d, d))
    normal = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(degrees, size=(n, 1)) / degrees)
    points = draws.mean(0) + normal @ root.T
    constant = scipy.special.gammaln((degrees + d) / 2) - scipy.special.gammaln(degrees / 2)
    constant -= d / 2 * np.log(degrees * np.pi) + np.log(np.diag(root)).sum()
    log_law = constant - (degrees + d) / 2 * np.log1p((normal**2).sum(1) / degrees)
    with jax.enable_x64(True):
        heights = jax.jit(lambda at: jax.lax.map(log_density, at, batch_size=1000))
        logs = np.asarray(heights(jnp.asarray(points))) - log_law
    weights = np.exp(logs - logs.max())
    mass = float(np.log(weights.mean()) + logs.max())
    return points, weights / weights.sum(), mass, float(weights.std() / weights.mean() / np.sqrt(n))


def worst_z(runs: list[list[np.ndarray]]) -> Number:
    """The largest root mean square of what audits found, in the errors that were stated, over the outputs.

    Each run that has audits is one repetition.
    """
    audited = [np.stack(scores) for scores in runs if scores]
    if not audited:
        return Number(0.0)
    each = [np.sqrt(np.nanmean(np.where(np.isfinite(z), z, np.nan) ** 2, axis=0)) for z in audited]
    return max(map(Number.root_mean_square, np.transpose(each)), key=lambda number: number.value)
