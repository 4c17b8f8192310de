"""Common parts of the denoising figures: the picture of rings, restored by kernel and discrete belief propagation."""

import time
from typing import Any

import numpy as np

import meanmap as mm
from meanmap import bp
from meanmap.core.types import Points

__all__ = ["NOISE", "ONE_PICTURE", "compare", "discrete", "error", "kernel", "rings"]

SIZE = 50
NOISE = 30.0
SWEEPS = 15
DAMPING = 0.3
# What every figure that restores the sunrise says of itself.
ONE_PICTURE = (
    "For each number of colours there is one clean picture, a sunrise of rings without a random part. Repetitions are "
    "draws of its noise and of pairs of neighbours; errors and spreads are over these and say nothing about other "
    "pictures. Relations of neighbours are learned from exactly the clean picture that is restored. What that is worth "
    "is measured on other pictures in the section “Denoising pictures that were not learned from”."
)


def rings(colours: int, size: int = SIZE, centre: tuple[float, float] = (0.5, 0.0)) -> np.ndarray:
    """Rings from 0 to 255 in this many colours, around a centre given by its shares of the height and the width.

    The default is a sunrise: half rings around the middle of the left edge.
    """
    down, right = np.mgrid[:size, :size]
    distance = np.hypot(down - centre[0] * size + 0.5, right - centre[1] * size)
    level = np.minimum(np.floor(distance / distance.max() * colours), colours - 1)
    return level * 255 / (colours - 1)


def noisy(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The picture with Gaussian noise."""
    return picture + NOISE * rng.normal(size=picture.shape)


def true_likelihood(seen: Any, x: Points) -> np.ndarray:
    """That of the noise."""
    return np.exp(-((np.asarray(seen)[:, None] - x) ** 2) / (2 * NOISE**2))


def error(restored: np.ndarray, picture: np.ndarray) -> float:
    """Root mean square, in grey levels."""
    return float(np.sqrt(np.mean((restored - picture) ** 2)))


def kernel(
    picture: np.ndarray, seen: np.ndarray, pairs: int, seed: int, likelihood: Any, update: Any = None
) -> tuple[float, float, Any]:
    """Error, processor seconds for a sweep, and the model, which learned from the clean picture and other noise."""
    example = noisy(picture, np.random.default_rng([seed, 1]))
    model = mm.KernelGrid(update=update).fit(picture, example, likelihood=likelihood, pairs=pairs, rng=seed)
    return error(model.restore(seen).mean(), picture), sweep_seconds(model, seen), model


def sweep_seconds(model: Any, seen: np.ndarray) -> float:
    """Processor seconds of a sweep once compiled: the least of three runs of several sweeps."""
    import jax
    import jax.numpy as jnp

    from meanmap.bp.engine.flooding import flood
    from meanmap.bp.engine.messages import Settings
    from meanmap.bp.engine.terms import Terms

    field = model.on(*seen.shape)
    with jax.enable_x64(True):
        own = jnp.ones((seen.size, 1, field.learned.length))
        operators = jax.tree.map(jnp.asarray, field.learned.operators)
        settings = Settings(jnp.asarray(DAMPING), jnp.asarray(1e-3), jnp.asarray(-1.0))
        times = []
        sweeps = max(1, min(20, 20_000 // field.learned.length**2 * 50 + 2))
        for _ in range(4):
            start = time.process_time()
            flood(Terms(field.engine.layout, operators, own, None, settings), sweeps)[0].block_until_ready()
            times.append((time.process_time() - start) / sweeps)
    return min(times[1:])


def discrete(
    picture: np.ndarray, seen: np.ndarray, pairs: int, seed: int, colours: int, smoothing: float, likelihood: Any = None
) -> tuple[float, float]:
    """Error and processor seconds of discrete propagation with smoothed counts of pairs.

    The likelihood is the true one by default. Counts are made symmetric, and potentials are p(x, y) / (p(x) p(y))
    (Wainwright, Jaakkola & Willsky 2003): the same moment matching as that of the learned operators.
    """
    rng = np.random.default_rng(seed)
    found = [np.concatenate(side) for side in zip(*bp.neighbour_pairs([picture]).values(), strict=True)]
    chosen = rng.permutation(len(found[0]))[:pairs]
    levels = np.arange(colours) * 255 / (colours - 1)
    first, second = (np.abs(side[chosen][:, None] - levels).argmin(axis=1) for side in found)
    counts = np.zeros((colours, colours))
    np.add.at(counts, (first, second), 1)
    counts = counts + counts.T + smoothing
    marginal = counts.sum(axis=0) / counts.sum()
    graph = mm.graphs.grid(*picture.shape)[0]
    own = (likelihood or true_likelihood)(seen.ravel(), levels) * marginal
    network = bp.DiscreteGraph(graph, counts / counts.sum() / marginal / marginal[:, None], own)
    start = time.process_time()
    beliefs = network.query(schedule=mm.graphs.Flooding(SWEEPS), damping=DAMPING)
    values = np.stack([beliefs[node] for node in graph.names])
    return error((values @ levels).reshape(picture.shape), picture), time.process_time() - start


def compare(colours: int, pairs: int, seeds: Any) -> dict[str, np.ndarray]:
    """Errors of all methods on the same draws of noise, one for each seed.

    Measured on seeds 51 to 56, with the learned likelihood of the noise and the better of both smoothings, errors of
    kernels and counts in grey levels: 50 colours with 100, 200, 500, 2400 pairs 6.9 and 9.2, 5.4 and 6.4, 5.2 and 5.2,
    4.4 and 4.2; 256 colours 6.7 and 10.1, 5.2 and 8.6, 5.0 and 7.0, 4.3 and 4.7. Counts catch up once most pairs of
    colours that occur were seen.
    """
    found: dict[str, list[float]] = {}
    picture = rings(colours)
    for seed in seeds:
        seen = noisy(picture, np.random.default_rng([seed, 0]))
        for name, likelihood in {
            "noise likelihood": bp.NoiseLikelihood,
            "likelihood operator": bp.LearnedLikelihood,
            "true likelihood": true_likelihood,
        }.items():
            found.setdefault(name, []).append(kernel(picture, seen, pairs, seed, likelihood)[0])
        noise = kernel(picture, seen, pairs, seed, bp.NoiseLikelihood)[2].likelihood
        learned = lambda y, x, noise=noise: noise.at(y, x[:, None])  # noqa: E731
        for smoothing in (1e-3, 1e-1):
            for which, likelihood in (("true", None), ("noise", learned)):
                value = discrete(picture, seen, pairs, seed, colours, smoothing, likelihood)[0]
                found.setdefault(f"discrete, {smoothing:g} added, {which} likelihood", []).append(value)
    return {name: np.array(values) for name, values in found.items()}
