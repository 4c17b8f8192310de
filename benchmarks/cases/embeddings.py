"""The conditional operator: fitting it with everything chosen, and asking it."""

import numpy as np

from benchmarks.harness import Case
from meanmap import condition, kernels

COLUMNS = 10


def pairs(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n noisy values of a smooth function of ten columns, and 2000 new places."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, COLUMNS))
    y = np.sin(x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=n)
    return x, y, rng.normal(size=(2000, COLUMNS))


def ours(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Fit, and the conditional means at the new places."""
    x, y, new = data
    k = kernels.RBF(4.0)
    return condition(x, y, kernel_x=k, kernel_y=kernels.RBF(1.0), ridge=1e-5)(new).mean()


def by_hand(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """The same in NumPy, with one solve for y and one for what the weights lack of one, which all y get alike."""
    x, y, new = data

    def gram(a, b):
        squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        return np.exp(-squares / 32)

    n = len(x)
    solved = np.linalg.solve(gram(x, x) + n * 1e-5 * np.eye(n), np.c_[y, np.ones(n)])
    sums = gram(new, x) @ solved
    return sums[:, 0] + (1 - sums[:, 1]) * y.mean()


CASES = (
    Case(
        name="conditional-operator",
        title="Conditional operator of n points in 10 dimensions, ridge given, and 2000 conditional means, float64.",
        sizes=(1000, 4000),
        setup=pairs,
        ours=ours,
        peers={"NumPy by hand": by_hand},
    ),
)
