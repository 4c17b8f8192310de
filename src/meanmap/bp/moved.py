"""Where classes are found today that files of earlier versions name by the module that they were in then."""

from types import MappingProxyType

__all__ = ["MOVED"]

# By their module when they moved: the module of today, and the classes.
_MODULES = {
    "algebra": ("engine.algebra", "Product Sum Reweighted Counted"),
    "belief_weights": ("kernel.belief_weights", "Factor MessageWeights"),
    "bins": ("tables.bins", "Bins Smoothing"),
    "field_evidence": ("evidence.field_evidence", "Evidence Observed"),
    "gaussian": ("normal.gaussian", "GaussianEdges GaussianModel"),
    "kernel_evidence": ("evidence.kernel_evidence", "Evidence"),
    "label_belief": ("beliefs.label_belief", "LabelBelief"),
    "layout": ("engine.layout", "Layout"),
    "learning": ("edges.learning", "Coordinates MessageEdge LikelihoodEdge"),
    "mixtures.mixtures": ("sampled.mixtures.mixtures", "Mixtures"),
    "operators": ("engine.operators", "Grouping"),
    "pair_densities": ("sampled.pair_densities", "PairDensities"),
    "regression": ("edges.regression", "Regression"),
    "relations": ("edges.relations", "Manner Relations"),
    "samples": ("edges.samples", "NodeSample Samples"),
    "stream": ("kernel.stream", "Link Step"),
    "two_pass": ("engine.two_pass", "Passes"),
    "variables": ("edges.variables", "Variable"),
}
MOVED = MappingProxyType(
    {
        f"meanmap.bp.{then}.{name}": f"meanmap.bp.{today}.{name}"
        for then, (today, names) in _MODULES.items()
        for name in names.split()
    }
    | {"meanmap.bp.relations.Direction": "meanmap.bp.edges.samples.Direction"}
)
