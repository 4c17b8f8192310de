"""The classes of results of `fit`, `query` and functions, for annotations, `isinstance` and reading."""

from meanmap.bp.beliefs.gain import Gain
from meanmap.bp.beliefs.most_probable import Configuration
from meanmap.bp.beliefs.sensitivity import Sensitivity
from meanmap.bp.conditionals.causal_effect import Arm, CausalEffect, Estimate
from meanmap.bp.conditionals.fitted_bayesian import FittedBayesianNetwork
from meanmap.bp.conditionals.fitted_dependency import FittedDependencyNetwork
from meanmap.bp.conditionals.judged import ArrowScores
from meanmap.bp.edges.approximation import Approximation
from meanmap.bp.field import FittedField
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.bp.kernel.kernel_grid import FittedKernelGrid
from meanmap.bp.kernel.restored import Restored
from meanmap.bp.model import FittedModel
from meanmap.bp.normal.linear_solver import Solution
from meanmap.bp.pooling import Pooled
from meanmap.bp.surroundings.forest_grid import FittedForestGrid

__all__ = [
    "Approximation",
    "Arm",
    "ArrowScores",
    "CausalEffect",
    "Configuration",
    "Estimate",
    "FittedBayesianNetwork",
    "FittedDependencyNetwork",
    "FittedField",
    "FittedForestGrid",
    "FittedKernelField",
    "FittedKernelGraph",
    "FittedKernelGrid",
    "FittedModel",
    "Gain",
    "Pooled",
    "Restored",
    "Sensitivity",
    "Solution",
]
