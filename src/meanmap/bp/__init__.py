"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp.beliefs import Beliefs
from meanmap.bp.discrete import DiscreteGraph
from meanmap.bp.fitted import FittedKernelGraph
from meanmap.bp.kernel_graph import KernelGraph
from meanmap.bp.messages import Given
from meanmap.bp.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.propagate import Engine, Propagation
from meanmap.bp.stream import Stream

__all__ = [
    "Beliefs",
    "DiscreteGraph",
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "Factored",
    "FittedKernelGraph",
    "Given",
    "KernelGraph",
    "Propagation",
    "Stream",
]
