"""Columns that number the rows: which they are, and when they stay."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.tables.apart import row_numbers, without_row_numbers

ROWS = 60
NOTE = "'id' only numbers or names the rows and is left out; to use it, pass kinds={'id': 'number'}"


def people(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": 1000 + np.arange(n), "age": rng.normal(40, 10, n), "arm": rng.choice(["A", "B"], n)})


def test_ids_of_one_table_and_of_people_who_were_split_number_the_rows():
    whole = people()
    assert row_numbers([dict(whole)]) == ["id"]
    many = people(n=4 * ROWS)
    split = [dict(part) for _, part in many.groupby(np.random.default_rng(1).integers(0, 4, len(many)))]
    assert row_numbers(split) == ["id"]
    assert row_numbers([dict(whole.sample(frac=1, random_state=0))]) == []
    assert row_numbers([dict(whole)], ["id"]) == []
    assert row_numbers([dict(whole.assign(id=np.where(np.arange(ROWS) == 3, np.nan, whole.id)))]) == ["id"]


def test_a_table_with_nothing_else_stays_and_so_do_arrays():
    alone = people()[["id"]]
    assert without_row_numbers([alone], ["x"], [])[0][0] is alone
    array = people()[["id", "age"]].to_numpy()
    assert without_row_numbers([array], ["x"], [])[0][0] is array


@pytest.mark.parametrize("function", [mm.two_sample_test, mm.two_sample_effect, mm.k_sample_test, mm.k_sample_effect])
@pytest.mark.parametrize("way", ["by", "samples"])
def test_samples_are_compared_without_ids(function, way):
    """They rise from one sample to the next, which is no difference between people."""
    whole = people().sort_values("arm", kind="stable").assign(id=1000 + np.arange(ROWS))
    parts = [whole[whole.arm == arm].drop(columns="arm") for arm in "AB"]
    several = function in (mm.k_sample_test, mm.k_sample_effect)

    def answer(drop, **options):
        if way == "by":
            return function(whole.drop(columns=drop), by="arm", rng=0, **options)
        samples = [part.drop(columns=drop) for part in parts]
        return function(samples, rng=0, **options) if several else function(*samples, rng=0, **options)

    found, without = answer([]), answer(["id"])
    assert sum(NOTE in note for note in found.warnings) == 1
    assert not any("as a clock or an id does" in note for note in found.warnings)
    size = (lambda each: each.pvalue) if hasattr(found, "pvalue") else (lambda each: each.distance.estimate)
    assert size(found) == size(without)
    kept = answer([], kinds={"id": "number"})
    assert size(kept) != size(without)
    assert not any(NOTE in note for note in kept.warnings)
    if hasattr(found, "differences") and hasattr(found, "pvalue"):
        assert {each.column for each in found.differences} == {"age"}
        assert {each.column for each in kept.differences} == {"age", "id"}


def test_ids_of_long_tables_are_left_out_too():
    x, y = people(0, 11_000), people(1, 11_000).assign(id=20_000 + np.arange(11_000))
    found = mm.two_sample_test(x.drop(columns="arm"), y.drop(columns="arm"), rng=0)
    assert any(NOTE in note for note in found.warnings)
    assert found.columns == ("age",)


def test_a_kernel_and_functions_of_the_user_see_every_column():
    x, y = people(0).drop(columns="arm"), people(1).drop(columns="arm")
    kernel = mm.kernels.OnColumns(mm.kernels.RBF(10.0), ["id"]) * mm.kernels.OnColumns(mm.kernels.RBF(5.0), ["age"])
    found = mm.two_sample_test(x, y, kernel, n_permutations=99, rng=0)
    assert {each.column for each in found.differences} == {"id", "age"}
    width = mm.two_sample_test(x, y, features=lambda rows: np.asarray(rows)[:, :2], n_permutations=99, rng=0)
    assert not any("is left out" in note for note in width.warnings)


def test_ids_that_a_question_or_a_design_names_stay():
    whole = people()
    asked = mm.test("id + age ~ arm", whole, rng=0, n_permutations=99)
    assert {each.column for each in asked.differences} == {"id", "age"}
    pairs = people().assign(pair=np.arange(ROWS) // 2, arm=np.tile(["A", "B"], ROWS // 2))
    found = mm.two_sample_test(pairs, by="arm", within="pair", n_permutations=99, rng=0)
    assert any(NOTE in note for note in found.warnings)


def test_a_gap_in_an_id_costs_no_row():
    whole = people()
    whole["id"] = np.where(np.arange(ROWS) % 7 == 3, np.nan, whole.id)
    found = mm.two_sample_test(whole, by="arm", missing="drop", n_permutations=99, rng=0)
    assert sum(found.sizes) == ROWS
