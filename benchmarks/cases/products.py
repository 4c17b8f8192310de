"""Draws from products of Gaussian mixtures: trees of components beside Gibbs sampling."""

import numpy as np

from benchmarks.harness import Case
from meanmap_papers.rivals.mixtures import Gibbs, Mixtures, Multiscale, product, sample_product

PRODUCTS, DRAWS = 20, 100


def factors(components: int) -> Mixtures:
    """Twenty products of two mixtures with bandwidths by the rule of thumb."""
    rng = np.random.default_rng(7)
    shape = PRODUCTS, 2, components
    means = rng.normal(size=(*shape, 1)) + 0.5 * rng.normal(size=(PRODUCTS, 2, 1, 1))
    return Mixtures.of(np.ones(shape), means, np.full((PRODUCTS, 2, 1), (1.06 * components**-0.2) ** 2))


def trees(mixtures: Mixtures) -> np.ndarray:
    """Exact draws."""
    return sample_product(mixtures, DRAWS, Multiscale(), rng=0).points


def chains(mixtures: Mixtures) -> np.ndarray:
    """Ten iterations for each draw."""
    return sample_product(mixtures, DRAWS, Gibbs(10), rng=0).points


def written_out(mixtures: Mixtures) -> np.ndarray:
    """All components of the products."""
    return product(mixtures).sample(DRAWS, rng=0)


def beyond_chance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """By how many standard errors, above five, the means of any product differ: 0 for draws of one distribution."""
    error = np.sqrt((ours.var(axis=1) + theirs.var(axis=1)) / DRAWS)
    return max(float(np.max(np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) / error)) - 5, 0.0)


CASES = (
    Case(
        name="mixture-products",
        title="100 draws from each of 20 products of two mixtures of n Gaussians.",
        sizes=(100, 1000),
        setup=factors,
        ours=trees,
        peers={"Gibbs sampling, 10 iterations": chains, "written out": written_out},
        difference=beyond_chance,
    ),
)
