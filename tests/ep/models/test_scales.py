"""Scales of noise: three nodes and a grid give the integral of the evidence, and say so where three will not do."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.models import robust
from meanmap.ep.models.scales import at_three_nodes, on_a_grid


def runs(log_evidence):
    """A fit that returns this log evidence, and a record of where it was asked and what it went on from."""
    asked = []

    def fit(log_scale, near):
        asked.append((log_scale, None if near is None else near.at))
        return SimpleNamespace(log_evidence=log_evidence(log_scale), at=log_scale)

    return fit, asked


def bent(s, cubic=0.0):
    """A peak at .3 with standard deviation .02 of height −7."""
    away = (s - 0.3) / 0.02
    return -7 - away**2 / 2 + cubic * away**3


def integral(cubic):
    s = np.linspace(0.3 - 0.16, 0.3 + 0.16, 20_001)
    height = np.exp(bent(s, cubic) + 7)
    return np.log(height.sum() * (s[1] - s[0])) - 7, (height @ s) / height.sum()


@pytest.mark.parametrize("cubic", [0.0, 0.005])
def test_three_nodes_give_the_integral_of_a_peak_in_six_runs_or_nine(cubic):
    fit, asked = runs(lambda s: bent(s, cubic))
    found = at_three_nodes(fit, 0.35, 0.04)
    weights, total = found.weighed()
    exact, mean = integral(cubic)
    assert len(asked) == (9 if cubic else 6)  # nodes beside the peak are laid anew
    assert total == pytest.approx(exact, abs=2e-4 if cubic else 1e-9)
    assert weights @ found.logs == pytest.approx(mean, abs=0.02 * 1e-3 if cubic else 1e-9)
    variance = weights @ (found.logs - weights @ found.logs) ** 2
    assert variance == pytest.approx(0.02**2, rel=0.01 if cubic else 1e-9)


def test_each_run_goes_on_from_the_nearest():
    fit, asked = runs(bent)
    at_three_nodes(fit, 0.35, 0.04)
    seen = [asked[0][0]]
    for at, near in asked[1:]:
        assert near == min(seen, key=lambda other: abs(other - at))
        seen.append(at)


@pytest.mark.parametrize(
    "log_evidence",
    [
        lambda s: -(((s - 0.3) / 0.02) ** 4),
        lambda s: -40 * abs(s - 0.3),
        lambda s: s,
        lambda s: np.nan,
        lambda s: bent(s + 1),
    ],
)
def test_three_nodes_are_refused_where_the_evidence_is_not_that_of_a_normal_about_there(log_evidence):
    assert at_three_nodes(runs(log_evidence)[0], 0.35, 0.04) is None


def test_a_grid_walks_down_from_the_peak_on_both_sides():
    fit, asked = runs(bent)
    found = on_a_grid(fit, 0.01, -3.0, 2.0, -1.0)
    weights, total = found.weighed()
    exact, mean = integral(0.0)
    assert total == pytest.approx(exact, abs=1e-4)  # what is more than twelve nats below the peak
    assert weights @ found.logs == pytest.approx(mean, abs=1e-9)
    assert len(found.logs) == 19
    assert len(asked) < 45


def test_a_grid_ends_where_it_must():
    found = on_a_grid(runs(lambda s: s)[0], 0.25, -1.0, 1.0, -1.0)
    np.testing.assert_allclose(found.logs, np.arange(-4, 5) * 0.25)
    assert on_a_grid(runs(lambda s: np.nan)[0], 0.25, -1.0, 1.0, 0.0) is None


def test_reweighted_steps_are_below_the_likelihood_and_touch_it():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=5), 3 * rng.normal(size=5)
    value, slope, curvature = robust._slopes(y - z, 0.7, 4.0)
    for step in (1e-6, -0.3, 1.0, 20.0):
        there = robust._slopes(y - z - step, 0.7, 4.0)[0]
        below = value + slope * step - curvature * step**2 / 2
        assert (there >= below - 1e-12).all()
        if step == 1e-6:
            np.testing.assert_allclose((there - value) / step, slope, rtol=1e-5)


@pytest.mark.slow
def test_many_rows_are_read_at_three_scales_as_on_the_grid(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6000, 2))
    y = 10 + X @ [1.0, -2.0] + 0.5 * rng.standard_t(3, size=6000)
    three = ep.models.robust_regression(X, y)
    monkeypatch.setattr(robust, "_MANY", 10**9)
    grid = ep.models.robust_regression(X, y)
    assert len(three.scales) == 3 < len(grid.scales)
    sd = np.sqrt(np.diag(grid.covariance))
    assert (np.abs(three.mean - grid.mean) < 1e-3 * sd).all()
    np.testing.assert_allclose(np.sqrt(np.diag(three.covariance)), sd, rtol=1e-3)
    assert three.log_evidence == pytest.approx(grid.log_evidence, abs=1e-3)
    assert three.scale == pytest.approx(grid.scale, rel=1e-5)
    np.testing.assert_allclose(three.predict_interval(X[:5]), grid.predict_interval(X[:5]), atol=1e-4)
