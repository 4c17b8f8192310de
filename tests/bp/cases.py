"""Three models with known posteriors, and algorithm 1 with fixed rules for bandwidth and ridge.

Notes on belief propagation, section 4: a Gaussian chain, a Gaussian tree, a chain of bimodal variables.
"""

from dataclasses import dataclass

import networkx
import numpy as np

from meanmap import kernels, median_heuristic
from meanmap.embeddings import PointEmbedding
from meanmap.graphs import Graph, Rooted

GRID = np.linspace(-4, 4, 321)
STEP = GRID[1] - GRID[0]


@dataclass
class Case:
    edges: list
    table: np.ndarray
    evidence: dict
    target: int
    posterior: np.ndarray  # on GRID
    multiple: float  # of the median distance, for the fixed rules

    def errors(self, belief):
        """Of the posterior mean, and the L1 distance of the densities."""
        mean = (GRID * self.posterior).sum() * STEP
        return abs(float(belief.mean()) - mean), np.abs(belief.density(GRID) - self.posterior).sum() * STEP


def gaussian(seed, m, edges, rho, seen, target):
    """Standard normal variables with correlation rho along each edge."""
    distance = dict(networkx.all_pairs_shortest_path_length(networkx.Graph(edges)))
    n = len(distance)
    covariance = np.array([[rho ** distance[i][j] for j in range(n)] for i in range(n)])
    draws = np.random.default_rng(seed).multivariate_normal(np.zeros(n), covariance, size=m + 1)
    evidence = {i: float(np.clip(draws[m, i], -1.8, 1.8)) for i in seen}
    weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen, target])
    mean, variance = weights @ np.array(list(evidence.values())), 1 - weights @ covariance[seen, target]
    posterior = np.exp(-((GRID - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return Case(edges, draws[:m], evidence, target, posterior, 1.0)


def chain(seed, m):
    return gaussian(seed, m, [(i, i + 1) for i in range(5)], 0.8, [0, 5], 3)


def tree(seed, m):
    return gaussian(seed, m, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)], 0.75, [3, 4, 5], 0)


def bimodal(seed, m):
    """x_{i+1} = ±1.35 + .3 sin(2 x_i) + noise of .5, the sign + with probability 1 / (1 + exp(−2 x_i))."""
    rng = np.random.default_rng(seed)
    x = np.zeros((m + 1, 4))
    x[:, 0] = np.where(rng.random(m + 1) < 0.5, 1.5, -1.5) + 0.5 * rng.normal(size=m + 1)
    for i in range(1, 4):
        sign = np.where(rng.random(m + 1) < 1 / (1 + np.exp(-2 * x[:, i - 1])), 1, -1)
        x[:, i] = 1.35 * sign + 0.3 * np.sin(2 * x[:, i - 1]) + 0.5 * rng.normal(size=m + 1)

    def normal(z):
        return np.exp(-(z**2) / 0.5) / np.sqrt(0.5 * np.pi)

    up = 1 / (1 + np.exp(-2 * GRID))[:, None]
    centre = 0.3 * np.sin(2 * GRID)[:, None]
    step = up * normal(GRID - centre - 1.35) + (1 - up) * normal(GRID - centre + 1.35)
    prior = (normal(GRID - 1.5) + normal(GRID + 1.5)) / 2 @ step * STEP
    behind = step @ step[:, np.abs(GRID - x[m, 3]).argmin()] * STEP
    posterior = prior * behind
    return Case([(0, 1), (1, 2), (2, 3)], x[:m], {3: float(x[m, 3])}, 1, posterior / posterior.sum() / STEP, 0.5)


CASES = {"chain": chain, "tree": tree, "bimodal": bimodal}

# What is added to the diagonal of a Gram matrix of m points, and the width of soft evidence in lengthscales.
RULES = {
    "m λ = .1 √m": (lambda m: 0.1 * np.sqrt(m), None),
    "m λ = √m": (lambda m: np.sqrt(m), None),
    "K + I": (lambda m: 1.0, None),
    "K + .001 I": (lambda m: 1e-3, None),
    "soft evidence": (lambda m: 0.1 * np.sqrt(m), 0.4),
}


def fixed_rule(case, rule):
    """Algorithm 1 by dense inverses with one rule for all edges."""
    shift, soft = RULES[rule]
    points = case.table
    m, n = points.shape
    graph = Graph.of(case.edges, nodes=range(n))
    scales = [case.multiple * median_heuristic(points[:, i]) for i in range(n)]
    grams = [kernels.RBF(scale)(points[:, i]) for i, scale in enumerate(scales)]
    solve = [np.linalg.inv(gram + shift(m) * np.eye(m)) for gram in grams]
    tree = Rooted.at(graph, [case.target])
    product, heard = np.ones((n, m)), np.zeros(n, dtype=bool)
    for node in tree.order[:0:-1]:
        up = tree.parent[node]
        if node in case.evidence:
            width = scales[node] if soft is None else soft * scales[node]
            at = kernels.RBF(width)(points[:, node], [case.evidence[node]])[:, 0]
            coefficients = solve[up] @ (at if soft is not None else solve[node] @ at)
        elif heard[node]:
            coefficients = solve[up] @ product[node]
        else:
            continue
        message = grams[up] @ coefficients
        product[up] *= message / np.abs(message).max()
        heard[up] = True
    return PointEmbedding(kernels.RBF(1.0), points[:, [case.target]], product[case.target], True)
