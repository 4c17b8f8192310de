"""Estimators on rows that lie in files or with Dask: what is learned is the same, and collections come back."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.estimators import ConditionalMeanRegressor, FourierFeatures, LowRankFeatures, reading

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 400
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2))
Y = np.sin(X[:, 0]) + 0.1 * RANDOM.normal(size=N)
FRAME = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
DASK = dd.from_pandas(FRAME, npartitions=5)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 150)


def test_features_are_the_same_wherever_rows_lie(tmp_path):
    for i in range(4):
        polars.from_pandas(FRAME[["a", "b"]][100 * i : 100 * (i + 1)]).write_parquet(tmp_path / f"{i}.parquet")
    expected = LowRankFeatures(max_rank=20).fit(FRAME[["a", "b"]])
    phi = expected.transform(FRAME[["a", "b"]])
    index = np.sort(np.random.default_rng(0).choice(N, 150, replace=False))
    assert np.isin(expected.features_.pivots, X[index]).all()
    for data in (tmp_path, polars.scan_parquet(tmp_path / "*.parquet"), DASK[["a", "b"]], da.from_array(X, (90, 1)), X):
        assert LowRankFeatures(max_rank=20).fit(data).features_(X).tobytes() == phi.tobytes()
    lazy = expected.transform(DASK[["a", "b"]])
    assert (lazy.npartitions, lazy.shape[1]) == (5, expected.features_.size)
    np.testing.assert_allclose(lazy.compute(), phi, atol=1e-12)
    waves = FourierFeatures(n_components=6, random_state=0).fit(da.from_array(X, 90))
    assert waves.transform(da.from_array(X[:10], 4)).chunks == ((4, 4, 2), (6,))


def test_regressions_are_the_same_wherever_rows_lie():
    expected = ConditionalMeanRegressor(mm.kernels.RBF(1.0), 1e-2).fit(FRAME[["a", "b"]], FRAME["y"])
    found = ConditionalMeanRegressor(mm.kernels.RBF(1.0), 1e-2).fit(DASK[["a", "b"]], DASK["y"])
    mean, std = expected.predict(FRAME[["a", "b"]][:10], return_std=True)
    assert found.predict(FRAME[["a", "b"]][:10]).tobytes() == mean.tobytes()
    rows = dd.from_pandas(FRAME[["a", "b"]][:10], npartitions=2)
    lazy, spread = found.predict(rows, return_std=True)
    assert lazy.npartitions == 2
    np.testing.assert_allclose(lazy.compute(), mean, atol=1e-12)
    np.testing.assert_allclose(spread.compute(), std, atol=1e-12)
    quantiles = found.predict_quantile(X=rows, q=[0.1, 0.9])
    assert quantiles.shape[1] == 2
    np.testing.assert_allclose(
        quantiles.compute(), expected.predict_quantile(FRAME[["a", "b"]][:10], [0.1, 0.9]), atol=1e-12
    )
    both = ConditionalMeanRegressor(mm.kernels.RBF(1.0), 1e-2).fit(X, np.stack([Y, -Y], axis=1))
    assert both.predict(da.from_array(X[:10], 5)).compute().shape == (10, 2)
    with pytest.raises(KindError, match=r"X is a frame of Dask, whose rows are not in memory: pass X.compute\(\)"):
        found.sample(rows)
