"""Counts of very different sizes, of which a first belief is off by many of their standard deviations."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.ep.linear import problem
from meanmap.ep.linear.sites import settle


def table(seed, spread, groups=10, rows=12):
    """Groups whose log rates have this standard deviation."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rows)
    x = rng.normal(size=len(group))
    eta = 0.1 * x + spread * rng.normal(size=groups)[group]
    return pd.DataFrame({"x": x, "g": [f"s{each}" for each in group], "eta": eta}), rng


def by_maximum_likelihood(frame):
    """The slope with an intercept for each group, which the spread of large counts hardly moves, and its error."""
    columns = np.column_stack([frame.x, pd.get_dummies(frame.g).to_numpy(float)])
    eta = np.log(frame.y.to_numpy() + 0.5)
    for _ in range(50):
        rate = np.exp(eta)
        curvature = (columns.T * rate) @ columns
        found = np.linalg.solve(curvature, columns.T @ (rate * eta + frame.y.to_numpy() - rate))
        eta = columns @ found
    return found[0], np.sqrt(np.linalg.inv(curvature)[0, 0])


@pytest.mark.parametrize(("seed", "size", "spread"), [(11, 1e3, 2.5), (12, 1e4, 2.0), (13, 1e6, 2.0), (14, 1e5, 1.5)])
def test_counts_of_very_different_sizes_converge(seed, size, spread):
    """Sweeps stopped far from the mode with false intervals, or the table was refused."""
    frame, rng = table(seed, spread)
    frame["y"] = rng.poisson(size * np.exp(frame.eta))
    found = mm.fit("y ~ x + (1 | g)", frame, family="poisson")
    slope, error = by_maximum_likelihood(frame)
    mean, sd = found.to_frame().loc["x", ["estimate", "sd"]]
    assert found.report.converged
    assert found.report.notes == ()
    assert mean == pytest.approx(slope, abs=0.05 * error)
    assert sd == pytest.approx(error, rel=0.02)


@pytest.mark.parametrize("family", ["negativebinomial", "gamma", "binomial"])
def test_other_families_converge_on_numbers_of_very_different_sizes(family):
    frame, rng = table(15, 2.5)
    mean = 1e6 * np.exp(frame.eta) * rng.gamma(1e4, 1e-4, len(frame))
    response = "y"
    if family == "binomial":
        response, frame["n"] = "p(y, n)", 10**7
        frame["y"] = rng.binomial(frame.n, 1 / (1 + np.exp(-frame.eta)))
    else:
        frame["y"] = rng.poisson(mean) if family == "negativebinomial" else mean
    found = mm.fit(f"{response} ~ x + (1 | g)", frame, family=family)
    mean, sd = found.to_frame().loc["x", ["estimate", "sd"]]
    assert found.report.converged
    assert abs(mean - 0.1) < 5 * sd
    assert sd < 0.01


def test_sweeps_that_stop_early_give_no_advice_and_the_table_says_so_first(monkeypatch):
    rng = np.random.default_rng(16)
    frame = pd.DataFrame({"x": rng.normal(size=100), "g": np.repeat(np.arange(10), 10)})
    frame["y"] = rng.poisson(np.exp(2 + frame.x + rng.normal(size=100)))
    found = mm.fit("y ~ x + (1 | g)", frame, family="poisson")
    assert "scatter" in " ".join(found.report.notes)
    assert str(found).startswith("y ~ x")
    monkeypatch.setattr(problem, "settle", partial(settle, most=1))
    found = mm.fit("y ~ x + (1 | g)", frame, family="poisson")
    assert not found.report.converged
    assert "scatter" not in " ".join(found.report.notes)
    assert str(found).startswith("Intervals do not hold: sweeps did not converge.\n")


@pytest.mark.parametrize("family", ["poisson", "negativebinomial"])
def test_counts_that_are_all_0_are_answered(family):
    """No events in 30 rows of exposure 4: the posterior is that of a grid over the intercept."""
    frame = pd.DataFrame({"y": np.zeros(30), "log_time": np.log(4.0)})
    found = mm.fit("y ~ 1 + offset(log_time)", frame, family=family)
    (note,) = (each for each in found.report.notes if "maximum" in each)
    assert note.startswith("the response is 0 in all rows: the likelihood has no maximum")
    if family == "poisson":
        eta = np.linspace(-25, 5, 6001)
        log = -0.5 * ((eta - np.log(0.5 / 120)) / 2.5) ** 2 - 120 * np.exp(eta)
        share = np.exp(log - log.max())
        share /= share.sum()
        mean = share @ eta
        assert found.to_frame().estimate["Intercept"] == pytest.approx(mean, abs=0.02)
        assert found.to_frame().sd["Intercept"] == pytest.approx(np.sqrt(share @ (eta - mean) ** 2), rel=0.02)
