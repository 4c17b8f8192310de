"""Particles as messages: where they are put, what is sent from them, how they are moved."""

from meanmap.bp.sampled.particles.cloud import Cloud
from meanmap.bp.sampled.particles.functions import MessageFunctions
from meanmap.bp.sampled.particles.model import NodeFactors
from meanmap.bp.sampled.particles.proposals import Adaptive, Metropolis, Proposal

__all__ = ["Adaptive", "Cloud", "MessageFunctions", "Metropolis", "NodeFactors", "Proposal"]
