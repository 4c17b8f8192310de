"""Estimators that take rows with missing cells: filled, predicted and classified as the models behind them do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import meanmap as mm
from meanmap.core.errors import ColumnError
from meanmap.estimators import (
    DependencyNetworkImputer,
    KernelGraphClassifier,
    KernelGraphImputer,
    KernelGraphRegressor,
)

IMPUTERS = [
    DependencyNetworkImputer([ExtraTreesRegressor(5, min_samples_leaf=5, random_state=0)]),
    KernelGraphImputer(),
]


@pytest.fixture(scope="module")
def rows():
    """Three columns that are nearly the same, with a fifth of their cells away."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 1)) + 0.1 * rng.normal(size=(150, 3))
    return x, np.where(rng.random(x.shape) < 0.2, np.nan, x)


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
@pytest.mark.parametrize("imputer", IMPUTERS, ids=lambda each: type(each).__name__)
def test_gaps_are_filled_in_pipelines(imputer, rows):
    x, gaps = rows
    filled = clone(imputer).fit_transform(gaps)
    np.testing.assert_array_equal(filled[~np.isnan(gaps)], x[~np.isnan(gaps)])
    assert np.abs(filled - x)[np.isnan(gaps).sum(axis=1) == 1].max() < 0.6
    model = make_pipeline(clone(imputer), Ridge()).fit(gaps, x[:, 0])
    assert model.score(gaps, x[:, 0]) > 0.9


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
def test_columns_that_do_not_vary_are_filled_with_their_value(rows):
    gaps = np.column_stack([rows[1], np.full(150, 3.0)])
    gaps[::7, 3] = np.nan
    filled = KernelGraphImputer().fit(gaps).transform(gaps)
    assert set(filled[:, 3]) == {3.0}
    assert not np.isnan(filled).any()


def test_a_regressor_says_what_the_tree_says(rows):
    x, gaps = rows
    y = x[:, 0] ** 2
    model = KernelGraphRegressor().fit(gaps, y)
    table = {str(j): column for j, column in enumerate(gaps.T)} | {"y": y}
    tree = mm.KernelGraph(mm.chow_liu(table, rng=0)).fit(table)
    said = tree.predict({name: column for name, column in table.items() if name != "y"}, ["y"])["y"]
    np.testing.assert_allclose(model.predict(gaps), said.mean(), rtol=1e-12)
    low, high = model.predict_quantile(gaps, [0.05, 0.95]).T
    assert (low < model.predict(gaps)).mean() > 0.95
    assert np.mean((low <= y) & (y <= high)) > 0.85
    assert model.score(gaps, y) > 0.8


def test_a_classifier_says_what_the_tree_says(rows):
    x, gaps = rows
    y = np.where(np.abs(x[:, 1]) > 0.7, "far", "near")
    model = KernelGraphClassifier().fit(gaps, y)
    shares = model.predict_proba(gaps)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert list(model.classes_) == ["far", "near"]
    np.testing.assert_array_equal(model.predict(gaps), model.classes_[shares.argmax(axis=1)])
    assert model.score(gaps, y) > 0.85
    nothing = model.predict_proba([[np.nan] * 3])
    np.testing.assert_allclose(nothing[0], [np.mean(y == "far"), np.mean(y == "near")], atol=0.1)


def test_targets_and_columns_that_do_not_vary_leave_nothing_to_learn(rows):
    flat = KernelGraphRegressor().fit(rows[1], np.full(150, 2.0))
    assert flat.predict(rows[1][:2]).tolist() == [2.0, 2.0]
    assert flat.predict_quantile(rows[1][:2], [0.1, 0.9]).shape == (2, 2)
    dull = KernelGraphClassifier().fit(np.ones((20, 2)), np.tile(["a", "a", "a", "b"], 5))
    assert dull.predict_proba([[1.0, 1.0]]).tolist() == [[0.75, 0.25]]
    assert dull.predict([[np.nan, 1.0]]).tolist() == ["a"]


def test_labels_beside_gaps_are_the_fault_that_is_named():
    rows = pd.DataFrame({"a": [np.nan, 1.0, 2.0, 3.0, 4.0, 5.0] * 5, "g": list("uv") * 15})
    with pytest.raises(ColumnError, match="not numeric: 'g'"):
        KernelGraphImputer().fit(rows)
    with pytest.raises(ValueError, match="could not convert"):
        KernelGraphImputer().fit(rows.assign(g=["u", None] * 15))
