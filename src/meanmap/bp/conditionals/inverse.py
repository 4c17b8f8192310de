"""A number given columns that depend on its products and squares: by Bayes' rule, since no simple regression fits."""

import numpy as np
from scipy.special import ndtr

from meanmap.bp.conditionals.joint_normal import JointNormal

__all__ = ["given_response"]


def given_response(law: JointNormal, rows: np.ndarray, j: int, at: np.ndarray) -> np.ndarray | None:
    """Distribution functions (m, G) at thresholds of column j in standardised rows (m, d), proportional to the normal
    density given all other columns but its response times that of the response given the number and all others.

    None if no column depends on a product with this one.
    """
    products = law.products
    if products is None or j not in products.responses:
        return None
    k = products.responses[j]
    without = rows.copy()
    without[:, [j, k]] = np.nan
    middle, deviation = (each[:, j, None] for each in law.given(without))
    prior = np.diff(ndtr((at - middle) / deviation), axis=1)
    # The expectation of the response is a parabola in the number: three values determine it.
    nodes = np.array([products.low[j], (products.low[j] + products.high[j]) / 2, products.high[j]])
    told = [_response(law, without, j, k, node) for node in nodes]
    expected = np.stack([mean for mean, _ in told], axis=1) @ _lagrange(nodes, (at[1:] + at[:-1]) / 2)
    seen = rows[:, k, None]
    away = np.where(np.isnan(seen), 0.0, (seen - expected) / told[0][1][:, None])
    logs = np.log(np.maximum(prior, np.finfo(float).tiny)) - away**2 / 2
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    rising = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    return np.concatenate([np.zeros((len(rows), 1)), rising], axis=1)


def _response(law: JointNormal, rows: np.ndarray, j: int, k: int, value: float) -> tuple[np.ndarray, np.ndarray]:
    """Expectations and deviations (m,) of column k in rows with one value of column j."""
    rows = rows.copy()
    rows[:, j] = value
    means, deviations = law.given(rows)
    return means[:, k], deviations[:, k]


def _lagrange(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Quadratic Lagrange weights of three nodes at other points, (3, g)."""
    parts = []
    for i, node in enumerate(nodes):
        others = np.delete(nodes, i)
        parts.append(np.prod((at - others[:, None]) / (node - others[:, None]), axis=0))
    return np.stack(parts)
