"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp import engine, results  # noqa: F401  # bp.engine, bp.results
from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.densities import Density, NormalMixture
from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.beliefs.most_probable import most_probable
from meanmap.bp.beliefs.sensitivity import sensitivity
from meanmap.bp.conditionals.bayesian_network import BayesianNetwork
from meanmap.bp.conditionals.dependency_network import DependencyNetwork
from meanmap.bp.edges.learning import LearnedLikelihood
from meanmap.bp.edges.observations import CentredLikelihood, Likelihood, NoiseLikelihood, Tempered, UserLikelihood
from meanmap.bp.edges.updates import Constant, Full, Linear, Update
from meanmap.bp.field import Field
from meanmap.bp.kernel.images import neighbour_pairs, patches
from meanmap.bp.kernel.kernel_field import KernelField
from meanmap.bp.kernel.kernel_graph import KernelGraph
from meanmap.bp.kernel.kernel_grid import KernelGrid
from meanmap.bp.kernel.stream import Stream
from meanmap.bp.normal.gaussian import spectral_radius
from meanmap.bp.normal.gaussian_graph import GaussianGraph
from meanmap.bp.normal.linear_solver import solve
from meanmap.bp.pooling import Pooled, pooled
from meanmap.bp.surroundings.forest_grid import ForestGrid
from meanmap.bp.tables.clique_tree import CliqueTree
from meanmap.bp.tables.discrete import DiscreteGraph
from meanmap.bp.tables.factor_graph import FactorGraph

__all__ = [  # noqa: RUF022  # models first
    # Models: a graph and how its edges are learned.
    "KernelGraph",
    "KernelField",
    "KernelGrid",
    "ForestGrid",
    "BayesianNetwork",
    "DependencyNetwork",
    "DiscreteGraph",
    "CliqueTree",
    "FactorGraph",
    "GaussianGraph",
    # Pairs that arrive in batches.
    "Stream",
    # How a model is set: updates of messages, likelihoods of observations, draws.
    "Full",
    "Linear",
    "Constant",
    "CentredLikelihood",
    "LearnedLikelihood",
    "NoiseLikelihood",
    "UserLikelihood",
    "Tempered",
    # Answers.
    "Beliefs",
    "Density",
    "NormalMixture",
    "Histogram",
    "Pooled",
    # Functions.
    "most_probable",
    "neighbour_pairs",
    "patches",
    "pooled",
    "sensitivity",
    "solve",
    "spectral_radius",
    # Bases of your own fields, likelihoods and updates; the engine itself is `bp.engine`.
    "Field",
    "Likelihood",
    "Update",
]
