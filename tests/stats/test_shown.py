"""Rows that a test keeps to draw them: spread over all rows, wherever these are."""

import numpy as np
import polars as pl
import pytest

import meanmap as mm
from meanmap.plots.columns import MOST_VALUES, Tally

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
    assert not read.note
    for k, whole in enumerate((frame, beside)):
        one, other = ours.columns(k), read.columns(k)
        assert all(np.array_equal(one[name], other[name]) for name in whole.columns)
        np.testing.assert_allclose(np.diff(one["row"]), 1 / 2000, atol=2 / ROWS)


def test_rows_with_missing_cells_are_left_out_as_in_the_test(frame):
    gaps = frame.with_columns(pl.when(pl.col("row") < 0.5).then(None).otherwise(pl.col("size")).alias("size"))
    kept = asked(frame, gaps, missing="drop").shown.columns(1)
    assert kept["row"].min() >= 0.5
    assert np.isfinite(kept["size"]).all()


def arms(rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two arms of which the second has more rare events and larger amounts, which evenly spread rows do not show."""
    rng, found = np.random.default_rng(7), []
    for rare in (0.0004, 0.0012):
        spread = np.isin(np.arange(rows), np.linspace(0, rows - 1, 2000).round().astype(int))
        event = np.where(spread, rng.random(rows) < 0.0016 - rare, rng.random(rows) < rare).astype(int)
        amount = np.where(rng.random(rows) < 0.02, np.exp(rng.normal(3, 1.6, rows)), 0.0)
        place = np.where(event == 1, "aq", rng.choice(["de", "us"], rows))
        age = np.where(rng.random(rows) < 0.2, np.nan, rng.normal(40 + 1000 * rare, 10, rows))
        found.append(pl.DataFrame({"event": event, "amount": amount, "place": place, "age": age}).fill_nan(None))
    return found[0], found[1]


def drawn(result) -> dict[str, list[dict[str, float]]]:
    """The shares of each sample in the first picture, by tick or by place."""
    (chart,) = result.shown.charts(())
    found = {}
    for name, panel in zip(chart.controls[0].choices, chart.panels, strict=True):
        ticks = [text for _, text in panel.x.ticks]
        found[name] = [dict(zip(ticks or map(str, m.places["x1"]), m.places["y"], strict=True)) for m in panel.marks]
    return found


@pytest.mark.parametrize("elsewhere", [False, True])
def test_pictures_of_many_rows_agree_with_the_table_beside_them(elsewhere, tmp_path):
    """Of 2000 rows of each sample the first arm had more events than the second, which had twice as many."""
    samples = [arm.drop("age") for arm in arms(50_000)]
    for name, arm in zip("ab", samples, strict=True):
        arm.write_parquet(tmp_path / f"{name}.parquet")
    result = asked(*((tmp_path / "a.parquet", tmp_path / "b.parquet") if elsewhere else samples))
    found = drawn(result)
    for k, arm in enumerate(samples):
        assert found["event"][k]["1"] == pytest.approx(100 * np.mean(arm["event"].to_numpy()))
        assert found["place"][k]["aq"] == pytest.approx(100 * np.mean(arm["place"].to_numpy() == "aq"))
        bars, values = found["amount"][k], arm["amount"].to_numpy()
        starts = np.array(list(map(float, bars)))
        ends = np.append(starts[1:], 2 * starts[-1] - starts[-2])
        shares = [100 * np.mean((values >= a) & (values < b)) for a, b in zip(starts, ends, strict=True)]
        np.testing.assert_allclose(list(bars.values()), shares, atol=0.02)
    assert found["event"][1]["1"] > 1.5 * found["event"][0]["1"]
    assert "evenly spread" not in result.page(tmp_path / "a.html").read_text("utf-8")


@pytest.mark.parametrize("rows", [1000, 15_000])
def test_pictures_are_of_the_rows_that_the_table_compares(rows, tmp_path):
    """Where ages are missing the table has all rows of other columns, and the picture had complete ones."""
    samples = arms(rows)
    result = asked(*samples, missing="drop")
    found = drawn(result)
    for k, arm in enumerate(samples):
        assert found["place"][k]["de"] == pytest.approx(100 * np.mean(arm["place"].to_numpy() == "de"))
    mm.save(result, tmp_path / "a.mm")
    assert drawn(mm.load(tmp_path / "a.mm"))["place"] == found["place"]


def test_many_numbers_of_files_are_counted_in_little_memory():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.exp(rng.normal(0, 2, 400_000)), np.full(60_000, 2.5), rng.integers(0, 9, 60_000)])
    rng.shuffle(values)
    pieces = np.array_split(values, 10)
    found = Tally.of(pieces[0])
    for piece in pieces[1:]:
        found = found.joined(piece)
    assert found.rows.sum() == len(values)
    assert len(found.values) < 4 * MOST_VALUES
    assert (found.values[0], found.values[-1]) == (values.min(), values.max())
    assert found.rows[found.values == 2.5][0] == pytest.approx(60_000, abs=100)
    for at in np.quantile(values, np.linspace(0.01, 0.99, 25)):
        assert found.rows[found.values <= at].sum() / len(values) == pytest.approx(np.mean(values <= at), abs=3e-4)


def test_a_page_without_a_picture_of_the_data_says_why(frame, tmp_path):
    points = frame["size"].to_numpy()
    pieces = (iter(np.array_split(each[:, None], 30)) for each in (points, points))
    result = asked(*pieces)
    assert result.shown is None
    assert "The data are not drawn" in result.page(tmp_path / "a.html").read_text("utf-8")
