"""Means that rest on few rows, against laws in which their standard errors are known."""

import re

import numpy as np
import pytest
from scipy.stats import norm

import meanmap as mm
from meanmap.bp.conditionals.few_behind import mean_of_few
from meanmap.bp.conditionals.given_parents import GivenParents

ARROWS = [("z", "t"), ("z", "y"), ("t", "y")]


def costs(seed, n, sigma):
    """Seven tenths of the rows cost nothing; the cause multiplies by 1.5 what the others cost."""
    rng = np.random.default_rng(seed)
    z, noise = rng.normal(size=(2, n))
    t = rng.random(n) < 1 / (1 + np.exp(-z))
    y = np.where(rng.random(n) < 0.3, np.exp(2 + 0.5 * z + np.log(1.5) * t + sigma * noise), 0.0)
    return {"z": z, "t": np.where(t, "b", "a"), "y": y}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_standard_error_and_the_half_are_those_of_the_law(sign):
    """Lognormal with σ = 2: half of the mean is that of values from exp(σ²) on, which 2.3% of all are."""
    values = np.exp(2 * norm.ppf((np.arange(200_000) + 0.5) / 200_000))
    (note,) = mean_of_few("y", sign * values, np.full(200_000, 1 / 200_000), 500)
    share, least, error = map(float, re.search(r"largest (\S+)%.*from (\S+) on.* (\d+)%", note).groups())
    assert share == pytest.approx(100 * norm.sf(2), rel=0.05)
    assert least == pytest.approx(sign * np.exp(4), rel=0.05)
    assert error == pytest.approx(100 * values.std() / values.mean() / np.sqrt(500), rel=0.03)
    weights = np.full(200_000, 1 / 200_000)
    assert not mean_of_few("y", sign * values, weights, 500 * 50)
    assert not mean_of_few("y", sign * np.sqrt(values), weights, 500)
    assert not mean_of_few("y", values - 10, weights, 500)
    assert not mean_of_few("y", 0 * values, weights, 500)


def test_answers_say_that_the_mean_of_costs_rests_on_few_rows():
    network = mm.bp.BayesianNetwork(ARROWS)
    for sigma, noted in ((2.0, True), (0.5, False)):
        table = costs(1, 1000, sigma)
        done = network.fit(table).do({"t": "b"}, ["y"], rng=0).report.notes
        found = network.effect(table, "y", of="t", from_="a", to="b", rng=0).notes
        for notes, then in ((done, "effect() gives intervals. Quantiles"), (found, "51 of 60 tables")):
            said = [note for note in notes if "the mean of 'y' rests on few rows" in note]
            assert len(said) == noted
            assert all(then in note for note in said)


def test_draws_take_each_residual_in_turn():
    """So that their mean is that of the rows: of costs with a heavy tail it was 13% off, beside what rows differ."""
    values = np.random.default_rng(0).normal(size=(40, 1))
    law, random = GivenParents.fit(np.zeros((40, 0)), values), np.random.default_rng(1)
    drawn = law.draw(np.zeros((100, 0)), random)[:, 0]
    for part in (drawn[:40], drawn[40:80]):
        np.testing.assert_array_equal(np.sort(part), np.sort(values[:, 0]))
        assert not np.array_equal(part, values[:, 0])
    assert len(set(drawn[80:])) == 20
