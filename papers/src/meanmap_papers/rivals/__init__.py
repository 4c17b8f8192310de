"""Competitors: other methods of belief propagation on graphs with cycles, and other regressions of messages.

    from meanmap_papers import rivals

    rivals.GaussianField(graph), rivals.DiscretizedField(graph)    # normal distributions; bins
    rivals.MixtureField(graph), rivals.ParticleField(graph)        # nonparametric and particle belief propagation
    rivals.least_squares_density(x, y)                             # the conditional densities that these two learn
    rivals.Forest(), rivals.Network()                              # for `ep.learned.MessageOperator`

The fields take the same graphs, pairs and evidence as `meanmap.KernelField`.
"""

from meanmap_papers.rivals import mixtures, particles
from meanmap_papers.rivals.conditional_density import least_squares_density
from meanmap_papers.rivals.discretized_field import DiscretizedField, FittedDiscretizedField
from meanmap_papers.rivals.forest import Forest
from meanmap_papers.rivals.gaussian_field import FittedGaussianField, GaussianField
from meanmap_papers.rivals.mixture_field import FittedMixtureField, MixtureField
from meanmap_papers.rivals.mixtures import Gibbs, Multiscale
from meanmap_papers.rivals.network import Network
from meanmap_papers.rivals.particle_field import FittedParticleField, ParticleField
from meanmap_papers.rivals.particles import Adaptive, Metropolis

__all__ = [
    "Adaptive",
    "DiscretizedField",
    "FittedDiscretizedField",
    "FittedGaussianField",
    "FittedMixtureField",
    "FittedParticleField",
    "Forest",
    "GaussianField",
    "Gibbs",
    "Metropolis",
    "MixtureField",
    "Multiscale",
    "Network",
    "ParticleField",
    "least_squares_density",
    "mixtures",
    "particles",
]
