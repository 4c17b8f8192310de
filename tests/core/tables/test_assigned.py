"""Ids that repeat: users, of which each was assigned to a sample with all of its rows."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core.errors import InputError
from meanmap.core.tables.assigned import in_ranges, names_units

UNITS, EACH = 150, 5
SAID = "each value of 'user_id' occurs in one sample only"


def visits(seed, units=UNITS, each=EACH):
    """Visits of users, of whom each saw one variant; nothing depends on the variant or the user."""
    rng = np.random.default_rng(seed)
    variant = rng.permutation(np.arange(units) % 2)
    user = rng.integers(0, units, units * each)
    more = {"depth": rng.poisson(3.0, user.size), "scroll": rng.uniform(0, 100, user.size).round(1)}
    return pd.DataFrame({"user_id": 100_000 + user, "variant": np.array(["A", "B"])[variant[user]], **more})


def parts_of(table, by="variant"):
    return [part.drop(columns=by).reset_index(drop=True) for _, part in table.groupby(by)]


@pytest.mark.parametrize("way", ["by", "samples", "asked"])
@pytest.mark.parametrize("form", ["whole", "float", "text"])
def test_repeated_ids_of_units_are_left_out_and_clusters_are_named(way, form):
    table = visits(31)
    if form == "float":
        table["user_id"] = table.user_id.astype(float)
    if form == "text":
        table["user_id"] = "u" + table.user_id.astype(str)
    few = {"n_permutations": 99, "rng": 0}
    if way == "by":
        found = mm.two_sample_test(table, by="variant", **few)
    elif way == "samples":
        found = mm.two_sample_test(*parts_of(table), **few)
    else:
        found = mm.test(". ~ variant", table, **few)
    (note,) = [note for note in found.warnings if SAID in note]
    assert "pass clusters='user_id'" in note
    assert f"kinds={{'user_id': '{'label' if form == 'text' else 'number'}'}}" in note
    assert {each.column for each in found.differences} == {"depth", "scroll"}


@pytest.mark.parametrize("form", ["whole", "text"])
def test_units_are_found_although_some_have_rows_in_both_samples(form):
    """As where a cookie was lost: 6 of 750 rows."""
    table = visits(7)
    moved = np.random.default_rng(0).choice(len(table), 6, replace=False)
    table.loc[moved, "variant"] = np.where(table.variant[moved] == "A", "B", "A")
    if form == "text":
        table["user_id"] = "u" + table.user_id.astype(str)
    found = mm.two_sample_test(table, by="variant", n_permutations=99, rng=0)
    (note,) = [note for note in found.warnings if "in one sample only" in note]
    assert "each value of 'user_id' but 6 occurs in one sample only" in note
    assert "leave out the rows of the 6 others, and pass clusters='user_id'. 'user_id' is left out" in note
    assert {each.column for each in found.differences} == {"depth", "scroll"}
    with pytest.raises(InputError, match="6 of 150 clusters have rows in more than one sample"):
        mm.two_sample_test(table, by="variant", clusters="user_id", n_permutations=99, rng=0)
    both = table.groupby("user_id").variant.transform("nunique") > 1
    kept = mm.two_sample_test(table[~both], by="variant", clusters="user_id", n_permutations=99, rng=0)
    assert not any("in one sample only" in note for note in kept.warnings)


@pytest.mark.parametrize("function", [mm.two_sample_effect, mm.k_sample_test, mm.k_sample_effect])
def test_every_comparison_of_groups_leaves_them_out(function):
    found = function(visits(31), by="variant", rng=0)
    assert sum(SAID in note for note in found.warnings) == 1


def test_ids_that_the_user_named_stay_with_the_hint():
    table = visits(31)
    found = mm.test("user_id + depth ~ variant", table, n_permutations=99, rng=0)
    (note,) = [note for note in found.warnings if SAID in note]
    assert note.endswith("pass clusters='user_id'.")
    assert {each.column for each in found.differences} == {"user_id", "depth"}
    declared = mm.two_sample_test(table, by="variant", kinds={"user_id": "number"}, n_permutations=99, rng=0)
    assert not any(SAID in note for note in declared.warnings)


def test_with_clusters_there_is_no_hint_and_other_columns_of_users_are_compared():
    table = visits(31)
    table["income"] = 7 * table.user_id % 100_003
    found = mm.two_sample_test(table, by="variant", clusters="user_id", n_permutations=99, rng=0)
    assert not any("occurs in one sample only" in note for note in found.warnings)
    assert {each.column for each in found.differences} == {"income", "depth", "scroll"}


def test_the_command_line_says_what_to_type(tmp_path):
    path = str(tmp_path / "visits.csv")
    visits(31).to_csv(path, index=False)
    line = ["test", "two-sample", path, "--by", "variant", "--permutations", "99"]
    text = " ".join(CliRunner().invoke(app, line).output.split())
    assert SAID in text
    assert "pass --clusters user_id. 'user_id' is left out; to compare it, pass --kinds user_id=number." in text
    named = " ".join(CliRunner().invoke(app, [*line, "--columns", "user_id,depth"]).output.split())
    assert "pass --clusters user_id" in named
    assert "'user_id' is left out" not in named


def test_columns_of_rows_that_were_assigned_one_by_one_stay():
    """Each has a probability below 1e-9, whatever the column; of 2000 columns none may be taken for units."""
    rng = np.random.default_rng(18_200_014)
    for _ in range(400):
        n = int(rng.integers(30, 400))
        arm = rng.random(n) < rng.uniform(0.1, 0.5)
        columns = (
            rng.integers(18, 90, n),
            rng.integers(0, n // 2, n),
            rng.integers(0, 100 * n, n),
            np.repeat(rng.integers(0, 10 * n, n), 2)[:n],
            np.char.add("u", rng.integers(0, n // 3, n).astype(str)),
        )
        assert not any(names_units([column[arm], column[~arm]]) for column in columns if 0 < arm.sum() < n)


def test_columns_that_differ_between_samples_stay():
    rng = np.random.default_rng(18_200_015)
    young, old = rng.integers(20, 50, 300), rng.integers(50, 80, 300)
    assert not names_units([young, old])  # each value is in one sample only, but one sample has all the smaller ones
    words = np.array([f"site {k:02}" for k in range(40)])
    assert not names_units([rng.choice(words, 300), np.char.upper(rng.choice(words, 300))])
    assert not names_units([np.arange(8).repeat(50)[::2], np.arange(8).repeat(50)[1::2] + 8])
    assert not names_units([rng.normal(size=100), rng.normal(size=100)])


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_units_are_found_also_where_one_sample_is_small(share):
    """Fails where fewer than half as many changes of sample occur as expected: below 1e-9 for 300 units."""
    rng = np.random.default_rng(18_200_016)
    user = np.repeat(rng.permutation(300), 4)
    arm = rng.permutation(np.arange(300) < 300 * share)[user]
    assert names_units([user[arm], user[~arm]])


def test_bets_on_several_rows_of_a_unit_are_warned_about():
    with pytest.warns(
        UserWarning, match="each value of 'user_id' occurs in one sample only.* Bet on one row of each user"
    ):
        mm.stats.TwoSampleBet.of(*parts_of(visits(31)), rng=0)


def test_tests_of_independence_read_repeated_ids_as_before():
    table = visits(31)
    found = mm.independence_test(table[["user_id"]], table[["depth"]], n_permutations=99, rng=0)
    assert not any("occurs in one sample only" in note for note in found.warnings)


def in_separate_ranges(seed, text=False):
    """Users with three rows each, numbered in A first; nothing depends on the variant."""
    user = np.repeat(np.arange(400), 3)
    ids = np.where(user < 200, 10_000, 900_000) + user
    more = {"variant": np.where(user < 200, "A", "B"), "y": np.random.default_rng(seed).normal(size=user.size)}
    return pd.DataFrame({"user_id": np.char.add("u", ids.astype(str)) if text else ids, **more})


@pytest.mark.parametrize("function", [mm.two_sample_test, mm.two_sample_effect, mm.k_sample_test])
def test_ids_in_separate_ranges_are_compared_with_a_note(function):
    found = function(in_separate_ranges(32), by="variant", rng=0)
    (note,) = [note for note in found.warnings if SAID in note]
    assert "pass clusters='user_id', or leave it out of the table. 'user_id' is compared as a number." in note
    clustered = function(in_separate_ranges(32), by="variant", clusters="user_id", rng=0)
    assert not any(SAID in note for note in clustered.warnings)


def test_text_ids_that_are_apart_name_what_to_type():
    found = mm.two_sample_test(in_separate_ranges(None, text=True), by="variant", n_permutations=99, rng=0)
    assert any("pass clusters='user_id', or leave it out of the table" in note for note in found.warnings)


@pytest.mark.parametrize("text", [False, True])
def test_the_command_line_says_what_to_type_for_separate_ranges(tmp_path, text):
    path = str(tmp_path / "visits.csv")
    in_separate_ranges(None, text).to_csv(path, index=False)
    line = ["test", "two-sample", path, "--by", "variant", "--permutations", "99"]
    said = " ".join(CliRunner().invoke(app, line).output.split())
    assert "pass --clusters user_id, or leave it out with --exclude user_id" in said


def test_users_without_visits_do_not_hide_the_others():
    """Of 400 users with 2.5 visits on average 33 ± 5.5 have none, and 80 may be lacking."""
    visits_of = np.random.default_rng(18_200_017).poisson(2.5, 400)
    assert in_ranges([np.repeat(np.arange(200), visits_of[:200]), 900 + np.repeat(np.arange(200), visits_of[200:])])


def test_measurements_that_are_apart_are_not_taken_for_ids():
    rng = np.random.default_rng(18_200_018)
    low, high = rng.integers(0, 1000, 600), rng.integers(2000, 3000, 600)
    assert not in_ranges([low, high])  # many numbers are skipped
    assert not in_ranges([np.arange(100), np.arange(100, 200)])  # each has one row
    assert not in_ranges([np.repeat(np.arange(8), 9), np.repeat(np.arange(8, 16), 9)])  # few values
    assert not in_ranges([np.repeat(np.arange(50), 9), np.repeat(np.arange(49, 99), 9)])  # one in both
    assert not in_ranges([np.repeat(np.arange(50), 9) + 0.5, np.repeat(np.arange(50, 99), 9) + 0.5])
