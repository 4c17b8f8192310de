"""A kernel with nothing to choose."""

import dask.dataframe as dd
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import pdist
from scipy.spatial.transform import Rotation as ScipyRotation

import meanmap as mm
from meanmap.core import ColumnError, EmptyError, KindError, NonFiniteError, ShapeError
from meanmap.kernels import RBF, Delta, Hamming, OnColumns, Product, Rotation
from meanmap.learning import default_kernel, kernel_for, median_heuristic

RNG = np.random.default_rng(0)
TABLE = {
    "height": RNG.normal(size=50),
    "weight": RNG.gamma(2.0, size=50),
    "city": [f"c{i % 3}" for i in range(50)],
    "colour": [f"k{i % 2}" for i in range(50)],
}


@pytest.mark.oldest
def test_mixed_table():
    kernel = default_kernel(TABLE)
    real, labels = kernel.members
    assert isinstance(kernel, Product)
    assert real.names == ("height", "weight")
    assert labels.names == ("city", "colour")
    medians = [np.median(pdist(np.asarray(TABLE[name])[:, None])) for name in ("height", "weight")]
    np.testing.assert_allclose(real.kernel.lengthscale, np.sqrt(2) * np.array(medians))
    gram = kernel(TABLE)
    assert np.linalg.eigvalsh(gram)[0] > 0  # characteristic on these points: none is lost
    np.testing.assert_allclose(gram.diagonal(), 1)


@pytest.mark.oldest
@pytest.mark.parametrize("scale", [1e-3, 7.0, -40.0])
def test_rescaling_a_column_changes_nothing(scale):
    changed = {**TABLE, "weight": scale * TABLE["weight"] + 5}
    np.testing.assert_allclose(default_kernel(changed)(changed), default_kernel(TABLE)(TABLE), atol=1e-9)


def test_order_of_rows_and_columns_changes_nothing():
    frame = pd.DataFrame(TABLE)
    turned = frame.iloc[::-1][["city", "weight", "colour", "height"]]
    np.testing.assert_allclose(default_kernel(turned)(frame), default_kernel(frame)(frame), atol=1e-12)


@pytest.mark.parametrize("dim", [1, 4, 64])
def test_two_typical_rows_are_one_to_one_and_a_half_lengthscales_apart(dim):
    x = RNG.normal(size=(80, dim)) * RNG.gamma(1.0, size=dim)
    off = default_kernel(x)(x)[np.triu_indices(80, 1)]
    assert 0.9 < np.sqrt(-2 * np.log(np.median(off))) < 1.6


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_every_kind_of_table(make):
    np.testing.assert_allclose(default_kernel(make(TABLE))(make(TABLE)), default_kernel(TABLE)(TABLE))


def test_only_numbers_or_only_labels():
    assert isinstance(default_kernel({"a": [1.0, 2.0, 4.0]}), OnColumns)
    assert isinstance(default_kernel({"a": ["u", "v"]}).kernel, Hamming)
    assert default_kernel([1.0, 2.0, 4.0]).names == ("x0",)
    x = jnp.asarray(RNG.normal(size=(10, 2)))
    assert default_kernel(x)(x).dtype == jnp.float32


def test_constant_columns_are_kept_at_one():
    table = {**TABLE, "constant": np.full(50, 3.0)}
    np.testing.assert_allclose(default_kernel(table)(table), default_kernel(TABLE)(TABLE))
    assert default_kernel(table).members[0].kernel.lengthscale[-1] == 1
    labelled = {"constant": np.full(50, 3.0), "city": TABLE["city"]}
    np.testing.assert_allclose(default_kernel(labelled)(labelled), Hamming(1.0)(TABLE["city"]))


def test_columns_that_vary_in_a_few_rows_only():
    """The subsample for the median may miss them: the distances between their distinct values stand in."""
    x = np.zeros((20_000, 2))
    x[:, 0] = RNG.normal(size=20_000)
    x[:3, 1] = 4.0
    for seed in range(4):
        scales = default_kernel(x, rng=seed).kernel.lengthscale
        np.testing.assert_allclose(scales, np.sqrt(2) * np.array([0.954, 4.0]), rtol=0.05)


def test_large_tables_need_no_seed():
    x = RNG.normal(size=(5000, 2))
    first, second = (default_kernel(rows).kernel.lengthscale for rows in (x, x[::-1]))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            {"a": [1.0, 1.0], "b": ["u", "u"]},
            ColumnError,
            "every column of the table is constant: there is nothing to compare",
        ),
        (np.ones((3, 2)), ColumnError, "every column of the table is constant"),
        ({"a": [1.0]}, EmptyError, "table has 1 point; expected at least 2"),
        ({"a": []}, EmptyError, "table is empty"),
        ({"a": [1.0, None]}, NonFiniteError, r"table\['a'\] has 1 missing"),
        (np.zeros((2, 2, 2)), ShapeError, "expected a table"),
    ],
)
def test_what_cannot_be_used_is_explained(table, error, message):
    with pytest.raises(error, match=message):
        default_kernel(table)


def test_kernel_for_data_of_any_kind():
    x = RNG.normal(size=(20, 2))
    assert kernel_for(x).lengthscale == pytest.approx(median_heuristic(x))
    assert isinstance(kernel_for({"a": [1.0, 2.0], "b": [0.0, 5.0]}), RBF)
    assert isinstance(kernel_for(TABLE), Product)
    assert isinstance(kernel_for(["u", "v"]), Delta)
    assert isinstance(kernel_for(pd.Series(["u", "v"])), Delta)
    assert isinstance(kernel_for(ScipyRotation.random(4, random_state=0)), Rotation)
    with pytest.raises(ShapeError, match="ragged"):
        kernel_for([[1.0], [1.0, 2.0]])


def test_public_names():
    assert mm.default_kernel is default_kernel


def test_what_is_learned_from_the_same_data_is_the_same():
    """Medians of more than 2000 rows are those of a subsample, which no call without `rng` may draw anew."""
    x, y = np.random.default_rng(0).normal(size=(2, 2500))
    assert kernel_for(x).lengthscale == kernel_for(x).lengthscale
    assert mm.embed(x).kernel.lengthscale == mm.embed(x).kernel.lengthscale
    both = [mm.KernelField([(0, 1)], update=mm.bp.Constant(rank=5)).fit((x, y)) for _ in range(2)]
    np.testing.assert_array_equal(*(field.learned.operators.matrices for field in both))


def test_categories_and_truth_values_are_labels_whatever_they_look_like():
    for column in (pd.Series([1, 2, 1], dtype="category"), [True, False, True], pd.array([True, False, True])):
        assert isinstance(kernel_for(column), Delta)
    assert isinstance(kernel_for(np.eye(3, dtype=bool)), RBF)
    with pytest.raises(KindError, match=r"x holds categories, such as 1; .*astype\(float\)"):
        RBF(1.0)(pd.Series([1, 2, 1], dtype="category"))


def test_collections_are_measured_on_rows_that_are_always_the_same(tmp_path, monkeypatch):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"a": rng.normal(size=3000), "b": rng.choice(["u", "v"], 3000)})
    frame.to_parquet(tmp_path / "x.parquet")
    sources = dd.from_pandas(frame, npartitions=4), tmp_path / "x.parquet"
    assert [default_kernel(source) for source in sources] == [default_kernel(frame)] * 2  # small ones are read whole
    monkeypatch.setattr("meanmap.learning.default.MEASURED", 1000)
    first, second, again = default_kernel(sources[0]), default_kernel(sources[1]), default_kernel(sources[0], rng=1)
    assert first == second != again
    lengthscales = [k.members[0].kernel.lengthscale for k in (first, default_kernel(frame))]
    np.testing.assert_allclose(*lengthscales, rtol=0.15)
