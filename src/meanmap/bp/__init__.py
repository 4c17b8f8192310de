"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp.approximation import Approximation
from meanmap.bp.beliefs import Beliefs
from meanmap.bp.clique_tree import CliqueTree
from meanmap.bp.discrete import DiscreteGraph
from meanmap.bp.fitted import FittedKernelGraph
from meanmap.bp.images import neighbour_pairs, patches
from meanmap.bp.kernel_field import FittedKernelField, KernelField
from meanmap.bp.kernel_graph import KernelGraph
from meanmap.bp.kernel_grid import FittedKernelGrid, KernelGrid, Restored
from meanmap.bp.messages import Given
from meanmap.bp.observations import CentredLikelihood, LearnedLikelihood, Likelihood, NoiseLikelihood, UserLikelihood
from meanmap.bp.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.propagate import Engine, Propagation
from meanmap.bp.stream import Stream
from meanmap.bp.updates import Constant, Full, Linear

__all__ = [
    "Approximation",
    "Beliefs",
    "CentredLikelihood",
    "CliqueTree",
    "Constant",
    "DiscreteGraph",
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "Factored",
    "FittedKernelField",
    "FittedKernelGraph",
    "FittedKernelGrid",
    "Full",
    "Given",
    "KernelField",
    "KernelGraph",
    "KernelGrid",
    "LearnedLikelihood",
    "Likelihood",
    "Linear",
    "NoiseLikelihood",
    "Propagation",
    "Restored",
    "Stream",
    "UserLikelihood",
    "neighbour_pairs",
    "patches",
]
