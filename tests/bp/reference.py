"""Slow and obviously right: enumeration of all states, and messages in dictionaries, one by one."""

import networkx
import numpy as np

from meanmap.graphs import Graph


def enumerate_all(graph, tables, priors):
    """The unnormalised joint table, all marginals and log Z."""
    n = graph.size
    joint = np.ones([len(prior) for prior in priors])
    for (a, b), table in zip(graph.edges, tables, strict=True):
        low, high, oriented = (a, b, table) if a < b else (b, a, table.T)
        joint = joint * oriented.reshape(
            [oriented.shape[0] if i == low else oriented.shape[1] if i == high else 1 for i in range(n)]
        )
    for node, prior in enumerate(priors):
        joint = joint * prior.reshape([len(prior) if i == node else 1 for i in range(n)])
    total = joint.sum()
    return joint, [joint.sum(axis=tuple(j for j in range(n) if j != i)) / total for i in range(n)], np.log(total)


def slow_propagation(graph, tables, priors, sweeps=2000, damping=0.0):
    """Loopy sum-product by flooding, as the textbook writes it; beliefs and the last change."""
    neighbours = {i: set() for i in range(graph.size)}
    potential = {}
    for (a, b), table in zip(graph.edges.tolist(), tables, strict=True):
        neighbours[a].add(b)
        neighbours[b].add(a)
        potential[a, b], potential[b, a] = table, table.T
    messages = {(t, s): np.ones(len(priors[s])) / len(priors[s]) for t in neighbours for s in neighbours[t]}
    for _ in range(sweeps):
        new = {}
        for t, s in messages:
            product = priors[t].copy()
            for u in neighbours[t] - {s}:
                product = product * messages[u, t]
            message = product @ potential[t, s]
            new[t, s] = (1 - damping) * message / message.sum() + damping * messages[t, s]
        change = max(np.abs(new[e] - messages[e]).max() for e in messages)
        messages = new
        if change < 1e-14:
            break
    beliefs = []
    for t in range(graph.size):
        belief = priors[t].copy()
        for u in neighbours[t]:
            belief = belief * messages[u, t]
        beliefs.append(belief / belief.sum())
    return beliefs, change


def random_tree_model(seed, n=9, forest=True):
    """A random tree (or forest of two) with 2 to 4 states a node: graph, tables, priors and the potentials mapping."""
    rng = np.random.default_rng(seed)
    states = rng.integers(2, 5, n)
    states[0] = 4  # the widest, so that shapes of arrays agree between seeds
    edges = [(int(rng.integers(i)), i) for i in range(1, n)]
    if forest:
        del edges[int(rng.integers(len(edges)))]
    edges = [edge if rng.random() < 0.5 else edge[::-1] for edge in edges]
    graph = Graph.of(edges, nodes=range(n))
    tables = [rng.random((states[a], states[b])) for a, b in edges]
    priors = [rng.random(k) for k in states]
    return graph, tables, priors, dict(zip(edges, tables, strict=True))


def grid_model(seed, rows=3, columns=4, states=3, strength=1.0):
    """A grid with a random table for each edge: graph, tables, priors."""
    rng = np.random.default_rng(seed)
    graph = Graph.of(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(rows, columns)))
    tables = list(np.exp(strength * rng.normal(size=(len(graph.edges), states, states))))
    return graph, tables, [rng.random(states) + 0.1 for _ in range(graph.size)]
