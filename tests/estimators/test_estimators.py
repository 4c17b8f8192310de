"""Estimators do what the library does, inside scikit-learn's pipelines and searches, and pass its checks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import meanmap as mm
from meanmap.core import KindError, NonFiniteError
from meanmap.estimators import (
    BagRegressor,
    ConditionalDensity,
    ConditionalMeanRegressor,
    DependencyNetworkImputer,
    FourierFeatures,
    KernelGraphClassifier,
    KernelGraphImputer,
    KernelGraphRegressor,
    LearnedFeatures,
    LowRankFeatures,
    TwoStageFeatures,
)


class Dataset(dict):
    """Columns by name, as xarray's."""

    __module__ = "xarray.core.dataset"

    def to_dataframe(self):
        """As a frame."""


class Values:
    """A variable of xarray."""

    def __init__(self, values):
        self.values = values


EVERY = [
    FourierFeatures(random_state=0),
    LowRankFeatures(),
    ConditionalMeanRegressor(),
    ConditionalDensity(),
    BagRegressor(),
    LearnedFeatures(random_state=0),
    TwoStageFeatures(n_inner=20, n_components=20, random_state=0),
]


# Missing values are their trade.
GAPS = [
    DependencyNetworkImputer([ExtraTreesRegressor(5, min_samples_leaf=5, random_state=0)]),
    KernelGraphImputer(),
    KernelGraphRegressor(),
    KernelGraphClassifier(),
]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [*EVERY, *GAPS], ids=lambda each: type(each).__name__)
def test_the_checks_of_scikit_learn(estimator):
    """Every check passes; only the one of the array API is skipped, by scikit-learn, unless that is switched on."""
    found = check_estimator(estimator, on_skip=None)
    assert len(found) > 40
    assert {each["check_name"] for each in found if each["status"] != "passed"} <= {"check_array_api_input"}


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(120, 1))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=120)


def test_features_are_those_of_the_library(pairs):
    x = pairs[0]
    kernel = mm.kernels.RBF(0.5)
    low = LowRankFeatures(kernel, tolerance=1e-8).fit(x)
    assert np.allclose(low.transform(x) @ low.transform(x).T, kernel(x), atol=1e-5)
    drawn = FourierFeatures(kernel, 4000, random_state=0).fit_transform(x)
    assert np.abs(drawn @ drawn.T - kernel(x)).max() < 0.15
    assert clone(FourierFeatures(kernel, 7, random_state=1)).fit(x).transform(x).shape == (120, 7)
    assert FourierFeatures().fit(x).kernel_.lengthscale == mm.median_heuristic(x)


def test_in_a_search_over_kernels_with_data_frames_out(pairs):
    pandas = pytest.importorskip("pandas")
    x, y = pairs
    frame = pandas.DataFrame(x, columns=["age"])
    features = LowRankFeatures().set_output(transform="pandas")
    assert features.fit_transform(frame).columns[0] == "lowrankfeatures0"
    kernels = [mm.kernels.RBF(0.5), mm.kernels.RBF(50.0)]
    search = GridSearchCV(make_pipeline(LowRankFeatures(), Ridge(1e-2)), {"lowrankfeatures__kernel": kernels}, cv=3)
    assert search.fit(frame, y).best_params_["lowrankfeatures__kernel"] is kernels[0]
    assert search.best_score_ > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_in_and_out(kind, pairs):
    """Every transformer, rows in order and columns by name."""
    frames = pytest.importorskip(kind)
    x = np.column_stack([pairs[0], pairs[0] ** 2])[:40]
    frame = frames.DataFrame({"age": x[:, 0], "dose": x[:, 1]})
    for estimator in (FourierFeatures(random_state=0), LowRankFeatures(), LearnedFeatures(random_state=0), EVERY[-1]):
        plain = clone(estimator).fit_transform(x)
        found = clone(estimator).set_output(transform=kind).fit_transform(frame)
        assert isinstance(found, frames.DataFrame)
        assert next(iter(found.columns)) == f"{type(estimator).__name__.lower()}0"
        assert np.allclose(found.to_numpy(), plain, atol=1e-9)
    model = ConditionalMeanRegressor().fit(frame, pairs[1][:40])
    assert np.array_equal(model.predict(frame), ConditionalMeanRegressor().fit(x, pairs[1][:40]).predict(x))
    assert list(model.feature_names_in_) == ["age", "dose"]


@pytest.mark.slow
def test_learned_features_are_those_of_the_learned_kernel(pairs):
    x = pairs[0]
    found = LearnedFeatures(tolerance=1e-8, random_state=0).fit(x)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    assert found.kernel_.lengthscale == mm.learn_kernel(x, rng=int(seed)).kernel.lengthscale
    assert np.allclose(found.transform(x) @ found.transform(x).T, found.kernel_(x), atol=1e-5)


@pytest.mark.slow
def test_two_stage_features_are_those_of_the_kernel_on_bags():
    rng = np.random.default_rng(0)
    bags = [rng.normal(0.0, scale, size=(rng.integers(20, 40), 2)) for scale in rng.uniform(0.5, 2.0, size=30)]
    found = TwoStageFeatures(n_inner=1000, n_components=2000, random_state=0).fit(bags)
    phi = found.transform(bags)
    assert np.abs(phi @ phi.T - found.kernel_(mm.kernels.Bags(bags))).mean() < 0.03
    assert clone(found).fit(bags).transform(bags).tolist() == phi.tolist()
    with pytest.raises(ValueError, match="bags of 1 columns; the model was fitted to 2"):
        found.transform([np.zeros(5)])
    assert TwoStageFeatures(n_components=3).fit_transform(bags).shape == (30, 3)
    with pytest.raises(ValueError, match="d_out is 0"):
        TwoStageFeatures(n_components=0).fit(bags)


def test_regression_reads_the_belief_of_the_operator(pairs):
    x, y = pairs
    model, op = ConditionalMeanRegressor().fit(x, y), mm.condition(x, y)
    belief = op(x[:4])
    mean, std = model.predict(x[:4], return_std=True)
    assert np.array_equal(mean, belief.mean())
    assert np.array_equal(std, belief.sd())
    assert np.array_equal(model.predict_quantile(x[:4], [0.1, 0.9]), belief.quantile([0.1, 0.9]))
    assert np.array_equal(model.predict_density(x[:4], [0.0, 1.0]), belief.density([0.0, 1.0]))
    assert model.sample(x[:4], 5, random_state=0).shape == (4, 5)
    assert model.score(x, y) > 0.9


def test_densities_are_scored_by_held_out_pairs(pairs):
    x, y = pairs
    model = ConditionalDensity().fit(x[:100], y[:100])
    grid = np.linspace(-4, 4, 2001)
    at = np.repeat(x[:1], len(grid), axis=0)
    assert np.trapezoid(np.exp(model.log_density(at, grid)), grid) == pytest.approx(1.0, abs=0.01)
    assert model.score(x[100:], y[100:]) > model.score(x[100:], y[100:][::-1]) + 0.5
    assert -np.inf < model.score(x[100:], y[100:] + 1000.0) < model.score(x[100:], y[100:] + 5.0) < -3


@pytest.mark.parametrize("form", [list, lambda bags: [bag.tolist() for bag in bags]], ids=["arrays", "lists"])
def test_equal_bags_are_bags_of_any_size(form):
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.5, 2.0, size=30)
    model = BagRegressor().fit(form([rng.normal(0.0, scale, size=40) for scale in scales]), scales)
    others = [rng.normal(0.0, scale, size=60) for scale in scales]
    predicted = model.predict(form(others))
    assert np.abs(predicted - scales).mean() < 0.3
    assert model.predict(form(others[:1])) == pytest.approx(predicted[:1])
    features = TwoStageFeatures(n_inner=20, n_components=10, random_state=0).fit(form(others))
    assert features.transform(form([bag[:25] for bag in others[:1]])).shape == (1, 10)


def test_a_constant_target_is_called_y():
    x = np.random.default_rng(0).normal(size=(30, 1))
    for learn in (ConditionalDensity().fit, ConditionalMeanRegressor().fit, mm.condition):
        with pytest.raises(ValueError, match="all points of y are equal"):
            learn(x, np.ones(30))


def test_bags_of_any_size():
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.5, 2.0, size=50)
    bags = [rng.normal(0.0, scale, size=(rng.integers(30, 60), 1)) for scale in scales]
    model = BagRegressor().fit(bags[:40], scales[:40])
    assert np.abs(model.predict(bags[40:]) - scales[40:]).mean() < 0.25
    shuffled = [rng.permutation(bag) for bag in bags[40:]]
    assert np.allclose(model.predict(shuffled), model.predict(bags[40:]))
    with pytest.raises(ValueError, match="bags of 2 columns; the model was fitted to 1"):
        model.predict([np.zeros((5, 2))])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BagRegressor().fit(bags[:3], scales[:4])


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_bad_input(estimator, pairs):
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(np.full((10, 2), np.nan), np.zeros(10))
    if hasattr(estimator, "tolerance") or hasattr(estimator, "n_components"):
        with pytest.raises(ValueError, match="expected a kernel"):
            clone(estimator).set_params(kernel="best").fit(pairs[0])


@pytest.mark.parametrize("estimator", [mm.estimators.LowRankFeatures(), mm.estimators.ConditionalMeanRegressor()])
def test_integers_too_long_for_a_float(estimator):
    with pytest.raises(NonFiniteError, match="X or y holds an integer that is too large for a float"):
        estimator.fit([[10**400], [1], [2]], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "estimator", [LowRankFeatures(), ConditionalMeanRegressor(), KernelGraphImputer(), BagRegressor()]
)
def test_columns_by_name_without_a_frame_are_refused(estimator):
    """Scikit-learn reads neither, and says so of the float that it looked for."""
    columns, y = {"a": np.arange(9.0), "b": np.ones(9)}, np.arange(9.0)
    with pytest.raises(KindError, match=r"X is a dict; expected an array or a data frame: pass pandas.DataFrame\(X\)."):
        estimator.fit(columns, y)
    with pytest.raises(KindError, match=r"X is a Dataset; expected .*: pass X.to_dataframe\(\)."):
        estimator.fit(Dataset({name: Values(each) for name, each in columns.items()}), y)
