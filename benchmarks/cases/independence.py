"""Independence tests beside a bare matrix product of the size of the Gram matrices."""

import numpy as np

from benchmarks.harness import Case
from meanmap import independence_test, joint_independence_test, kernels

COLUMNS, PERMUTATIONS, LENGTHSCALE = 10, 1000, 4.0


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n independent pairs."""
    x, y = np.random.default_rng(0).normal(size=(2, n, COLUMNS))
    return x, y


def one_kernel(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Our test with one kernel for each variable: the statistic."""
    return independence_test(*data, kernels.RBF(LENGTHSCALE), n_permutations=PERMUTATIONS, rng=0).statistic


def default(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Our test as it comes."""
    return independence_test(*data, n_permutations=PERMUTATIONS, rng=0).statistic


def in_one_pass(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Our test by the limit, one block of rows at a time."""
    return independence_test(*data, null="spectral", n_permutations=PERMUTATIONS, rng=0).statistic


def bare_product(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Both centred Gram matrices in single precision, and one product of the size of a Gram matrix with 1000 columns.

    Nobody can permute by that product: it is a yardstick, a thousandth of what gathering would cost.
    """
    grams = []
    for z in data:
        z = z.astype(np.float32)
        squares = (z * z).sum(1) / 2
        gram = np.exp((z @ z.T - squares - squares[:, None]) / LENGTHSCALE**2)
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1)[:, None]
        grams.append(gram)
    columns = np.random.default_rng(0).normal(size=(len(z), PERMUTATIONS)).astype(np.float32)
    grams[0] @ columns
    return float(np.vdot(*grams)) / len(z) ** 2


def three(n: int) -> list[np.ndarray]:
    """Three independent variables."""
    return list(np.random.default_rng(0).normal(size=(3, n)))


def joint(data: list[np.ndarray]) -> float:
    """Our test of all three at once."""
    return joint_independence_test(data, n_permutations=PERMUTATIONS, rng=0).statistic


def beyond_single_precision(ours: float, theirs: float) -> float:
    """By how much two statistics differ beyond what single precision leaves."""
    return max(0.0, abs(ours - theirs) - 1e-6)


CASES = (
    Case(
        name="independence",
        title="Independence test of n pairs, 10 dimensions each, one kernel for each variable, 1000 permutations.",
        sizes=(500, 2000),
        setup=pairs,
        ours=one_kernel,
        peers={"bare product": bare_product},
        difference=beyond_single_precision,
    ),
    Case(
        name="independence-default",
        title="The same data with the default test: sixteen pairs of kernels, features beyond 6000 points.",
        sizes=(500, 2000, 10_000),
        setup=pairs,
        ours=default,
        peers={},
    ),
    Case(
        name="independence-limit",
        title="The same data with the limiting distribution, in one pass.",
        sizes=(10_000, 100_000),
        setup=pairs,
        ours=in_one_pass,
        peers={},
    ),
    Case(
        name="joint-independence",
        title="Joint independence of three variables, n points, 1000 permutations.",
        sizes=(250, 500),
        setup=three,
        ours=joint,
        peers={},
    ),
)
