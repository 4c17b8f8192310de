"""Networks learned by pgmpy with a given graph, as tables or as lines with normal noise; and lines it comes with."""

import numpy as np
import pandas as pd
from pgmpy.estimators import BayesianEstimator, MaximumLikelihoodEstimator
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.utils import get_example_model
from serving import serve


def prepare(model):
    """`name` of a network of numbers; or `rows` (n, d) to learn from, `new` (m, d), `scopes` (k, most), each variable
    that is learned and its parents, −1 behind, and of labels `sizes` (d,). The answer is a log probability of each new
    row, or with a name `lines` (d, d + 2): slopes of all parents, the intercept and the standard deviation, causes
    first.
    """
    if "name" in model:
        return lambda method: lines(get_example_model(str(model["name"])))
    names = [f"x{i}" for i in range(model["rows"].shape[1])]
    families = {names[s[0]]: [names[i] for i in s[1:] if i >= 0] for s in model["scopes"].tolist()}
    arrows = [(parent, name) for name, above in families.items() for parent in above]
    new = pd.DataFrame(model["new"], columns=names)

    def answer(method):
        frame = pd.DataFrame(model["rows"], columns=names)[list(families)]
        if method == "linear":
            network = LinearGaussianBayesianNetwork(arrows)
            network.add_nodes_from(families)
            network.fit(frame)
            return sum(normal(network.get_cpds(name), new) for name in families)
        states = {name: list(range(int(model["sizes"][names.index(name)]))) for name in families}
        network = DiscreteBayesianNetwork(arrows)
        network.add_nodes_from(families)
        frame = frame.apply(lambda column: pd.Categorical(column, categories=states[column.name]))
        kind = MaximumLikelihoodEstimator if method == "likelihood" else BayesianEstimator
        settings = {"BDeu": {"prior_type": "BDeu", "equivalent_sample_size": 5}, "K2": {"prior_type": "K2"}}
        estimator = kind(network, frame, state_names=states)
        logs = np.zeros(len(new))
        for name in families:
            cpd = estimator.estimate_cpd(name, **settings.get(method, {}))
            with np.errstate(divide="ignore"):
                logs += np.log(cpd.values[tuple(new[v].to_numpy() for v in cpd.variables)])
        return logs

    return answer


def normal(cpd, new):
    """The log density of a number in new rows."""
    left = new[cpd.variable] - cpd.beta[0] - new[list(cpd.evidence)].to_numpy() @ np.asarray(cpd.beta[1:], dtype=float)
    return (-((left / cpd.std) ** 2) / 2 - np.log(cpd.std) - np.log(2 * np.pi) / 2).to_numpy()


def lines(network):
    """Slopes, intercepts and standard deviations."""
    import networkx

    names = list(networkx.topological_sort(network))
    found = np.zeros((len(names), len(names) + 2))
    for i, name in enumerate(names):
        cpd = network.get_cpds(name)
        found[i, [names.index(parent) for parent in cpd.evidence]] = cpd.beta[1:]
        found[i, -2:] = cpd.beta[0], cpd.std
    return found


serve(prepare)
