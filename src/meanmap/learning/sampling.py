"""Lengthscales and noise drawn from their posterior by the No-U-Turn sampler (Hoffman & Gelman 2014)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.extras import optional
from meanmap.core.progress import waiting
from meanmap.core.rng import Rng
from meanmap.core.settings import is_number, one_of, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Numbers, Points, Seed
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import median_heuristic
from meanmap.learning.doubts import check_columns
from meanmap.learning.draws import KernelDraws
from meanmap.learning.pseudolikelihood import log_normal, log_volumes, objective
from meanmap.learning.samples import draw_landmarks, read_sample, units_of

__all__ = ["Potential", "drawn", "log_posterior", "sample_kernel"]

# Minus a log density, at a vector of logarithms.
Potential = Callable[[jax.Array], jax.Array]

MODELS = ("tempered", "fixed")
# Two orders of magnitude about the median distance have 95% of the prior.
PRIOR_SPREAD = 1.2
# Draws cost hundreds of gradients each.
MOST_POINTS = 1000
TARGET_ACCEPTANCE = 0.9
# Two numbers, or a few more, need a handful of steps; a chain that needs more than 2⁶ has failed.
MOST_DOUBLINGS = 6


@own_words
def sample_kernel(
    x: Points,
    kernel: Kernel | None = None,
    landmarks: Numbers = 0.05,
    noise: float | None = None,
    rng: Seed = None,
    *,
    model: str = "tempered",
    chains: int = 4,
    warmup: int = 500,
    draws: int = 500,
) -> KernelDraws:
    """Draw lengthscales and noise τ² from their posterior given a sample, by NUTS.

    Parameters
    ----------
    x : points (n, d)
        At least 10 rows of numbers; larger samples are reduced to 1000 random rows.
    kernel : RBF, optional
        `RBF()`, the default, has one lengthscale, `RBF([1.0, 1.0])` one per column. The values do not matter.
    landmarks : float, int or points (m, d)
        As in `learn_kernel`, one draw of them.
    noise : float, optional
        τ², for model="fixed" (1 by default); otherwise it is sampled too.
    rng : None, int, numpy.random.Generator or JAX key
        `draws.seed` repeats the run.
    model : {"tempered", "fixed"}
        "tempered", the default, is not in the paper: the pseudolikelihood with its Gaussian part raised to the power
        d/m. "fixed" keeps the noise fixed.
    chains, warmup, draws : int
        The number of chains, run in parallel from starts spread over the prior; of adaptation steps; of draws of each
        chain.

    Returns
    -------
    KernelDraws
        A kernel whose Gram matrices are means over draws; `draws.kernel` has them on an axis, `draws.report` has R-hat,
        effective sample sizes and divergences, `draws.groups()` is for ArviZ.

    Notes
    -----
    With m > d landmarks the pseudolikelihood of (θ, τ²) grows without bound, like θ^(2n(m − d)) along τ² ~ θ⁻⁴, and no
    usual prior prevents it. The cause is that m values k(x, z) count as m independent measurements of a point that has
    d coordinates. Raised to the power d/m the Gaussian part counts as d: the pseudolikelihood no longer changes (but
    for terms of order log n) when k is multiplied by a constant, and the growth is gone. Priors: log θ normal about the
    logarithm of the median distance with standard deviation 1.2, and τ² Gamma(1, 1).

    As in `learn_kernel` the sample is scaled first: columns by their own standard deviations if each has a lengthscale,
    otherwise all by one number, so that only the widest columns count.

    The lengthscale still follows the number of landmarks, as that of `learn_kernel` does. Where the posterior has
    several modes, as for clusters far apart, chains may stay in different ones: R-hat is then far above 1, and the
    report says so. `learn_kernel` finds all modes.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> x = np.random.default_rng(0).normal(size=40)
    >>> posterior = mm.learning.sample_kernel(x, landmarks=5, model="fixed", chains=1, warmup=20, draws=20, rng=0)
    >>> posterior.lengthscale.shape, posterior.kernel.lengthscale.shape
    ((1, 20), (20,))
    """
    one_of(model, "model", MODELS)
    if noise is not None and model != "fixed":
        raise ParameterError(f"noise is drawn under model={model!r}: leave it out, or pass model='fixed'.")
    if noise is not None and not (is_number(noise) and noise > 0):
        raise ParameterError(f"noise is {noise!r}; expected a number above 0.")
    for value, name, least in ((chains, "chains", 1), (warmup, "warmup", 10), (draws, "draws", 4)):
        whole_number(value, name, least)
    fixed = None if model == "tempered" else 1.0 if noise is None else float(noise)

    def potential(x: np.ndarray, z: np.ndarray, centre: np.ndarray) -> Potential:
        return log_posterior(x, z, centre, fixed)

    return drawn(potential, x, RBF() if kernel is None else kernel, landmarks, fixed, rng, chains, warmup, draws)


def drawn(
    potential_of: Callable[[np.ndarray, np.ndarray, np.ndarray], Potential],
    x: Data,
    kernel: Kernel,
    landmarks: Numbers,
    noise: float | None,
    rng: Seed,
    chains: int,
    warmup: int,
    draws: int,
    scale: bool = True,
) -> KernelDraws:
    """Draws under minus a log density of (log θ, log τ²), made from points, landmarks and the logarithm of the median.

    With `noise` given, the density is of log θ alone; with `scale` all of them are in units of the sample's own.
    """
    if not isinstance(kernel, RBF):
        raise KindError(f"kernel is {kernel!r}; expected RBF, with one lengthscale or one per column.")
    random = Rng.of(rng)
    with Door() as door:
        points, n, names = read_sample(x, MOST_POINTS, random.generator, door)
        check_columns(points, names)
        d, own = points.shape[1], np.ndim(kernel.lengthscale) == 1
        if own and len(kernel.lengthscale) != d:
            raise ShapeError(f"kernel has {len(kernel.lengthscale)} lengthscales for {d} columns; expected {d}.")
        z = draw_landmarks(landmarks, points, n, 1, random.generator, door)[0]
        units = units_of(points, own) if scale else np.ones(d)
        points, z = points / units, z / units
        centre = np.log(median_heuristic(points, per_column=own, rng=random.generator) * np.ones(d if own else 1))
        potential = potential_of(points, z, centre)
        count = len(centre) + (noise is None)
        starts = random.generator.normal(0, 0.5, (chains, count)) + np.r_[centre, np.zeros(count - len(centre))] - 0.5
        found = _nuts(potential, starts, chains, warmup, draws, random.key)
    scales = np.exp(found["q"][..., : len(centre)]) * units[: len(centre)]
    noises = np.exp(found["q"][..., -1]) if noise is None else np.full((chains, draws), noise)
    scales = scales if own else scales[..., 0]
    return KernelDraws(scales, noises, found["diverging"], found["steps"], random.seed)


def log_posterior(x: np.ndarray, z: np.ndarray, centre: np.ndarray, noise: float | None) -> Potential:
    """Minus the log density of log θ, and of log τ² where no noise is given."""
    m, d = z.shape
    points, marks = jnp.asarray(x), jnp.asarray(z)
    scales = len(centre)

    def potential(q: jax.Array) -> jax.Array:
        logs = q[:scales]
        kernel = RBF(jnp.exp(logs) if scales > 1 else jnp.exp(logs[0]))
        prior = -jnp.sum((logs - centre) ** 2) / (2 * PRIOR_SPREAD**2)
        if noise is not None:
            return -objective(kernel, points, marks, noise) - prior
        tau = jnp.exp(q[-1])
        # Gamma(1, 1), with the volume of the logarithm.
        prior_noise = q[-1] - tau
        gaussian = log_normal(kernel, points, marks, tau)
        return -(d / m * gaussian + jnp.sum(log_volumes(kernel, points, marks))) - prior - prior_noise

    return potential


def _nuts(
    potential: Potential, starts: np.ndarray, chains: int, warmup: int, draws: int, key: Array
) -> dict[str, np.ndarray]:
    """Chains side by side, (chains, draws, ...)."""
    with optional("sampling by NUTS"):
        from numpyro.infer import MCMC, NUTS

    sampler = MCMC(
        NUTS(potential_fn=potential, target_accept_prob=TARGET_ACCEPTANCE, max_tree_depth=MOST_DOUBLINGS),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    start = jnp.asarray(starts if chains > 1 else starts[0])
    with waiting("sampling"):
        sampler.run(key, init_params=start, extra_fields=("diverging", "num_steps"))
    extra = sampler.get_extra_fields(group_by_chain=True)
    return {
        "q": np.asarray(sampler.get_samples(group_by_chain=True)),
        "diverging": np.asarray(extra["diverging"]),
        "steps": np.asarray(extra["num_steps"]),
    }
