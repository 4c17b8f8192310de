"""Components of variance that the data tell badly, beside exact posteriors on a grid."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, problem

FORMULA = "y ~ x + (1 | g) + (0 + x | g)"


def one_row_each(seed):
    """Two hundred groups of one row, which differ in intercepts and slopes."""
    rng = np.random.default_rng(seed)
    x, of_group, of_slope, noise = rng.normal(size=(4, 200))
    return {"y": 1 + 0.5 * x + 0.5 * (of_group + of_slope * x + noise), "x": x, "g": np.arange(200)}


def exact(x, y, size=40):
    """Ends of 95% of sd(x | g), and its standard deviation; coefficients are integrated by algebra."""
    z, width, unit = (x - x.mean()) / x.std(), np.sqrt((x**2).mean()), y.std()
    y = (y - y.mean()) / unit
    sds = (np.arange(size) + 0.5) * 1.6 / size
    prior = -2 * np.log1p((sds / 2.5) ** 2 / 3)
    heights = prior[:, None, None] + prior[:, None] + np.tile(prior, (size, size, 1))
    moments = np.stack([np.ones(len(z)), z, z**2, y, y * z, y**2], axis=1)
    for k, of_slope in enumerate(sds):
        variances = (sds[:, None] ** 2 + sds**2)[:, :, None] + (of_slope * x / width) ** 2
        a, b, c, d, e, f = np.moveaxis((1 / variances) @ moments, 2, 0)
        a, c = a + 2.5**-2, c + 2.5**-2
        determinant = a * c - b**2
        square = (c * d**2 - 2 * b * d * e + a * e**2) / determinant
        heights[:, :, k] += (square - f - np.log(variances).sum(2) - np.log(determinant)) / 2
    shares = np.exp(heights - heights.max()).sum((0, 1))
    shares /= shares.sum()
    sd = np.sqrt(shares @ (sds - shares @ sds) ** 2)
    return np.interp([0.025, 0.975], np.cumsum(shares), sds + 0.8 / size) * unit / width, sd * unit / width


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_slopes_of_groups_with_one_row_each(seed):
    """Ends were off by .2 to .4 standard deviations below and by .8 to 1.3 above, "converged"."""
    data = one_row_each(seed)
    found = fit(FORMULA, data)
    ends, sd = exact(data["x"], data["y"])
    np.testing.assert_allclose(found.to_frame().loc["sd(x | g)", ["low", "high"]], ends, atol=0.25 * sd)
    assert found.report.status == "converged"
    drawn = found.draws(20_000, rng=0)["sd(x | g)"]
    np.testing.assert_allclose(drawn.quantile([0.025, 0.975]), ends, atol=0.25 * sd)


def test_a_lattice_that_ends_too_early_says_so(monkeypatch):
    monkeypatch.setattr(problem, "_NODES", (40, 40))
    report = fit(FORMULA, one_row_each(11)).report
    assert report.status == "converged, but standard deviations may be wrong"
    assert any("tails are cut off, and their intervals may be too narrow" in note for note in report.notes)
