"""Rows that a test keeps to draw them: spread over all rows, wherever these are."""

import numpy as np
import polars as pl
import pytest

import meanmap as mm

ROWS = 30_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=ROWS)
    return pl.DataFrame({"row": np.arange(ROWS) / ROWS, "size": numbers, "town": rng.choice(["a", "b"], ROWS)})


def asked(a, b, **more):
    return mm.two_sample_test(a, b, n_permutations=99, rng=0, **more)


def test_rows_of_files_and_of_tables_that_are_summed_over_are_the_same(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    beside = frame.with_columns(pl.col("size") + 0.1)
    beside.write_parquet(tmp_path / "b.parquet")
    ours, read = asked(frame, beside).shown, asked(tmp_path / "a.parquet", tmp_path / "b.parquet").shown
    assert ours.sizes == read.sizes == (ROWS, ROWS)
    assert f"2000 of {ROWS} and 2000 of {ROWS} rows, evenly spread" in read.note
    for k, whole in enumerate((frame, beside)):
        one, other = ours.columns(k), read.columns(k)
        assert all(np.array_equal(one[name], other[name]) for name in whole.columns)
        np.testing.assert_allclose(np.diff(one["row"]), 1 / 2000, atol=2 / ROWS)


def test_rows_with_missing_cells_are_left_out_as_in_the_test(frame):
    gaps = frame.with_columns(pl.when(pl.col("row") < 0.5).then(None).otherwise(pl.col("size")).alias("size"))
    kept = asked(frame, gaps, missing="drop").shown.columns(1)
    assert kept["row"].min() >= 0.5
    assert np.isfinite(kept["size"]).all()


def test_a_page_without_a_picture_of_the_data_says_why(frame, tmp_path):
    points = frame["size"].to_numpy()
    pieces = (iter(np.array_split(each[:, None], 30)) for each in (points, points))
    result = asked(*pieces)
    assert result.shown is None
    assert "The data are not drawn" in result.page(tmp_path / "a.html").read_text("utf-8")
