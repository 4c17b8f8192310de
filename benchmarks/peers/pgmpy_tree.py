"""A Bayesian tree in pgmpy: its message passing, and its exact answers by variable elimination."""

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import BeliefPropagationWithMessagePassing, VariableElimination
from pgmpy.models import DiscreteBayesianNetwork, FactorGraph
from serving import serve


def prepare(model):
    """`parent` (n,), −1 at the root; `tables` (n, k, k), P(x | parent) with a row for each state of the parent."""
    parent, tables = model["parent"], model["tables"]
    n, k = tables.shape[:2]
    names = [f"x{i}" for i in range(n)]
    root = DiscreteFactor([names[0]], [k], tables[0, 0])
    factors = [DiscreteFactor([names[parent[i]], names[i]], [k, k], tables[i]) for i in range(1, n)]
    graph = FactorGraph()
    graph.add_nodes_from(names)
    graph.add_factors(root, *factors)
    graph.add_edges_from([(factor, name) for factor in (root, *factors) for name in factor.variables])
    messages = BeliefPropagationWithMessagePassing(graph)
    network = DiscreteBayesianNetwork([(names[parent[i]], names[i]) for i in range(1, n)])
    network.add_cpds(TabularCPD(names[0], k, tables[0, 0][:, None]))
    for i in range(1, n):
        network.add_cpds(TabularCPD(names[i], k, tables[i].T, [names[parent[i]]], [k]))
    elimination = VariableElimination(network)

    def answer(evidence, targets, exact=False):
        """The marginals (targets, k), normalised."""
        seen = {names[int(i)]: state for i, state in evidence.items()}
        asked = [names[i] for i in targets]
        if exact:
            values = [elimination.query([name], seen, show_progress=False).values for name in asked]
        else:
            found = messages.query(asked, seen)
            values = [found[name].values for name in asked]
        values = np.array(values)
        return values / values.sum(axis=1, keepdims=True)

    return answer


serve(prepare)
