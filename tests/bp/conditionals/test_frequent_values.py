"""Causes with values that many rows share, as doses of those who never take any: effects jump there."""

import numpy as np
import pytest
from scipy.special import expit

import meanmap as mm

ARROWS = [("z", "dose"), ("z", "y"), ("dose", "y")]


def zeros(rng, n):
    """Never-users, more of them where z is small; the effect of any use is .5, and .3 more for a unit of the dose."""
    z = rng.normal(size=n)
    dose = np.where(rng.random(n) < expit(z), rng.gamma(2, 1, n) * np.exp(0.2 * z), 0)
    return {"z": z, "dose": dose, "y": 0.5 * (dose > 0) + 0.3 * dose + z + rng.normal(size=n)}, (0.0, 2.0), 1.1


def two_ends(rng, n):
    """What is below -1 or above 1 is recorded as that, and its effect is larger."""
    z = rng.normal(size=n)
    dose = np.clip(z + 1.2 * rng.normal(size=n), -1, 1)
    jumps = 0.8 * (dose == 1) - 0.8 * (dose == -1)
    return {"z": z, "dose": dose, "y": 0.3 * dose + jumps + z + rng.normal(size=n)}, (-1.0, 0.5), 1.25


def least_squares(rows, ends):
    """With an indicator of each value that a twentieth of the rows have."""
    dose = rows["dose"]
    found, counts = np.unique(dose, return_counts=True)
    often = found[counts > len(dose) / 20]

    def design(dose, z):
        return np.column_stack([np.ones_like(dose), z, dose, *(dose == each for each in often)])

    weights = np.linalg.lstsq(design(dose, rows["z"]), rows["y"])[0]
    return float(np.diff(design(np.array(ends), np.zeros(2)) @ weights)[0])


@pytest.mark.parametrize("law", [zeros, two_ends])
def test_effects_jump_at_shared_values(law):
    """A kernel smoothed the jump, or none was used: -.21 (.05) for zeros, in ten tables."""
    off, beside = [], []
    for seed in range(10):
        rows, ends, truth = law(np.random.default_rng(seed), 500)
        model = mm.bp.BayesianNetwork(ARROWS).fit(rows)
        low, high = (model.do({"dose": end}, ["y"], rng=0)["y"].mean() for end in ends)
        off.append(high - low - truth)
        beside.append(high - low - least_squares(rows, ends))
        row = {"z": 0.0, "dose": ends[1], "y": 1.0}
        below, above = (model.query({"dose": end, "z": 0.0}, ["y"], rng=0)["y"].mean() for end in ends)
        assert abs(1.0 - model.counterfactual(row, {"dose": ends[0]})["y"] - (above - below)) < 0.35
    assert abs(np.mean(off)) < 2.5 * np.std(off) / np.sqrt(10)
    assert np.sqrt(np.mean(np.square(beside))) < 0.1


def test_shares_of_labels_jump_at_shared_values():
    """Of those who take little .525 are ill, and were said to be .41."""
    off = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        dose = np.where(rng.random(500) < 0.5, rng.gamma(2, 1, 500), 0)
        ill = rng.random(500) < np.where(dose > 0, 0.5 + 0.05 * np.minimum(dose, 8), 0.2)
        model = mm.bp.BayesianNetwork([("dose", "y")]).fit({"dose": dose, "y": np.where(ill, "ill", "well")})
        shares = [model.do({"dose": x}, ["y"], rng=0)["y"].probabilities()["ill"] for x in (0.0, 0.5)]
        off.append(np.array(shares) - [0.2, 0.525])
    assert (np.abs(np.mean(off, axis=0)) < 2.5 * np.std(off, axis=0) / np.sqrt(10)).all()


def test_gaps_of_a_cause_are_filled_in_by_what_jumps():
    """What is known of y says who never takes any, as rows of a large table do."""
    rows, _, _ = zeros(np.random.default_rng(5), 1500)
    model = mm.bp.BayesianNetwork(ARROWS).fit(rows)
    many, _, _ = zeros(np.random.default_rng(6), 400_000)
    like = (np.abs(many["z"]) < 0.1) & (np.abs(many["y"] - 2) < 0.1)
    truth = np.mean(many["dose"][like] > 0)
    drawn = model.query({"z": 0.0, "y": 2.0}, ["dose"], rng=0)["dose"].sample(4000, rng=0)
    assert abs(np.mean(drawn > 0) - truth) < 0.06
