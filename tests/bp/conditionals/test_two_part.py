"""Costs with many zeros and columns with separate peaks: their components, and what is drawn of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.bp.conditionals.components import ColumnComponents
from meanmap.bp.conditionals.two_part import TwoPart


def costs(n: int, seed: int, peaks: bool = False) -> pd.DataFrame:
    """Half of the costs are zero, the others lognormal, both by x; a column with peaks at -3 and 3."""
    rng = np.random.default_rng(seed)
    x, noise, other = rng.normal(size=(3, n))
    cost = np.where(rng.random(n) < 1 / (1 + np.exp(-x)), np.exp(1 + 0.5 * x + 0.5 * noise), 0.0)
    table = pd.DataFrame({"x": x, "cost": cost})
    return table.assign(peaks=np.where(rng.random(n) < 0.5, -3, 3) + 0.5 * x + 0.5 * other) if peaks else table


def with_gaps(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Nearly half of the cells beside x are missing, likelier where x is large."""
    rng = np.random.default_rng(seed)
    hidden = rng.random((len(table), table.shape[1] - 1)) < 1 / (1 + np.exp(0.5 - table[["x"]].to_numpy()))
    return table.assign(**{name: table[name].mask(hidden[:, k]) for k, name in enumerate(table.columns[1:])})


SMOOTH = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: np.exp(1.2 * rng.normal(size=n)),
    "uniform": lambda rng, n: rng.random(n),
    "far values": lambda rng, n: rng.standard_t(2, size=n),
    "whole numbers": lambda rng, n: rng.integers(0, 60, size=n).astype(float),
    "counts": lambda rng, n: rng.geometric(0.08, size=n).astype(float),
    "rounded": lambda rng, n: np.round(3 * rng.normal(size=n), 1),
}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_columns_with_one_peak_have_one_component(name):
    rng = np.random.default_rng(0)
    assert [len(ColumnComponents.of(SMOOTH[name](rng, n))) for n in (75, 300, 4000) for _ in range(10)] == [1] * 30


def test_values_that_come_back_and_peaks_are_components_in_any_unit():
    values = costs(300, 0, peaks=True)
    assert ColumnComponents.of(values["cost"].to_numpy()).points.tolist() == [0]
    peaks = ColumnComponents.of(values["peaks"].to_numpy())
    assert len(peaks.cuts) == 1
    assert abs(peaks.cuts[0]) < 1.5
    np.testing.assert_allclose(ColumnComponents.of(1e3 * values["peaks"].to_numpy() + 1e5).cuts, 1e3 * peaks.cuts + 1e5)
    censored = ColumnComponents.of(np.minimum(values["peaks"].to_numpy(), 2.5))
    assert censored.points.tolist() == [2.5]
    hits = censored.hits(np.array([2.5, 2.0, -2.0, np.nan]))
    assert hits[:3].sum(axis=1).tolist() == [1, 1, 1]
    assert hits[0, 0] == 1
    assert np.isnan(hits[3]).all()


def test_few_values_have_no_components():
    assert len(ColumnComponents.of(np.repeat([0.0, 1.0, 5.0], [60, 10, 10]))) == 1


def test_nothing_is_drawn_between_zero_and_costs_nor_between_peaks():
    """Of 150 hidden costs .2 were drawn below all that came, and of numbers with two peaks .07 between these."""
    table = costs(300, 1, peaks=True)
    gaps = with_gaps(table, 2)
    model = mm.bp.DependencyNetwork().fit(gaps)
    assert [isinstance(law, TwoPart) for law in model.conditionals] == [False, True, True]
    drawn = pd.concat(model.impute(gaps, draws=6, rng=0))
    least = table["cost"][table["cost"] > 0].min()
    assert np.mean((drawn["cost"] > 0) & (drawn["cost"] < least / 2)) < 0.005
    assert np.mean(np.abs(drawn["peaks"]) < 1) < 0.01
    assert (drawn["cost"] >= 0).all()


def test_nothing_is_drawn_beyond_where_values_are_censored():
    rng = np.random.default_rng(8)
    x = rng.normal(size=200)
    table = pd.DataFrame({"x": x, "sum": np.minimum(50 + 10 * x + 3 * rng.normal(size=200), 58.0)})
    gaps = with_gaps(table, 9)
    drawn = pd.concat(mm.bp.DependencyNetwork().fit(gaps).impute(gaps, draws=4, rng=0))["sum"]
    assert drawn.max() == 58
    assert np.mean(drawn == 58) == pytest.approx(np.mean(table["sum"] == 58), abs=0.1)


def test_beliefs_about_costs_give_zero_its_probability():
    """The probability of zero, and the mean of what is above, within three standard errors given x."""
    model = mm.bp.DependencyNetwork().fit(costs(2000, 3))
    x = np.array([-1.0, 0.0, 1.0])
    belief = model.predict({"x": x}, ["cost"])["cost"]
    shares = 1 / (1 + np.exp(x))
    zero = belief.cdf(np.zeros(3)[:, None])[:, 0]
    np.testing.assert_allclose(zero, shares, atol=3 * np.sqrt(2 / 2000) + 0.01)
    np.testing.assert_allclose(belief.mean() / (1 - zero), np.exp(1.125 + 0.5 * x), rtol=0.12)
    held = model.held_out["cost"]
    assert held["this"] < held["alone"]
    assert np.isfinite(model.score(costs(20, 4))).all()


def test_other_columns_know_whether_a_cost_is_zero():
    rng = np.random.default_rng(5)
    table = costs(600, 6).assign(y=lambda t: 3.0 * (t["cost"] > 0) + 0.3 * rng.normal(size=600))
    means = mm.bp.DependencyNetwork().fit(table).predict({"cost": [0.0, 1.0, 5.0]}, ["y"])["y"].mean()
    np.testing.assert_allclose(means, [0, 3, 3], atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000])
def test_pooled_means_of_costs_are_those_of_all_rows(n):
    """Of 40 tables: the mean within three standard errors and 3%, and intervals of 90% that hold."""
    away, held = [], []
    x = np.random.default_rng(0).normal(size=1_000_000)
    truth = np.mean(np.exp(1.125 + 0.5 * x) / (1 + np.exp(-x)))

    def mean(table):
        return table["cost"].mean(), table["cost"].var() / n

    for seed in range(40):
        table = costs(n, 8_200_000 + seed)
        gaps = with_gaps(table, 8_300_000 + seed)
        found = mm.bp.pooled(mean, mm.bp.DependencyNetwork().fit(gaps).impute(gaps, draws=10, rng=seed))
        low, high = found.interval(0.9)
        away.append(found.estimate - table["cost"].mean())
        held.append(low <= truth <= high)
    assert np.mean(away) == pytest.approx(0, abs=3 * np.std(away) / np.sqrt(40) + 0.03 * truth)
    assert np.sum(held) >= binom.ppf(0.005, 40, 0.9)
