"""Conditional-embedding dynamics: the next state regressed on the state before and the observation together.

Song, Huang, Smola & Fukumizu (2009). The belief is μ_t = Σᵢ βᵢ φ(sᵢ₊₁) over the training states. The operator of the
next state given the state before and the new observation is taken with the kernel k(s, s') + l(o, o') of the pair,
which is linear in both embeddings and so takes the embedding of the belief for the state before:

    β' = (K + L + λ m I)⁻¹ (K̃ β + l(o)),

with K and L the Gram matrices of states before and of observations, K̃ᵢⱼ = k(sᵢ, sⱼ₊₁) and l(o)ᵢ = l(oᵢ₊₁, o).
"""

from typing import Any

import numpy as np
import scipy.linalg

from meanmap.core.types import Data

__all__ = ["EmbeddingDynamics"]


class EmbeddingDynamics:
    """Learned from states and observations in order.

    Parameters
    ----------
    states, observations : samples of m + 1 points
    state_kernel, observation_kernel : Kernel
    ridge : float
        λ.
    """

    def __init__(self, states: Any, observations: Any, state_kernel: Any, observation_kernel: Any, ridge: float):
        self.kernel, self.seen = observation_kernel, observations[1:]
        self.following = states[1:]
        m = len(self.following)
        gram = np.asarray(state_kernel(states[:-1])) + np.asarray(observation_kernel(self.seen))
        inverse = scipy.linalg.inv(gram + m * ridge * np.eye(m))
        self.carry = inverse @ np.asarray(state_kernel(states[:-1], self.following))
        self.hear = inverse

    def filter(self, observations: Data) -> np.ndarray:
        """Weights (n, m) on the training states `following` after each of n observations.

        The first belief, before any observation, is the mean embedding of the training states.
        """
        heard = np.asarray(self.kernel(self.seen, observations)).T @ self.hear.T
        weights = np.full(len(self.following), 1 / len(self.following))
        found = []
        for information in heard:
            weights = self.carry @ weights + information
            found.append(weights)
        return np.array(found)
