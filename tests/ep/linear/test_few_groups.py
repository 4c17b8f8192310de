"""Few groups with little variance between them: the posterior of the components has a long, bent tail."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, integrate


def few_groups(n, groups, sd, rng):
    x, g = rng.normal(size=n), rng.integers(0, groups, n)
    return {"y": 1 + 0.3 * x + sd * rng.normal(size=groups)[g] + rng.normal(size=n), "x": x, "g": g}


def exact(data, components):
    """Mean, standard deviation and ends of 95% of sd(Intercept | g), and the mean of sigma, on a grid; coefficients
    are integrated by algebra under a flat prior.
    """
    y, x, g = data["y"], data["x"], data["g"]
    groups, n = g.max() + 1, len(y)
    plain = np.column_stack([np.ones(n), x])
    columns = np.column_stack([plain, np.eye(groups)[g]])
    residual = np.std(y - columns @ np.linalg.lstsq(columns, y)[0])
    logs, noise = np.linspace(-9, 3, 300) + np.log(residual), np.log(residual) + np.linspace(-7, 7, 57) / np.sqrt(2 * n)
    gram, with_y, square = columns.T @ columns, columns.T @ y, y @ y
    heights = np.empty((len(logs), len(noise)))
    for i, log in enumerate(logs):
        precision = np.diag(np.r_[1e-12, 1e-12, np.full(groups, np.exp(-2 * log))])
        root = np.linalg.cholesky(gram * np.exp(-2 * noise)[:, None, None] + precision)
        solved = np.linalg.solve(root, (with_y * np.exp(-2 * noise)[:, None])[..., None])[..., 0]
        fitted = (solved**2).sum(1) - square * np.exp(-2 * noise)
        half = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
        heights[i] = fitted / 2 - half - groups * log - n * noise
    heights += components.scales[0].log_density(logs)[:, None] + components.parameters[0].log_density(noise)
    shares = np.exp(heights - heights.max())
    shares /= shares.sum()
    sds, of_sd = np.exp(logs), shares.sum(1)
    mean = of_sd @ sds
    ends = np.interp([0.025, 0.975], np.cumsum(of_sd), sds)
    return mean, np.sqrt(of_sd @ (sds - mean) ** 2), *ends, shares.sum(0) @ np.exp(noise)


@pytest.mark.parametrize(
    ("n", "groups", "sd"),
    [
        (15_000, 4, 0.01),
        (4000, 5, 0.0),
        (4000, 5, 0.05),
        (300, 5, 0.0),
        (40_000, 3, 0.5),
        (40_000, 3, 0.05),
        (70_000, 6, 0.08),
    ],
)
def test_intercepts_of_few_groups_beside_quadrature(n, groups, sd):
    """sd(Intercept | g) was 4.2 ± 10⁻⁶⁶ and sigma 1.9 for 1, "converged": far nodes were extrapolated from. With more
    than 20,000 rows the search for the mode stopped where it began, since sigma alone needed small steps.
    """
    for _ in range(2):
        data = few_groups(n, groups, sd, np.random.default_rng(18_200_004))
        found = fit("y ~ x + (1 | g)", data)
        mean, spread, low, high, noise = exact(data, found.model.components)
        of_groups, sigma = (found.to_frame().loc[name] for name in ("sd(Intercept | g)", "sigma"))
        assert of_groups["estimate"] == pytest.approx(mean, abs=0.1 * spread)
        assert of_groups["sd"] == pytest.approx(spread, rel=0.1)
        assert of_groups["low"] == pytest.approx(low, abs=0.1 * spread)
        assert of_groups["high"] == pytest.approx(high, rel=0.1)
        assert sigma["estimate"] == pytest.approx(noise, abs=0.1 * sigma["sd"])
        assert found.report.status == "converged"


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_slopes_of_few_groups_are_not_extrapolated(family, monkeypatch):
    """Without variance between groups sigma was up to 7.6 for 1, and alpha 127 for 2, with intervals of width 0."""
    monkeypatch.setattr(integrate, "_CHEAP", 0)  # interpolation, not weighted draws
    for _ in range(4):
        rng = np.random.default_rng(18_200_005)
        data = few_groups(1000, 5, 0.0, rng)
        if family == "gamma":
            data["y"] = rng.gamma(2, np.exp(0.3 * data["x"]) / 2)
        found = fit("y ~ x + (1 + x | g)", data, family)
        table = found.to_frame()
        last, truth = table.iloc[-1], 1.0 if family == "gaussian" else 2.0
        assert last["estimate"] == pytest.approx(truth, abs=6 * last["sd"])
        assert 0.01 < last["sd"] < 0.2
        assert (table["sd"].iloc[2:] > 0.01).all()
        assert found.model.surface.elsewhere < 0.2


def test_interpolation_that_disagrees_with_its_nodes_is_noted(monkeypatch):
    from meanmap.ep.linear import surface

    monkeypatch.setattr(surface.Surface, "elsewhere", 0.9)
    monkeypatch.setattr(integrate, "_CHEAP", 0)
    report = fit("y ~ x + (1 | g)", few_groups(300, 5, 0.5, np.random.default_rng(0))).report
    assert report.status == "converged, but standard deviations may be wrong"
    assert any("90% of its probability where its " in note for note in report.notes)
