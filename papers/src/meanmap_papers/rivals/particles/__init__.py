"""Particles as messages: initial positions, messages from particles, and moves."""

from meanmap_papers.rivals.particles.cloud import Cloud
from meanmap_papers.rivals.particles.functions import MessageFunctions
from meanmap_papers.rivals.particles.model import NodeFactors
from meanmap_papers.rivals.particles.proposals import Adaptive, Metropolis, Proposal

__all__ = ["Adaptive", "Cloud", "MessageFunctions", "Metropolis", "NodeFactors", "Proposal"]
