"""A pairwise network in PGMax: flooding sum-product."""

import jax
import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup
from serving import serve


def prepare(model):
    """`edges` (|E|, 2), `table` (k, k) or (|E|, k, k) and `priors` (n, k), both as logarithms."""
    edges, table, priors = model["edges"], model["table"], model["priors"]
    variables = vgroup.NDVarArray(num_states=priors.shape[1], shape=(len(priors),))
    graph = fgraph.FactorGraph(variable_groups=[variables])
    pairs = [[variables[int(a)], variables[int(b)]] for a, b in edges]
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=table))
    inferer = infer.build_inferer(graph.bp_state, backend="bp")
    arrays = inferer.init(evidence_updates={variables: priors})

    def run(arrays, sweeps, damping):
        return inferer.run(arrays, num_iters=sweeps, damping=damping, temperature=1.0)

    compiled = jax.jit(run, static_argnums=(1, 2))

    def marginals(sweeps, damping=0.0):
        """The marginals (n, k) after some sweeps."""
        found = compiled(arrays, sweeps, damping)
        return np.asarray(infer.get_marginals(inferer.get_beliefs(found))[variables])

    return marginals


serve(prepare)
