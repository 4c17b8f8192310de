"""Weights that scikit-learn routes reach the scores that take them; fits that take none refuse them."""

import numpy as np
import pandas
import polars
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.estimators import (
    BagRegressor,
    ConditionalDensity,
    ConditionalMeanRegressor,
    DependencyNetworkImputer,
    FourierFeatures,
    KernelGraphClassifier,
    KernelGraphImputer,
    KernelGraphRegressor,
    LowRankFeatures,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(90, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=90)
WEIGHTS = np.where(np.arange(90) % 3 == 0, 5.0, 0.1)
FOLDS = KFold(3)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


SCORED = {
    "ConditionalMeanRegressor": (ConditionalMeanRegressor(ridge=0.01), Y, r2_score),
    "ConditionalDensity": (ConditionalDensity(ridge=0.01), Y, None),
    "BagRegressor": (BagRegressor(ridge=0.01), Y, r2_score),
    "KernelGraphRegressor": (KernelGraphRegressor(), Y, r2_score),
    "KernelGraphClassifier": (KernelGraphClassifier(), Y > 0, accuracy_score),
}


@pytest.mark.parametrize("name", SCORED)
def test_weights_are_routed_to_scores(name):
    estimator, y, score = SCORED[name]
    asks = sklearn.clone(estimator).set_score_request(sample_weight=True)
    found = cross_validate(asks, X, y, cv=FOLDS, params={"sample_weight": WEIGHTS})["test_score"]
    expected = []
    for train, test in FOLDS.split(X):
        model = sklearn.clone(estimator).fit(X[train], y[train])
        expected.append(
            np.average(model.log_density(X[test], y[test]), weights=WEIGHTS[test])
            if score is None
            else score(y[test], model.predict(X[test]), sample_weight=WEIGHTS[test])
        )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not np.allclose(found, cross_validate(estimator, X, y, cv=FOLDS)["test_score"])


def test_weights_pass_our_transformers_in_a_searched_pipeline():
    ridge = Ridge(1e-2).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    kernels = [mm.kernels.RBF(0.5), mm.kernels.RBF(50.0)]
    pipeline = make_pipeline(KernelGraphImputer(), LowRankFeatures(max_rank=30), ridge)
    search = GridSearchCV(pipeline, {"lowrankfeatures__kernel": kernels}, cv=FOLDS).fit(X, Y, sample_weight=WEIGHTS)
    assert search.best_params_["lowrankfeatures__kernel"] is kernels[0]
    features = LowRankFeatures(kernels[0], max_rank=30).fit_transform(X)
    by_hand = Ridge(1e-2).fit(features, Y, sample_weight=WEIGHTS).predict(features)
    np.testing.assert_allclose(search.predict(X), by_hand, rtol=1e-9)
    assert not np.allclose(by_hand, Ridge(1e-2).fit(features, Y).predict(features))


def test_fits_that_take_no_weights_refuse_them():
    """What would be left out without a word is an error: no fit of ours weighs rows."""
    with pytest.raises(TypeError, match="sample_weight"):
        make_pipeline(LowRankFeatures(max_rank=5), ConditionalMeanRegressor()).fit(X, Y, sample_weight=WEIGHTS)
    for estimator, *_ in SCORED.values():
        assert not hasattr(estimator, "set_fit_request")


def test_standard_deviations_are_routed_to_predictions():
    regressor = ConditionalMeanRegressor(ridge=0.01).set_predict_request(return_std=True)
    model = make_pipeline(LowRankFeatures(max_rank=5), regressor).fit(X, Y)
    mean, sd = model.predict(X[:4], return_std=True)
    assert mean.shape == sd.shape == (4,)
    assert (sd > 0).all()


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
@pytest.mark.parametrize("imputer", [DependencyNetworkImputer(), KernelGraphImputer()])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_imputers_give_frames_back(imputer, kind):
    gaps = pandas.DataFrame(np.where(RNG.random(X.shape) < 0.2, np.nan, X), columns=["a", "b"])
    gaps.index += 7
    frame = gaps if kind == "pandas" else polars.from_pandas(gaps)
    found = sklearn.clone(imputer).set_output(transform=kind).fit_transform(frame)
    assert type(found) is type(frame)
    assert list(found.columns) == ["a", "b"]
    assert kind == "polars" or found.index.equals(gaps.index)
    np.testing.assert_array_equal(found.to_numpy(), sklearn.clone(imputer).fit_transform(gaps.to_numpy()))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_out_are_refused_for_collections_of_dask(kind):
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, (30, 2))
    features = LowRankFeatures(max_rank=5).set_output(transform=kind).fit(rows)
    with pytest.raises(KindError, match=rf"set_output asks for {kind}, in memory: pass X.compute\(\)"):
        features.transform(rows)
    assert features.transform(X).shape == features.set_output(transform="default").transform(rows).shape
    with sklearn.config_context(transform_output=kind), pytest.raises(KindError, match=r"pass X\.compute"):
        FourierFeatures(random_state=0).fit(rows).transform(rows)


def test_tables_of_other_libraries_are_handed_over_before_rows_are_drawn():
    narwhals, pyarrow = pytest.importorskip("narwhals"), pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    plain = LowRankFeatures(max_rank=5).fit_transform(frame)
    lazy = narwhals.from_native(frame.lazy())
    np.testing.assert_array_equal(LowRankFeatures(max_rank=5).fit(lazy).transform(frame), plain)
    reader = pyarrow.RecordBatchReader.from_batches(frame.to_arrow().schema, frame.to_arrow().to_batches())
    with pytest.raises(KindError, match=r"X is a reader of record batches, .* pass X.read_all\(\)"):
        LowRankFeatures(max_rank=5).fit(reader)
