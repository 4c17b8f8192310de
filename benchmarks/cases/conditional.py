"""The kernel conditional independence test."""

import numpy as np

from benchmarks.conditional import independent
from benchmarks.harness import Case
from meanmap import conditional_independence_test

DRAWS = 1000
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def three_causes(n: int) -> Triple:
    """x and y with three common causes and nothing else in common."""
    return independent("nonlinear", n, 3, 0)


def whole(data: Triple) -> float:
    """Our test with whole matrices."""
    return conditional_independence_test(*data, method="kci", n_permutations=DRAWS, rng=0).statistic


def streamed(data: Triple) -> float:
    """Our test with features."""
    return conditional_independence_test(*data, method="features", n_permutations=DRAWS, rng=0).statistic


CASES = (
    Case(
        name="conditional-independence",
        title="Kernel conditional independence test given three columns, 1000 draws.",
        sizes=(500, 1000, 2000, 5000),
        setup=three_causes,
        ours=whole,
    ),
    Case(
        name="conditional-independence-features",
        title="The same with features, streamed.",
        sizes=(5000, 20_000, 100_000),
        setup=three_causes,
        ours=streamed,
    ),
)
