"""Means of new groups under a log link: with few groups they do not exist."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

pytest.importorskip("formulae")

from meanmap.ep.linear import fit
from meanmap.ep.linear.undetermined import NODES, SHARES, _share_of_largest

NEW = {"x": np.array([0.0, 0.0]), "g": np.array([999, 1])}


def fitted(family, groups, seed):
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(groups), 6)
    x = rng.normal(size=len(g))
    mean = np.exp(0.5 + 0.3 * x + rng.normal(size=groups)[g])
    y = mean * rng.gamma(2.0, 0.5, len(g)) if family == "gamma" else rng.poisson(mean)
    return fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": g}, family=family)


def with_notes(call, *arguments, **named):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return call(*arguments, **named), [str(each.message) for each in said]


def test_the_share_of_the_largest_values_is_that_of_a_lognormal():
    sds = np.array([0.5, 1.0, 2.0, 3.0, 4.0])
    fine, weights = np.linspace(-9, 9, 20_001), np.exp(-(np.linspace(-9, 9, 20_001) ** 2) / 2)
    exact = ndtr(sds - ndtri(1 - 1e-3))
    assert np.allclose(_share_of_largest(1000 + sds[:, None] * fine, weights), exact, atol=2e-3)
    assert np.allclose(_share_of_largest(sds[:, None] * NODES, SHARES), exact, atol=0.05)


@pytest.mark.parametrize(("family", "seed"), [("poisson", 31), ("negativebinomial", 32), ("gamma", 33)])
def test_a_new_group_beside_four_has_an_interval_and_no_mean(family, seed):
    found = fitted(family, 4, seed)
    table, said = with_notes(found.predict, NEW)
    assert np.isnan(table.iloc[0][["estimate", "sd"]]).all()
    assert np.isfinite(table.iloc[1]).all()
    (note,) = said
    assert note.startswith("the mean response of 1 row does not exist")
    assert "priors={'sd(Intercept | g)': scale}" in note
    draws, said = with_notes(found.expected, NEW, 8000, rng=0)
    assert len(said) == 1
    assert "The mean of these draws says nothing" in said[0]
    low, high = np.quantile(draws[:, 0], [0.025, 0.975])
    assert abs(np.log(low / table["low"].iloc[0])) < 0.5
    assert abs(np.log(high / table["high"].iloc[0])) < 0.5
    assert len(with_notes(found.simulate, NEW, 10, rng=0)[1]) == 1
    # Groups that were seen, and those without effects, have means.
    known, said = with_notes(found.predict, {each: values[1:] for each, values in NEW.items()})
    assert not said
    assert np.isclose(known["estimate"].iloc[0], draws[:, 1].mean(), rtol=0.05)
    without, said = with_notes(found.predict, NEW, groups=False)
    assert not said
    assert np.isfinite(without).all(axis=None)


@pytest.mark.parametrize(("family", "seed"), [("poisson", 41), ("negativebinomial", 42), ("gamma", 43)])
def test_a_new_group_beside_twenty_has_the_mean_of_its_draws(family, seed):
    found = fitted(family, 20, seed)
    table, said = with_notes(found.predict, NEW)
    draws, also = with_notes(found.expected, NEW, 8000, rng=0)
    assert not said + also
    assert np.isclose(table["estimate"].iloc[0], draws[:, 0].mean(), rtol=0.12)


def test_no_estimate_lies_beyond_its_interval():
    for seed in range(4):
        table, _ = with_notes(fitted("poisson", 6, seed).predict, NEW)
        assert not (table["estimate"] > table["high"]).any()
