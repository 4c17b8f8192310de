"""The predictive density of each row's response given all other rows, from cavities, or by leaving it out."""

from dataclasses import replace

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.grouped import Groups, lacking, rule_nodes
from meanmap.ep.linear.integrate import Integrated, Node, integrate
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.problem import Problem
from meanmap.ep.linear.sites import Predictors, Settled

__all__ = ["log_densities"]

# Cavities were off by up to .1 in rows that change the belief about their own predictor by less than this
# (Kullback-Leibler), or the probabilities of nodes by less (χ²): 33 fits of 80 rows in groups of four, of six families.
# At most this many rows with a larger influence are left out in turn, of tables of at most this many rows.
_INFLUENCE, _MOVED, _REFITS, _ROWS = 0.4, 2.0, 30, 20_000
# Nodes where sweeps did not converge may have this probability.
_UNSETTLED = 0.01
# Cavities lack the same terms as the evidence, and their errors share a sign: in 60 rows of labels or counts in 15
# groups the sum was up to .3 too high where the evidence lacked .03. Groups are integrated where it lacks more, or if
# there are too many evaluations of the cheapest rule, as of 3000 rows with slopes, only where the evidence needs it.
_LACKS, _MOST = 1e-3, 5_000_000


def log_densities(model: Integrated, predictor: Predictor, log_evidence: float) -> tuple[np.ndarray, np.ndarray]:
    """log p(y_i | all other rows) of every row, and the rows, in order of influence, where it may be far off.

    A cavity is the belief about η_i without the row's own site. By node it gives p_k(y_i | others); nodes have the
    probabilities that they have without the row, in proportion to those with it over p_k, so that the mean over nodes
    is harmonic. Where a row has more influence than this can follow, the components are integrated again without it:
    its density is the ratio of the evidence with and without.
    """
    nodes = [node for node in model.nodes if node.settled.converged] or list(model.nodes)
    shares = np.array([node.probability for node in nodes])
    shares = shares / shares.sum()
    found = np.stack([_at(model, node) for node in nodes])
    with np.errstate(invalid="ignore"):
        ratios = np.log(shares)[:, None] - found
        total = np.logaddexp.reduce(ratios)
        moved = np.exp(np.logaddexp.reduce(2 * ratios - np.log(shares)[:, None]) - 2 * total) - 1
    influence = moved / _MOVED
    if not model.family.exact:
        each = (_influence(node.settled) for node in nodes)
        influence = np.maximum(
            influence, sum(share * own for share, own in zip(shares, each, strict=True)) / _INFLUENCE
        )
    influence = np.where(np.isfinite(total), influence, np.inf)
    order = np.argsort(-influence, kind="stable")
    rows = order[~(influence[order] < 1)]
    left, off = -total, []
    for at, row in enumerate(rows):
        without = _evidence_without(row, model, predictor) if at < _REFITS and predictor.rows <= _ROWS else None
        if without is None:
            off.append(row)
        else:
            left[row] = log_evidence - without
    return left, np.array(off, int)


def _influence(settled: Settled) -> np.ndarray:
    """The Kullback-Leibler divergence of the belief about each predictor from its cavity; 0 if groups are
    integrated by quadrature, as they are without the row too.
    """
    s = settled.taken(slice(None))
    if settled.shared is not None:
        return np.zeros(len(s.means))
    ratio = 1 - s.weights * s.variances  # of variances
    with np.errstate(invalid="ignore", divide="ignore"):
        away = (s.means - s.variances * s.shifts) / ratio - s.means
        found = (ratio - 1 - np.log(ratio) + away**2 * ratio / s.variances) / 2
    return np.where(ratio > 0, found, np.inf)


def _evidence_without(row: int, model: Integrated, predictor: Predictor) -> float | None:
    """The log evidence without a row; None if it was not found."""
    weights = model.observed.weights.copy()
    weights[row] = 0
    problem = Problem(predictor, model.components, model.family, replace(model.observed, weights=weights))
    try:
        found, log_evidence, _ = integrate(problem, model.nodes[0].phi)
    except ParameterError:
        return None
    return log_evidence if found.unsettled < _UNSETTLED else None


def _at(model: Integrated, node: Node) -> np.ndarray:
    """log p(y_i | all other rows) at a node: by the cavity, plus what integrals over the effects of each group by
    quadrature change, given the effects that groups share.
    """
    settled, parameters = node.settled, model.parameters(node)
    if settled.shared is None and not _leans(model, settled):
        return _by_cavity(settled.taken(slice(None)), settled.gains)
    whole, given = (
        _by_cavity(belief, belief.tilted(model.family, model.observed, parameters).gains)
        for belief in (settled.taken(slice(None)), settled.given_shared())
    )
    exact = Groups(settled, model.family, model.observed, parameters).left_out()
    return whole + np.where(np.isfinite(given), exact - given, 0.0)


def _leans(model: Integrated, settled: Settled) -> bool:
    """Whether integrals over groups are worth their time where the evidence does not need them."""
    if lacking(settled) < _LACKS:
        return False
    return len(model.nodes) * len(settled.means) * rule_nodes(settled.joint.first.width) <= _MOST


def _by_cavity(s: Predictors, gains: np.ndarray) -> np.ndarray:
    """log ∫ p(y_i | η) cavity(η) dη: the gain of the likelihood over the site, and the site's mean under the cavity."""
    precision = 1 / s.variances - s.weights
    with np.errstate(invalid="ignore", divide="ignore"):
        toward = s.means / s.variances - s.shifts
        site = np.log(s.variances * precision) / 2 + s.means**2 / s.variances / 2 - toward**2 / precision / 2
    return np.where(precision > 0, gains + site, -np.inf)
