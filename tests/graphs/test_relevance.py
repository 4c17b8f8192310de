"""Which variables matter, against d-separation as NetworkX has it."""

import networkx
import numpy as np

from meanmap.graphs.relevance import ancestors, relevant


def test_what_is_left_out_is_separated_or_an_unseen_effect():
    rng = np.random.default_rng(0)
    for _ in range(40):
        upper = np.triu(rng.random((8, 8)) < 0.3, 1)
        parents = {j: np.flatnonzero(upper[:, j]).tolist() for j in range(8)}
        graph = networkx.DiGraph([(i, j) for j in parents for i in parents[j]])
        graph.add_nodes_from(range(8))
        known = rng.choice(8, rng.integers(0, 4), replace=False).tolist()
        target = next(j for j in rng.permutation(8).tolist() if j not in known)
        found = relevant(parents, [target], known)
        above = ancestors(parents, [target, *known])
        assert found == {
            j
            for j in range(8)
            if j not in known
            and j in above
            and (j == target or not networkx.is_d_separator(graph, {j}, {target}, set(known)))
        }
