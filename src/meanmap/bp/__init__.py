"""Belief propagation: a graph, operators and evidence in, beliefs out. One engine for trees and graphs with cycles."""

from meanmap.bp.approximation import Approximation
from meanmap.bp.beliefs import Beliefs
from meanmap.bp.densities import Density, NormalMixture
from meanmap.bp.discrete import DiscreteGraph
from meanmap.bp.discretized_field import DiscretizedField, FittedDiscretizedField
from meanmap.bp.field import Field, FittedField
from meanmap.bp.fitted import FittedKernelGraph
from meanmap.bp.histogram import Histogram
from meanmap.bp.images import neighbour_pairs, patches
from meanmap.bp.kernel_field import FittedKernelField, KernelField
from meanmap.bp.kernel_graph import KernelGraph
from meanmap.bp.kernel_grid import FittedKernelGrid, KernelGrid, Restored
from meanmap.bp.messages import Given
from meanmap.bp.mixture_field import FittedMixtureField, MixtureField
from meanmap.bp.mixtures import Gibbs, Multiscale
from meanmap.bp.observations import CentredLikelihood, LearnedLikelihood, Likelihood, NoiseLikelihood, UserLikelihood
from meanmap.bp.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.particle_field import FittedParticleField, ParticleField
from meanmap.bp.particles import Adaptive, Metropolis
from meanmap.bp.propagate import Engine, Propagation
from meanmap.bp.stream import Stream
from meanmap.bp.updates import Constant, Full, Linear

__all__ = [
    "Adaptive",
    "Approximation",
    "Beliefs",
    "CentredLikelihood",
    "Constant",
    "Density",
    "DiscreteGraph",
    "DiscretizedField",
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "Factored",
    "Field",
    "FittedDiscretizedField",
    "FittedField",
    "FittedKernelField",
    "FittedKernelGraph",
    "FittedKernelGrid",
    "FittedMixtureField",
    "FittedParticleField",
    "Full",
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
    "Stream",
    "UserLikelihood",
    "neighbour_pairs",
    "patches",
]
