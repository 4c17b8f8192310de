"""Networks that come with pgmpy: their tables, and its exact answers by variable elimination within 8 GiB."""

import resource

import numpy as np
from pgmpy.inference import VariableElimination
from pgmpy.utils import get_example_model
from serving import serve

MOST_BYTES = 8 * 2**30


def prepare(model):
    """`name` of the network, whose variables and states keep the order of its file; tables are made to sum to one."""
    network = get_example_model(str(model["name"]))
    names = list(network.nodes())
    cpds = [network.get_cpds(name) for name in names]
    for cpd in cpds:
        cpd.normalize()
    states = {name: cpd.state_names[name] for name, cpd in zip(names, cpds, strict=True)}
    elimination = VariableElimination(network)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))

    def answer(method, targets=(), evidence=()):
        """`scopes` (n, most), each variable and its parents, −1 behind; `tables` in a row; or `marginals` in a row."""
        if method == "scopes":
            scopes = [[names.index(name) for name in cpd.variables] for cpd in cpds]
            most = max(map(len, scopes))
            return np.array([scope + [-1] * (most - len(scope)) for scope in scopes])
        if method == "tables":
            for cpd in cpds:
                if any(cpd.state_names[name] != states[name] for name in cpd.variables):
                    raise ValueError(f"{cpd.variable} numbers the states of its parents in another order.")
            return np.concatenate([np.ravel(cpd.values) for cpd in cpds])
        if method == "sizes":
            return np.array([len(states[name]) for name in names])
        seen = {names[i]: states[names[i]][state] for i, state in evidence}
        found = []
        for i in targets:
            belief = elimination.query([names[i]], seen, show_progress=False)
            order = [belief.state_names[names[i]].index(state) for state in states[names[i]]]
            found.append(np.asarray(belief.values)[order])
        return np.concatenate(found)

    return answer


serve(prepare)
