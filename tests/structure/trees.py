"""Samples of trees with nonlinear edges."""

import numpy as np

EDGES = [(0, 1), (1, 2), (1, 3), (3, 4), (0, 5), (5, 6), (5, 7)]
FUNCTIONS = [
    lambda v: v**2,
    lambda v: np.tanh(2 * v),
    np.abs,
    lambda v: np.cos(1.5 * v),
    lambda v: np.sin(2 * v),
    lambda v: v**2,
    lambda v: np.sin(1.5 * v),
]


def sample(seed: int, rows: int, noise: float) -> np.ndarray:
    """Eight standardised variables; each child is a function of its parent and noise, in units of its deviation."""
    generator = np.random.default_rng(seed)
    columns = np.zeros((rows, 8))
    columns[:, 0] = generator.normal(size=rows)
    for (parent, child), function in zip(EDGES, FUNCTIONS, strict=True):
        signal = function(columns[:, parent])
        value = signal / signal.std() + noise * generator.normal(size=rows)
        columns[:, child] = value / value.std()
    return columns
