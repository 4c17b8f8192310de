"""From tables to graphs: the PC algorithm, and trees of the strongest dependences."""

import numpy as np

from benchmarks.harness import Case
from meanmap import chow_liu, conditional_independence_test, independence_test, pc

FUNCTIONS = (np.sin, np.tanh, np.square, np.abs)


def network(n: int) -> np.ndarray:
    """Ten standardised variables, each a sum of nonlinear functions of up to two earlier ones and noise."""
    rng = np.random.default_rng(0)
    columns = np.empty((n, 10))
    for j in range(10):
        value = 0.6 * rng.normal(size=n)
        for parent in rng.choice(j, min(j, 2), replace=False) if j % 3 else ():
            value += FUNCTIONS[rng.integers(4)](1.5 * columns[:, parent])
        columns[:, j] = (value - value.mean()) / value.std()
    return columns


def search(columns: np.ndarray) -> int:
    """How many edges the PC algorithm finds."""
    return int(pc(columns, rng=0).matrix.any(axis=0).sum())


def one_by_one(columns: np.ndarray) -> int:
    """The same tests, each on its own."""

    def test(x, y, z):
        return independence_test(x, y, rng=0) if z is None else conditional_independence_test(x, y, z, rng=0)

    return int(pc(columns, test=test).matrix.any(axis=0).sum())


def tree(columns: np.ndarray) -> float:
    """The weight of the tree, cut at level .05."""
    return float(chow_liu(columns, level=0.05, rng=0).weights.sum())


CASES = (
    Case(
        name="pc",
        title="The PC algorithm with kernel tests on ten variables with nonlinear relations.",
        sizes=(200, 500),
        setup=network,
        ours=search,
    ),
    Case(
        name="pc-shared",
        title="The same search compared with separate tests, which share no computation (a close result may differ).",
        sizes=(300,),
        setup=network,
        ours=search,
        peers={"one by one": one_by_one},
        difference=lambda ours, theirs: float(abs(ours - theirs) > 2),
    ),
    Case(
        name="chow-liu",
        title="The tree of the strongest dependences among ten variables, cut at its level with 200 permutations.",
        sizes=(200, 1000),
        setup=network,
        ours=tree,
    ),
)
