"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.densities import Density, NormalMixture
from meanmap.bp.beliefs.gain import Gain
from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.beliefs.most_probable import Configuration, most_probable
from meanmap.bp.beliefs.sensitivity import Sensitivity, sensitivity
from meanmap.bp.conditionals.bayesian_network import BayesianNetwork
from meanmap.bp.conditionals.dependency_network import DependencyNetwork
from meanmap.bp.conditionals.fitted_bayesian import FittedBayesianNetwork
from meanmap.bp.conditionals.fitted_dependency import FittedDependencyNetwork
from meanmap.bp.conditionals.judged import ArrowScores
from meanmap.bp.edges.approximation import Approximation
from meanmap.bp.edges.learning import LearnedLikelihood
from meanmap.bp.edges.observations import CentredLikelihood, Likelihood, NoiseLikelihood, Tempered, UserLikelihood
from meanmap.bp.edges.updates import Constant, Full, Linear, Update
from meanmap.bp.engine.exchange import Exchange, Sent
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.engine.propagate import Engine, Propagation
from meanmap.bp.field import Field, FittedField
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.bp.kernel.images import neighbour_pairs, patches
from meanmap.bp.kernel.kernel_field import KernelField
from meanmap.bp.kernel.kernel_graph import KernelGraph
from meanmap.bp.kernel.kernel_grid import FittedKernelGrid, KernelGrid
from meanmap.bp.kernel.restored import Restored
from meanmap.bp.kernel.stream import Stream
from meanmap.bp.model import FittedModel
from meanmap.bp.normal.gaussian import spectral_radius
from meanmap.bp.normal.gaussian_field import FittedGaussianField, GaussianField
from meanmap.bp.normal.gaussian_graph import GaussianGraph
from meanmap.bp.normal.linear_solver import Solution, solve
from meanmap.bp.sampled import mixtures as mixtures
from meanmap.bp.sampled import particles as particles
from meanmap.bp.sampled.mixture_field import FittedMixtureField, MixtureField
from meanmap.bp.sampled.mixtures import Gibbs, Multiscale
from meanmap.bp.sampled.particle_field import FittedParticleField, ParticleField
from meanmap.bp.sampled.particles import Adaptive, Metropolis
from meanmap.bp.surroundings.forest_grid import FittedForestGrid, ForestGrid
from meanmap.bp.tables.clique_tree import CliqueTree
from meanmap.bp.tables.discrete import DiscreteGraph
from meanmap.bp.tables.discretized_field import DiscretizedField, FittedDiscretizedField
from meanmap.bp.tables.factor_graph import FactorGraph

__all__ = [  # noqa: RUF022  # models first
    # Models: a graph and how its edges are learned.
    "KernelGraph",
    "KernelField",
    "KernelGrid",
    "ForestGrid",
    "BayesianNetwork",
    "DependencyNetwork",
    "GaussianField",
    "DiscretizedField",
    "MixtureField",
    "ParticleField",
    "DiscreteGraph",
    "CliqueTree",
    "FactorGraph",
    "GaussianGraph",
    # Models that know their edges, made by `fit`.
    "FittedModel",
    "FittedKernelGraph",
    "FittedField",
    "FittedKernelField",
    "FittedKernelGrid",
    "FittedForestGrid",
    "FittedBayesianNetwork",
    "FittedDependencyNetwork",
    "FittedGaussianField",
    "FittedDiscretizedField",
    "FittedMixtureField",
    "FittedParticleField",
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
    "Gibbs",
    "Multiscale",
    "Adaptive",
    "Metropolis",
    # Answers.
    "Beliefs",
    "Density",
    "NormalMixture",
    "Histogram",
    "Restored",
    "Approximation",
    "Solution",
    "ArrowScores",
    "Configuration",
    "Gain",
    "Sensitivity",
    # Functions.
    "most_probable",
    "neighbour_pairs",
    "patches",
    "sensitivity",
    "solve",
    "spectral_radius",
    # For those who extend the engine, or run it by itself.
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "Exchange",
    "Factored",
    "Field",
    "Given",
    "Likelihood",
    "Propagation",
    "Sent",
    "Update",
]
