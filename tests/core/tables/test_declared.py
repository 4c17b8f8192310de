"""Columns keep what they were declared to be until a kernel asks for numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.tables.table import Table

FEW = {"n_permutations": 99, "rng": 0}
RNG = np.random.default_rng(0)
SHOP = RNG.integers(0, 40, 300)
SALES = np.where(SHOP % 2, 1.0, -1.0) + RNG.normal(size=300)
IDS = 1_234_567_890_123_456_000 + 97 * SHOP
LONG = {
    "int64": pd.DataFrame({"shop": IDS}),
    "uint64": pd.DataFrame({"shop": IDS.astype(np.uint64) + np.uint64(2**63)}),
    "nullable": pd.DataFrame({"shop": pd.array(IDS, dtype="Int64")}),
    "polars": pl.DataFrame({"shop": IDS}),
    "list": {"shop": IDS.tolist()},
    "categories": pd.DataFrame({"shop": IDS}).astype("category"),
}


@pytest.mark.parametrize("name", LONG)
def test_long_ids_are_labels_to_the_last_digit(name):
    expected = mm.independence_test({"shop": SHOP.astype(str)}, SALES, **FEW)
    found = mm.independence_test(LONG[name], SALES, kinds={"shop": "label"}, **FEW)
    assert (found.pvalue, found.statistic) == (expected.pvalue, pytest.approx(expected.statistic, abs=1e-9))


@pytest.mark.parametrize("column", [pd.array([None, *IDS[1:]], dtype="Int64"), [None, *IDS[1:].tolist()]])
def test_long_ids_with_gaps_keep_their_digits(column):
    table = {"shop": column, "sales": SALES}
    whole = {"shop": SHOP.astype(str)[1:], "sales": SALES[1:]}
    expected = mm.test("sales ~ shop", whole, **FEW)
    assert mm.test("sales ~ shop", table, missing="drop", kinds={"shop": "label"}, **FEW).pvalue == expected.pvalue


def test_long_ids_are_strata_and_groups():
    two = np.where(SHOP % 2, 2**60 + 1, 2**60)
    assert len(mm.Schema.of({"shop": IDS}, kinds={"shop": "label"})["shop"].labels) == 40
    assert mm.k_sample_test({"sales": SALES, "shop": two}, by="shop", **FEW).sizes == tuple(
        np.bincount(SHOP % 2).tolist()
    )
    inside = mm.independence_test(
        "x", "y", data={"x": RNG.normal(size=300), "y": SALES, "shop": two}, within="shop", **FEW
    )
    assert inside.pvalue > 0.01


def test_names_of_groups_differ_where_their_numbers_do():
    table = {"sales": SALES, "zip": 1234567.0 + SHOP % 3}
    assert len(mm.k_sample_test(table, by="zip", **FEW).sizes) == 3


def test_kernels_get_numbers():
    ids = 2**60 + 1024 * SHOP  # of which float64 holds all digits
    table = Table.of({"id": ids, "few": SHOP})
    assert [column.dtype.str for column in table.columns.values()] == ["<i8", "<f8"]
    assert table.matrix().dtype == np.float64
    assert mm.two_sample_test({"id": ids[:150]}, {"id": ids[150:]}, **FEW).pvalue > 0.01


def far(numbers):
    return 2**60 + 1 + numbers


@pytest.mark.parametrize(
    "made",
    [
        lambda ids: {"id": ids},
        lambda ids: {"id": ids.astype(np.uint64)},
        lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="Int64")}),
        lambda ids: pl.DataFrame({"id": ids}),
        lambda ids: {"id": ids, "c": np.where(ids % 2, "a", "b")},
        lambda ids: {"id": ids.astype(str)},
        lambda ids: ids,
        lambda ids: ids.tolist(),
    ],
)
def test_whole_numbers_that_lose_digits_are_not_compared_as_numbers(made):
    x, y = made(far(SHOP[:60])), made(far(SHOP[60:120] + 50))
    kinds = {"id": "number"} if isinstance(x, dict) and x["id"].dtype.kind == "U" else None
    with pytest.raises(KindError, match=r"beyond 2.53.*subtract"):
        mm.two_sample_test(x, y, kinds=kinds, **FEW)
    assert mm.two_sample_test({"id": SHOP[:60]}, {"id": SHOP[60:120] + 50}, **FEW).pvalue <= 0.01


@pytest.mark.parametrize(
    "ask",
    [
        lambda ids: mm.independence_test(ids, SALES, **FEW),
        lambda ids: mm.conditional_independence_test({"id": ids}, SALES, RNG.normal(size=300), rng=0),
        lambda ids: mm.pc({"id": ids, "sales": SALES, "z": RNG.normal(size=300)}, rng=0),
        lambda ids: mm.chow_liu({"id": ids, "sales": SALES}),
        lambda ids: mm.embed(ids),
        lambda ids: mm.structure.prewhiten({"id": ids}),
        lambda ids: mm.two_sample_test(np.ma.masked_less(ids, 2**60 + 5), ids, missing="drop", **FEW),
        lambda ids: mm.two_sample_test({"id": np.where(SHOP, ids, -999)}, {"id": ids}, missing=[-999], **FEW),
    ],
)
def test_whole_numbers_that_lose_digits_are_not_called_constant(ask):
    with pytest.raises(KindError, match=r"beyond 2.53"):
        ask(far(SHOP))


SAME = {
    "whole and other categories": (pd.Categorical(SHOP), pd.Categorical(SHOP.astype(float))),
    "categories and texts": (pd.Categorical(SHOP.astype(float)), SHOP.astype(str)),
    "composed and decomposed": (np.where(SHOP % 2, "caf\u00e9", "bar"), np.where(SHOP % 2, "cafe\u0301", "bar")),
    "composed, of pandas": (
        pd.Series(np.where(SHOP % 2, "caf\u00e9", "bar")),
        pd.Series(np.where(SHOP % 2, "cafe\u0301", "bar")).astype("category"),
    ),
    "texts and bytes": (np.where(SHOP % 2, "caf\u00e9", "bar"), [b"caf\xc3\xa9" if s % 2 else b"bar" for s in SHOP]),
}


@pytest.mark.parametrize("name", SAME)
def test_labels_that_are_written_otherwise_are_the_same(name):
    first, second = SAME[name]
    assert mm.two_sample_test({"town": first}, {"town": second}, **FEW).pvalue == 1.0
    if "composed" in name:
        delta = mm.kernels.Delta()
        assert delta(list(first), list(first)).tolist() == delta(list(first), list(second)).tolist()


def test_ordered_categories_of_numbers():
    sizes = pd.Categorical(SHOP % 3 + 0.0, ordered=True)
    assert mm.Schema.of({"size": sizes})["size"].labels == ("0", "1", "2")
    ranks = mm.two_sample_test({"size": sizes[:150]}, {"size": sizes[150:]}, kinds={"size": "rank"}, **FEW)
    assert ranks.pvalue > 0.01


def test_an_enum_of_polars_is_ranked_like_ordered_categories_of_pandas():
    """By tests, models of rows and regressions by formula alike; its levels do not rise with the alphabet."""
    sizes = np.array(["small", "medium", "large", "vast"])  # the last occurs in no row
    words = sizes[np.clip(SHOP % 3 + (SALES > 0.5), 0, 2)]
    pandas = pd.DataFrame({"size": pd.Categorical(words, sizes, ordered=True), "sales": SALES})
    polars = pl.DataFrame({"size": pl.Series(words, dtype=pl.Enum(sizes.tolist())), "sales": SALES})
    ranks: dict = {"kinds": {"size": "rank"}}

    def answers(table):
        column = mm.Schema.of(table)["size"]
        fit = mm.fit("sales ~ size", table)
        ordered = mm.fit("size ~ sales", table, "cumulative")
        network = mm.bp.BayesianNetwork([("size", "sales")]).fit(table, **ranks)
        return (
            (column.kind, column.labels),
            mm.two_sample_test(table[:150], table[150:], **ranks, **FEW).pvalue,
            mm.independence_test(table[["size"]], SALES, **ranks, **FEW).statistic,
            mm.test("sales ~ size", table, **ranks, **FEW).pvalue,
            mm.condition(table[["size"]], SALES, ridge=0.01, **ranks)(table[["size"]][:3]).mean().tolist(),
            fit.to_frame()["estimate"].to_dict(),
            [note for note in fit.report.notes if "no row has" in note],
            ordered.levels,
            network.do({"size": "large"}, rng=0)["sales"].mean(),
        )

    for found, expected in zip(answers(polars), answers(pandas), strict=True):
        assert found == expected
    assert answers(polars)[0] == ("ordered label", tuple(sizes))


AGES = RNG.normal(40, 10, 200)


@pytest.mark.parametrize("library", [dict, pd.DataFrame, pl.DataFrame])
def test_marks_stand_for_missing_values(library):
    cells = [f"{age:.3f}" for age in AGES]
    cells[3] = cells[150] = "?"
    words = library({"age": cells, "town": ["-" if i == 7 else "a" for i in range(200)]})
    numbers = library({"age": AGES.round(3) + 9})
    left = np.delete(AGES.round(3), [3, 150])
    expected = mm.two_sample_test({"age": left}, numbers, **FEW)
    found = mm.two_sample_test(words[["age"]] if library is not dict else {"age": cells}, numbers, missing=["?"], **FEW)
    assert (found.pvalue, found.sizes) == (expected.pvalue, (198, 200))
    assert any("2 of 200 rows of x were left out: a value is missing in 'age' (2)" in note for note in found.warnings)
    assert mm.two_sample_test(words, words, missing=["?", "-"], **FEW).sizes == (197, 197)


def test_numbers_stand_for_missing_values():
    coded = np.where(np.arange(200) % 20 == 0, -999.0, AGES)
    found = mm.two_sample_test(coded, AGES, missing=[-999], **FEW)
    assert found.sizes == (190, 200)
    assert found.pvalue > 0.01
    assert mm.pc({"a": coded, "b": AGES}, missing=["-999"], rng=0).names == ("a", "b")
    with pytest.raises(ParameterError, match="missing holds None; expected codes for"):
        mm.two_sample_test(coded, AGES, missing=[None])
    with pytest.raises(
        ParameterError,
        match=r"missing is 'dorp' \(did you mean 'drop'\?\); expected one of .*, or a list of .* as \['\?', -999\]",
    ):
        mm.two_sample_test(coded, AGES, missing="dorp")


DAYS = pd.date_range("2026-01-01", periods=60, freq="h")
BERLIN = DAYS.tz_localize("Europe/Berlin")
ZONED = {
    "pandas": (pd.DataFrame({"t": BERLIN}), pd.DataFrame({"t": DAYS})),
    "polars": (pl.DataFrame({"t": pl.Series(DAYS).dt.replace_time_zone("Europe/Berlin")}), pl.DataFrame({"t": DAYS})),
    "Python": ({"t": list(BERLIN.to_pydatetime())}, {"t": list(DAYS.to_pydatetime())}),
    "NumPy": (pd.DataFrame({"t": BERLIN}), {"t": DAYS.to_numpy()}),
    "one column": (pd.Series(BERLIN), pd.Series(DAYS)),
}


@pytest.mark.parametrize("name", ZONED)
def test_times_with_and_without_a_zone_are_not_compared(name):
    zoned, naive = ZONED[name]
    for pair in ((zoned, naive), (naive, zoned)):
        with pytest.raises(KindError, match=r"holds times with a zone, and .* without one: they cannot be compared"):
            mm.two_sample_test(*pair, **FEW)
    for part in (zoned, naive):
        assert mm.two_sample_test(part, part, **FEW).pvalue == 1.0


def test_later_times_have_a_zone_if_the_first_had_one():
    zoned, naive = ZONED["pandas"]
    monitor = mm.DriftMonitor.of(zoned, rng=0)
    with pytest.raises(KindError, match=r"the table before holds times with a zone, and batch\['t'\]"):
        monitor.step(naive[:20])
    assert monitor.step(zoned[:20]) is not None
    mixed = {"t": [*BERLIN[:30].to_pydatetime(), *DAYS[30:].to_pydatetime()]}
    with pytest.raises(KindError, match=r"x\['t'\] holds times with a zone and times without one"):
        mm.two_sample_test(mixed, zoned, **FEW)


ONE_COLUMN = {
    "pandas": (pd.Series(BERLIN), pd.Series(DAYS)),
    "an index": (BERLIN, DAYS),
    "polars": (pl.Series(DAYS).dt.replace_time_zone("Europe/Berlin"), pl.Series(DAYS)),
    "Python": (list(BERLIN.to_pydatetime()), list(DAYS.to_pydatetime())),
}


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_later_times_without_a_name_have_a_zone_if_the_first_had_one(name):
    """Fitted objects remember whether a Series, or a list, had a zone: read in UTC they were off by it, silently."""
    y = np.sin(np.arange(60.0))
    for known, other in (ONE_COLUMN[name], ONE_COLUMN[name][::-1]):
        asked = (
            (mm.condition(known, y), "x"),
            (mm.embed(known), "x"),
            (mm.condition(y, known)(y[:3]).density, "grid"),
            (mm.DriftMonitor.of(known, rng=0).step, "batch"),
            (mm.Schema.of(known).read, "data"),
        )
        for ask, argument in asked:
            with pytest.raises(KindError, match=r"holds times with a zone, and .* without one: they cannot be") as said:
                ask(other[:20])
            assert argument in str(said.value)
            assert "the table before" in str(said.value)
            ask(known[:20])
        with pytest.raises(KindError, match=r"holds times with a zone, and the (first|second) element holds times"):
            mm.embed(known) - mm.embed(other)
    with pytest.raises(KindError, match=r"the table before holds times .* and x holds .* with x\.dt\.tz_localize"):
        mm.condition(ONE_COLUMN[name][0], y)(ONE_COLUMN[name][1][:20])


def test_times_without_a_name_that_lost_a_gap_remember_their_zone():
    zoned, naive = (part.where(np.arange(60) != 7) for part in ONE_COLUMN["pandas"])
    for known, other in ((zoned, naive), (naive, zoned)):
        operator = mm.condition(known, np.arange(60.0), missing="drop")
        operator(known[:5])
        with pytest.raises(KindError, match="holds times with a zone, and"):
            operator(other[:5])


def test_kinds_may_be_those_of_other_columns_of_the_table():
    from meanmap.core.errors import ColumnError

    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=40) for name in "xyz"} | {"zip": [1, 2] * 20}
    for call in (
        lambda kinds: mm.independence_test("x", "y", data=data, kinds=kinds, n_permutations=19, rng=0),
        lambda kinds: mm.independence_effect("x", "y", data=data, kinds=kinds, rng=0),
        lambda kinds: mm.test("x ~ y", data, kinds=kinds, n_permutations=19, rng=0),
    ):
        call({"zip": "label"})
        with pytest.raises(ColumnError, match="zap"):
            call({"zap": "label"})
