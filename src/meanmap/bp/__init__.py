"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp.approximation import Approximation
from meanmap.bp.beliefs import Beliefs
from meanmap.bp.clique_tree import CliqueTree
from meanmap.bp.densities import Density, NormalMixture
from meanmap.bp.discrete import DiscreteGraph
from meanmap.bp.discretized_field import DiscretizedField, FittedDiscretizedField
from meanmap.bp.factor_graph import FactorGraph
from meanmap.bp.field import Field, FittedField
from meanmap.bp.fitted import FittedKernelGraph
from meanmap.bp.fitted_field import FittedKernelField
from meanmap.bp.fitted_grid import FittedKernelGrid
from meanmap.bp.gaussian import spectral_radius
from meanmap.bp.gaussian_field import FittedGaussianField, GaussianField
from meanmap.bp.gaussian_graph import GaussianGraph
from meanmap.bp.histogram import Histogram
from meanmap.bp.images import neighbour_pairs, patches
from meanmap.bp.kernel_field import KernelField
from meanmap.bp.kernel_graph import KernelGraph
from meanmap.bp.kernel_grid import KernelGrid
from meanmap.bp.linear_solver import Solution, solve
from meanmap.bp.messages import Given
from meanmap.bp.mixture_field import FittedMixtureField, MixtureField
from meanmap.bp.mixtures import Gibbs, Multiscale
from meanmap.bp.noise_likelihoods import CentredLikelihood, NoiseLikelihood
from meanmap.bp.observations import Likelihood, Tempered, UserLikelihood
from meanmap.bp.operator_likelihood import LearnedLikelihood
from meanmap.bp.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.particle_field import FittedParticleField, ParticleField
from meanmap.bp.particles import Adaptive, Metropolis
from meanmap.bp.propagate import Engine, Propagation
from meanmap.bp.restored import Restored
from meanmap.bp.stream import Stream
from meanmap.bp.updates import Constant, Full, Linear

__all__ = [
    "Adaptive",
    "Approximation",
    "Beliefs",
    "CentredLikelihood",
    "CliqueTree",
    "Constant",
    "Density",
    "DiscreteGraph",
    "DiscretizedField",
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "FactorGraph",
    "Factored",
    "Field",
    "FittedDiscretizedField",
    "FittedField",
    "FittedGaussianField",
    "FittedKernelField",
    "FittedKernelGraph",
    "FittedKernelGrid",
    "FittedMixtureField",
    "FittedParticleField",
    "Full",
    "GaussianField",
    "GaussianGraph",
    "Gibbs",
    "Given",
    "Histogram",
    "KernelField",
    "KernelGraph",
    "KernelGrid",
    "LearnedLikelihood",
    "Likelihood",
    "Linear",
    "Metropolis",
    "MixtureField",
    "Multiscale",
    "NoiseLikelihood",
    "NormalMixture",
    "ParticleField",
    "Propagation",
    "Restored",
    "Solution",
    "Stream",
    "Tempered",
    "UserLikelihood",
    "neighbour_pairs",
    "patches",
    "solve",
    "spectral_radius",
]
