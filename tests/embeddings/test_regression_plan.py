"""One operator, wherever the rows lie and whoever adds them up."""

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.embeddings import RegressionPlan
from meanmap.features import Fourier

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 21_000
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(N, 2))
Y = np.sin(X[:, :1]) + 0.1 * RNG.normal(size=(N, 1))
PHI = Fourier.draw(mm.kernels.RBF(1.0), like=2, n_features=40, rng=0)
PSI = Fourier.draw(mm.kernels.RBF(0.5), like=1, n_features=30, rng=1)
from_array: Any = da.from_array  # whose annotation knows text alone
BOTH: dict[str, Any] = {"kernel_x": PHI, "kernel_y": PSI}
FRAME = pandas.DataFrame(np.c_[X, Y], columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def expected():
    return mm.condition(X, Y, **BOTH)


def test_it_is_the_regression_of_all_features(expected):
    """The judge solves the normal equations of features that were not rounded."""
    phi, psi = PHI(X), PSI(Y)
    ((_, ridge),) = expected.chosen
    judge = np.linalg.solve(phi.T @ phi / N + ridge * np.eye(40), phi.T @ psi / N).T
    new = PHI(X[:50]).T
    np.testing.assert_allclose(expected.matrix @ new, judge @ new, atol=1e-8)
    few = mm.condition(X[:500], Y[:500], ridge=1e-4, **BOTH)  # not rounded
    part = RegressionPlan.of(X[:500], Y[:500], PHI, PSI, rng=0)
    found = part.result(part.state(X[:500], Y[:500]), 1e-4)
    np.testing.assert_allclose(found.matrix @ new, few.matrix @ new, atol=1e-8)


def test_coefficients_are_the_same_wherever_the_rows_lie(tmp_path, expected):
    (tmp_path / "parts").mkdir()
    for i, index in enumerate(np.array_split(np.arange(N), 11)):
        polars.from_pandas(FRAME.iloc[index]).write_parquet(tmp_path / "parts" / f"{i:02}.parquet")
    np.save(tmp_path / "x.npy", X)
    lazy = polars.scan_parquet(tmp_path / "parts" / "*.parquet")
    array, table = from_array(np.c_[X, Y], chunks=(5000, 3)), dd.read_parquet(tmp_path / "parts")
    ways = [
        (np.load(tmp_path / "x.npy", mmap_mode="r"), Y),
        (lazy.select("a", "b"), FRAME[["c"]]),
        (array[:, :2], array[:, 2:]),
        (table[["a", "b"]], table[["c"]]),
    ]
    for x, y in ways:
        found = mm.condition(x, y, **BOTH)
        assert found.matrix.tolist() == expected.matrix.tolist()
        assert found.chosen == expected.chosen
    schema = mm.condition(*ways[-1], **BOTH).schema
    assert schema is not None
    assert schema.names == ("a", "b")


def test_parts_in_any_order(tmp_path, expected):
    plan = mm.load(mm.save(RegressionPlan.of(X, Y, PHI, PSI, rng=0), tmp_path / "plan"))
    first, second, third = (plan.state(X[part], Y[part]) for part in (slice(7), slice(7, 9000), slice(9000, None)))
    second = mm.load(mm.save(second, tmp_path / "state"))
    assert plan.result(third.merge(first).merge(second)).matrix.tolist() == expected.matrix.tolist()


def test_what_does_not_fit_is_explained():
    x, y = (from_array(part, chunks=(6000, -1)) for part in (X, Y))
    with pytest.raises(KindError, match="more than 20000 rows, which need features: pass features of both"):
        mm.condition(x, y)
    with pytest.raises(ParameterError, match="missing='drop' is for samples in memory"):
        mm.condition(x, y, missing="drop", **BOTH)
    with pytest.raises(
        ShapeError, match=f"x and y have {len(X)} and {len(X) - 1} rows; expected the same number of each"
    ):
        mm.condition(x, y[1:], **BOTH)
    with pytest.raises(KindError, match="some of x and y are Dask collections"):
        mm.condition(x, Y, **BOTH)
    with pytest.raises(KindError, match="features_y is RBF"):
        RegressionPlan.of(X, Y, PHI, mm.kernels.RBF(1.0))  # pyright: ignore[reportArgumentType]


def test_short_collections_are_read():
    x, y = (from_array(part[:100], chunks=(60, -1)) for part in (X, Y))
    found, memory = (mm.condition(*pair, ridge=0.1)([[0.0, 0.0]]).mean() for pair in ((x, y), (X[:100], Y[:100])))
    np.testing.assert_array_equal(found, memory)
