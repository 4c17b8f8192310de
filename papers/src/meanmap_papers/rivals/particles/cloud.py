"""The particles of all nodes."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.points import bucket
from meanmap_papers.rivals.weighted import normalised

__all__ = ["Cloud"]


@dataclass(frozen=True, eq=False)
class Cloud:
    """N particles at each of n nodes, shared by all messages that a node receives.

    Attributes
    ----------
    points : array (n, N, d)
        The particles.
    log_proposal : array (n, N)
        The logarithm of the density W that they were drawn from, up to a constant for each node.
    log_own : array (n, N)
        log of the likelihood of what was observed there; −∞ for particles that are left out.
    log_target : array (n, N)
        What is known so far of the logarithm of the belief.
    """

    points: np.ndarray
    log_proposal: np.ndarray
    log_own: np.ndarray
    log_target: np.ndarray

    def heaviest(self, skip: float) -> tuple["Cloud", int]:
        """Without particles whose weight is below `skip` of all weights of their node, and how many those are.

        All nodes keep as many as the one that needs most, rounded up to a size for which programs are compiled; what
        is left out among those weighs nothing.
        """
        weights = normalised(self.log_target - self.log_proposal)
        active = weights >= skip
        needed, number = int(active.sum(axis=1).max()), self.points.shape[1]
        log_own = np.where(active, self.log_own, -np.inf)
        kept = min(bucket(needed), number)
        order = np.argsort(-weights, axis=1, kind="stable")[:, :kept]
        if kept == number:
            return Cloud(self.points, self.log_proposal, log_own, self.log_target), int(np.sum(~active))
        take = lambda values: np.take_along_axis(values, order, axis=1)  # noqa: E731
        points = np.take_along_axis(self.points, order[..., None], axis=1)
        return Cloud(points, take(self.log_proposal), take(log_own), take(self.log_target)), int(np.sum(~active))
