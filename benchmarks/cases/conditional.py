"""The kernel conditional independence test."""

import importlib.util

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


def causal_learn(data: Triple) -> float:
    """KCI of causal-learn: its p-value."""
    from causallearn.utils.cit import CIT

    z = data[2]
    return CIT(np.column_stack(data), "kci")(0, 1, list(range(2, 2 + z.shape[1])))


CASES = (
    Case(
        name="conditional-independence",
        title="Kernel conditional independence test given three columns, 1000 draws.",
        sizes=(200, 1000),
        setup=three_causes,
        ours=whole,
        peers={"KCI of causal-learn": causal_learn} if importlib.util.find_spec("causallearn") else {},
        difference=lambda ours, theirs: 0.0,  # other statistics of the same hypothesis
    ),
    Case(
        name="conditional-independence-features",
        title="The same test with features, which reads the rows in pieces.",
        sizes=(5000, 20_000),
        setup=three_causes,
        ours=streamed,
    ),
)
