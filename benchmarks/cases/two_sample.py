"""Two-sample tests beside the bare matrix product that a permutation test cannot do without."""

import numpy as np

from benchmarks.harness import Case
from meanmap import kernels, two_sample_test

COLUMNS, PERMUTATIONS = 10, 1000


def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of one distribution, n points each."""
    x, y = np.random.default_rng(0).normal(size=(2, n, COLUMNS))
    return x, y


def one_kernel(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Our test with one kernel."""
    return two_sample_test(*data, kernels.RBF(4.0), statistic="biased", n_permutations=PERMUTATIONS, rng=0).statistic


def default(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Our test as it comes."""
    return two_sample_test(*data, n_permutations=PERMUTATIONS, rng=0).statistic


def bare_product(data: tuple[np.ndarray, np.ndarray]) -> float:
    """The Gram matrix and its product with all permutations in single precision: what no test can leave out."""
    z = np.concatenate(data).astype(np.float32)
    n = len(z) // 2
    squares = (z * z).sum(1)
    gram = np.exp((z @ z.T - squares / 2 - squares[:, None] / 2) / 16)
    signs = np.repeat(np.repeat(np.array([1, -1], np.float32), n)[None], PERMUTATIONS + 1, axis=0)
    signs[1:] = np.random.default_rng(0).permuted(signs[1:], axis=1)
    return float(np.einsum("ij,ij->i", signs, signs @ gram)[0]) / n**2


def beyond_single_precision(ours: float, theirs: float) -> float:
    """By how much two statistics differ beyond what single precision leaves."""
    return max(0.0, abs(ours - theirs) - 1e-5)


CASES = (
    Case(
        name="two-sample",
        title="Two-sample test of n + n points in 10 dimensions, one kernel, 1000 permutations.",
        sizes=(500, 2000),
        setup=samples,
        ours=one_kernel,
        peers={"bare product": bare_product},
        difference=beyond_single_precision,
    ),
    Case(
        name="two-sample-default",
        title="The same data with the default test: five kernels, features beyond 3000 points in total.",
        sizes=(500, 2000, 10_000),
        setup=samples,
        ours=default,
        peers={},
    ),
)
