"""Particles as messages: where they are put, what is sent from them, how they are moved."""

from meanmap.bp.particles.cloud import Cloud
from meanmap.bp.particles.functions import MessageFunctions
from meanmap.bp.particles.model import NodeFactors
from meanmap.bp.particles.proposals import Adaptive, Metropolis, Proposal

__all__ = ["Adaptive", "Cloud", "MessageFunctions", "Metropolis", "NodeFactors", "Proposal"]
