"""The density of a surprising row given all others: as the evidence of all rows over that of the others."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.ep.linear import leave_out

PRIORS = {"x": (0.0, 2.5), "Intercept": (0.0, 2.5), "sd(Intercept | g)": 2.5}
OWN = {"gamma": {"alpha": 10.0}, "negativebinomial": {"alpha": 10.0}, "t": {"sigma": 2.5, "nu": (2.0, 0.1)}}


def table(family, seed, times):
    """Twenty groups of four rows; the largest response is so many times itself."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(20), 4)
    b, x = rng.normal(0, 0.7, 20)[g], rng.normal(size=80)
    mean = np.exp(1 + 0.3 * x + b)
    y = {
        "gamma": lambda: rng.gamma(3, mean / 3),
        "negativebinomial": lambda: rng.negative_binomial(5, 5 / (5 + mean)).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "t": lambda: 1 + x + b + rng.standard_t(4, 80),
        "gaussian": lambda: 1 + x + b + rng.normal(size=80),
    }[family]()
    row = int(np.argmax(y))
    y[row] *= times
    return pd.DataFrame({"y": y, "x": x, "g": g}), row


def fitted(family, frame):
    priors = PRIORS | OWN.get(family, {"sigma": 2.5} if family == "gaussian" else {})
    return mm.fit("y ~ x + (1 | g)", frame, family=family, priors=priors)


@pytest.mark.parametrize("family", ["gamma", "negativebinomial", "poisson", "t", "gaussian"])
def test_a_surprising_row_is_left_out_in_fact(family):
    """Gamma was off by up to -25, t by 2.8, counts by 7: one row had moved the components away from all others."""
    frame, row = table(family, 18_900_004, 5)
    found = fitted(family, frame)
    without = fitted(family, frame.drop(index=row))
    assert found.leave_one_out()[row] == pytest.approx(found.log_evidence - without.log_evidence, abs=0.1)


def test_rows_beyond_the_most_that_are_left_out_are_named(monkeypatch):
    frame, row = table("gamma", 18_900_005, 5)
    found = fitted("gamma", frame)
    monkeypatch.setattr(leave_out, "_REFITS", 0)
    with pytest.warns(UserWarning, match=rf"may be off by more than \.1: {row}\b"):
        found.leave_one_out()


def test_a_node_without_a_cavity_leaves_no_row_without_a_density():
    """A row of twenty groups had -inf, where a node of .0004 of the probability had not converged."""
    frame, _ = table("t", 8, 5)
    assert np.isfinite(fitted("t", frame).leave_one_out()).all()


def test_surprising_labels_in_small_groups_do_not_lean_upwards():
    """Six rows of sixty were up to .09 too high: cavities lacked what quadrature within groups finds."""
    rng = np.random.default_rng([71, 19])
    g = rng.integers(0, 15, 60)
    g[:15] = range(15)
    x = rng.normal(size=60)
    rate = 1 / (1 + np.exp(-0.3 - 0.5 * x - rng.normal(0, 0.8, 15)[g]))
    frame = pd.DataFrame({"y": (rng.random(60) < rate).astype(int), "x": x, "g": g})
    priors = {"x": (0.0, 1.5), "Intercept": (0.0, 2.0), "sd(Intercept | g)": 1.5}
    found = mm.fit("y ~ x + (1 | g)", frame, family="bernoulli", priors=priors)
    densities = found.leave_one_out()
    for row in densities.nsmallest(6).index:
        without = mm.fit("y ~ x + (1 | g)", frame.drop(index=row), family="bernoulli", priors=priors)
        assert densities[row] == pytest.approx(found.log_evidence - without.log_evidence, abs=0.03)
