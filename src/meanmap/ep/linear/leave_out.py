"""The predictive density of each row's response given all other rows, from cavities."""

import numpy as np

from meanmap.ep.linear.grouped import Groups
from meanmap.ep.linear.integrate import Integrated, Node
from meanmap.ep.linear.sites import Predictors

__all__ = ["log_densities"]


def log_densities(model: Integrated) -> np.ndarray:
    """log p(y_i | all other rows) of every row.

    A cavity is the belief about η_i without the row's own site. By node it gives p_k(y_i | others); nodes have the
    probabilities that they have without the row, in proportion to those with it over p_k, so that the mean over nodes
    is harmonic.
    """
    found = np.stack([_at(model, node) for node in model.nodes])
    shares = np.log(model.shares)
    return np.logaddexp.reduce(shares) - np.logaddexp.reduce(shares[:, None] - found)


def _at(model: Integrated, node: Node) -> np.ndarray:
    """log p(y_i | all other rows) at a node: by the cavity; where groups are integrated by quadrature, plus what this
    changes given the effects that groups share.
    """
    settled, parameters = node.settled, model.parameters(node)
    if settled.shared is None:
        return _by_cavity(settled.taken(slice(None)), settled.gains)
    whole, given = (
        _by_cavity(belief, belief.tilted(model.family, model.observed, parameters).gains)
        for belief in (settled.taken(slice(None)), settled.given_shared())
    )
    exact = Groups(settled, model.family, model.observed, parameters).left_out()
    return whole + np.where(np.isfinite(given), exact - given, 0.0)


def _by_cavity(s: Predictors, gains: np.ndarray) -> np.ndarray:
    """log ∫ p(y_i | η) cavity(η) dη: the gain of the likelihood over the site, and the site's mean under the cavity."""
    precision = 1 / s.variances - s.weights
    with np.errstate(invalid="ignore", divide="ignore"):
        toward = s.means / s.variances - s.shifts
        site = np.log(s.variances * precision) / 2 + s.means**2 / s.variances / 2 - toward**2 / precision / 2
    return np.where(precision > 0, gains + site, -np.inf)
