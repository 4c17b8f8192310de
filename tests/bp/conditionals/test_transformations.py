"""Columns by their logarithms, roots and log odds: which are, what is drawn of them, and that they stay in range."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.bp.conditionals.columns import limits
from meanmap.bp.conditionals.transformations import Transformation


@pytest.mark.parametrize("kind", ["plain", "log", "root", "log odds"])
def test_transformations_go_back_and_have_their_slopes(kind):
    values = np.linspace(0.05, 0.95, 10)
    found = Transformation.of(kind, values)
    np.testing.assert_allclose(found.back(found(values)), values)
    slopes = (found(values + 1e-6) - found(values - 1e-6)) / 2e-6
    np.testing.assert_allclose(found.log_slopes(values), np.log(slopes), atol=1e-5)
    np.testing.assert_allclose([found(values).mean(), found(values).std()], [0, 1], atol=1e-12)
    beyond = found(np.array([-5.0, 5.0]))
    assert np.isfinite(beyond).all()


def test_logarithms_have_a_shift_where_there_are_zeros():
    values = np.array([0.0, 2.0, 4.0])
    found = Transformation.of("log", values)
    assert found.shift == 1
    np.testing.assert_allclose(found.back(found(values)), values, atol=1e-12)
    assert not Transformation.possible("log", np.array([-1.0, 1.0]))
    assert not Transformation.possible("log odds", np.array([0.0, 0.5]))


def test_columns_keep_their_sign_and_shares_stay_shares():
    assert limits(np.array([-2.0, 3.0]), "number") == (-np.inf, np.inf)
    assert limits(np.array([-2.0, -1.0]), "number") == (-np.inf, 0)
    assert limits(np.array([1.0, 5.0]), "time") == (-np.inf, np.inf)


def skew(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z, noise, other = rng.normal(size=(3, n))
    share = 1 / (1 + np.exp(-2 * z - 0.5 * other))
    return pd.DataFrame({"z": z, "size": np.exp(z + 0.5 * noise), "share": share, "sum": 10 + z + noise + other})


def test_transformations_are_taken_where_rows_are_more_probable_so():
    model = mm.bp.DependencyNetwork().fit(skew(300, 0))
    kinds = {list(model.table.columns)[j]: each.kind for j, each in model.scale.transformed.items()}
    assert kinds["size"] == "log"
    assert kinds["share"] == "log odds"
    assert set(kinds) == {"size", "share"}


def test_a_sum_of_positive_columns_stays_a_sum():
    a, b = np.random.default_rng(0).exponential(size=(2, 300))
    assert not mm.bp.DependencyNetwork().fit({"a": a, "b": b, "sum": a + b}).scale.transformed


def test_draws_and_fills_stay_within_what_a_column_can_be():
    """Positive numbers stay positive, negative ones negative, shares within 0 and 1, in draws and in point fills."""
    table = skew(300, 1).assign(low=lambda t: -t["sum"], far=lambda t: 1 + 0.1 * t["z"].clip(-9))
    rng = np.random.default_rng(2)
    gaps = table.mask((rng.random(table.shape) < 0.25) & (table.columns != "z"))
    model = mm.bp.DependencyNetwork().fit(gaps)
    for whole in [model.impute(gaps), *model.impute(gaps, draws=4, rng=0)]:
        assert (whole[["size", "sum"]] > 0).all(axis=None)
        assert (whole["low"] < 0).all()
        assert whole["share"].between(0, 1, inclusive="neither").all()


@pytest.mark.parametrize("name", ["size", "count"])
def test_means_of_skew_columns_hold_where_gaps_depend_on_another(name):
    """Of four tables the mean of what is drawn over that of what was hidden."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(500 + seed)
        z = rng.normal(size=300)
        values = np.exp(z + 0.5 * rng.normal(size=300)) if name == "size" else rng.poisson(np.exp(0.5 + 0.6 * z))
        hidden = rng.random(300) < 1 / (1 + np.exp(-1.5 * z))
        gaps = pd.DataFrame({"z": z, name: np.where(hidden, np.nan, values)})
        drawn = mm.bp.DependencyNetwork().fit(gaps).impute(gaps, draws=4, rng=seed)
        ratios.append(np.mean([each[name][hidden].mean() for each in drawn]) / values[hidden].mean())
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
