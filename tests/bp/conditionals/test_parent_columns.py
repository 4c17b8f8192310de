"""Parents with heavy tails, such as money: functions of them are followed where most rows are."""

import numpy as np
import pytest
from scipy.special import expit

import meanmap as mm
from meanmap.bp.conditionals.parent_columns import HeavyTails, ParentColumns

ARROWS = [("x", "t"), ("x", "y"), ("z", "y"), ("t", "y")]


def logarithmic(rng, n):
    """Money of which the logarithm counts."""
    logs = 1.5 * rng.normal(size=n)
    return np.exp(10 + logs), 0.4 * logs, 1.2 * logs


def two_sided(rng, n):
    """Returns of which large ones count little more than middling ones."""
    x = rng.standard_t(3, size=n)
    curve = np.sign(x) * np.log1p(np.abs(x))
    return x, 0.8 * curve, 1.5 * curve


def straight(rng, n):
    """Money that counts as it is."""
    x = np.exp(1.2 * rng.normal(size=n))
    return x, 0.4 * x, 0.8 * np.log(x)


@pytest.mark.parametrize("law", [logarithmic, two_sided, straight])
def test_effects_are_adjusted_for_parents_with_heavy_tails(law):
    """Beside least squares that know the curve; effects on six tables of the first two were .13 and .09 too large."""
    off = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 20])
        x, of_x, logit = law(rng, 400)
        z, t = rng.normal(size=400), (rng.random(400) < expit(logit)).astype(int)
        y = of_x + 0.3 * z + 0.5 * t + 0.7 * rng.normal(size=400)
        model = mm.bp.BayesianNetwork(ARROWS).fit({"x": x, "z": z, "t": t, "y": y})
        low, high = (model.do({"t": end}, ["y"], rng=0)["y"].mean() for end in (0, 1))
        known = np.column_stack([t, np.ones(400), of_x, z])
        off.append(high - low - np.linalg.lstsq(known, y)[0][0])
    assert abs(np.mean(off)) < 0.03
    assert np.max(np.abs(off)) < 0.1


def test_only_numbers_with_heavy_tails_have_scores():
    """Those whose deviation few rows determine, whatever their unit; not labels, few values or frequent ones."""
    rng = np.random.default_rng(0)
    heavy = np.exp(1.5 * rng.normal(size=500))
    costs = np.where(rng.random(500) < 0.5, 0, heavy)
    others = rng.normal(size=500), rng.gamma(4, size=500), rng.random(500) < 0.02, rng.poisson(0.1, size=500)
    rows = np.column_stack([*others, heavy, costs, np.full(500, 2.0)])
    found = HeavyTails.of(rows)
    assert found.columns.tolist() == [4, 5]
    other_unit = HeavyTails.of(1 - 1e6 * rows)
    assert other_unit.columns.tolist() == [4, 5]
    np.testing.assert_allclose(other_unit(1 - 1e6 * rows), -found(rows), atol=0.05)
    assert abs(np.corrcoef(found(rows)[:, 0], np.log(heavy))[0, 1]) > 0.99
    far = found(np.array([[0.0, 0, 0, 0, 1e9, 0, 2]]))
    assert far[0, 0] == found(rows)[:, 0].max()
    assert ParentColumns.of(rows)(rows).shape[1] == rows.shape[1] + ParentColumns.of(rows).added
