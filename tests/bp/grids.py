"""Belief propagation on a fine grid with the edge densities that a field has learned: slow, and exact on forests."""

import numpy as np


def likelihood(observed, points):
    """Of noise with variance 1/4."""
    return np.exp(-2 * (np.asarray(observed)[:, None] - points[None]) ** 2)


def backwards(field, grid):
    """(x_t, x_s) matrices p(x_t | x_s) of each direction, as particles have them."""
    step, x = grid[1] - grid[0], grid[:, None]
    return [np.exp(d.log_components(x)) @ np.exp(d.log_weights(x)).T * step for d in field.densities.backwards]


def onwards(field, grid):
    """p(x_s | x_t) p(x_t) / p(x_s), as mixtures have them."""
    step, x, found = grid[1] - grid[0], grid[:, None], []
    for i, (density, direction) in enumerate(zip(field.densities.onwards, field.directions, strict=True)):
        sender = list(field.samples).index(direction.sender)
        before = np.exp(field.densities.priors[sender].log_density(x))
        behind = np.exp(field.densities.predictions[i].log_density(x))
        joint = np.exp(density.log_weights(x)) @ np.exp(density.log_components(x)).T
        found.append(joint * before[:, None] * step / np.maximum(behind, 1e-250))
    return found


def beliefs(field, own, grid, matrices, sweeps=15, damping=0.3):
    """Densities (n, G) from the nodes' own likelihoods (n, G)."""
    graph = field.graph
    edges = len(graph.sources)
    messages = np.ones((edges, len(grid)))
    against = (np.arange(edges) + edges // 2) % edges
    for _ in range(2 * graph.size if graph.is_forest else sweeps):
        new = np.empty_like(messages)
        for e, (t, template) in enumerate(zip(graph.sources, field.template, strict=True)):
            incoming = [m for i, m in enumerate(messages) if graph.targets[i] == t and i != against[e]]
            value = (own[t] * np.prod(incoming, axis=0)) @ matrices[template]
            new[e] = value / value.max()
        messages = new if graph.is_forest else new + damping * (messages - new)
    priors = np.exp([field.densities.priors[k].log_density(grid[:, None]) for k in field.kind])
    products = [np.prod(messages[graph.targets == t], axis=0) for t in range(graph.size)]
    found = priors * own * np.stack(products)
    return found / found.sum(axis=1, keepdims=True) / (grid[1] - grid[0])


def moments(densities, grid):
    """Means and variances."""
    step = grid[1] - grid[0]
    mean = densities @ grid * step
    return mean, densities @ grid**2 * step - mean**2
