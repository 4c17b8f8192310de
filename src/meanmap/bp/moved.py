"""What became of classes that files of earlier versions name: where they are today, and what their fields are now."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

__all__ = ["MOVED", "UPGRADES"]

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
    "learning": ("edges.learning", "MessageEdge LikelihoodEdge"),
    "mixtures.mixtures": ("sampled.mixtures.mixtures", "Mixtures"),
    "operators": ("engine.operators", "Grouping"),
    "pair_densities": ("sampled.pair_densities", "PairDensities"),
    "regression": ("edges.regression", "Regression"),
    "relations": ("edges.relations", "Manner Relations"),
    "samples": ("edges.samples", "NodeSample Samples"),
    "stream": ("kernel.stream", "Link Step"),
    "surroundings.trees": ("conditionals.trees", "Trees"),
    "two_pass": ("engine.two_pass", "Passes"),
    "variables": ("edges.updates", "Variable"),
}
MOVED = MappingProxyType(
    {
        f"meanmap.bp.{then}.{name}": f"meanmap.bp.{today}.{name}"
        for then, (today, names) in _MODULES.items()
        for name in names.split()
    }
    | {
        "meanmap.bp.relations.Direction": "meanmap.bp.edges.samples.Direction",
        "meanmap.bp.learning.Coordinates": "meanmap.bp.edges.coordinates.Coordinates",
        "meanmap.bp.edges.variables.Variable": "meanmap.bp.edges.updates.Variable",
        "meanmap.bp.edges.learning.Coordinates": "meanmap.bp.edges.coordinates.Coordinates",
    }
)


def _without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Drops what is worked out anew; of an engine that a model kept, the schedule stays."""

    def upgraded(held: dict[str, Any]) -> dict[str, Any]:
        for name in names:
            part = held.pop(name, None)
            if name in ("engine", "_engine") and part is not None:
                held.setdefault("schedule", vars(part).get("schedule"))
        return held

    return upgraded


UPGRADES = MappingProxyType(
    {
        "meanmap.bp.Engine": _without("operators"),
        "meanmap.bp.FittedDiscretizedField": _without("engine"),
        "meanmap.bp.FittedKernelField": _without("engine"),
        "meanmap.bp.FittedKernelGraph": _without("_engine", "_inside", "_counts", "_tree"),
    }
)
