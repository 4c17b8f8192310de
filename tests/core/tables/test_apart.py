"""Columns that number the rows: which they are, and when they stay."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core.tables.apart import apart_in, watched, without_ids

ROWS = 60
NOTE = "'id' only identifies the rows and is left out; to use it, pass kinds={'id': 'number'}"


def people(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": 1000 + np.arange(n), "age": rng.normal(40, 10, n), "arm": rng.choice(["A", "B"], n)})


def test_ids_of_one_table_and_of_people_who_were_split_number_the_rows():
    whole = people()
    assert list(apart_in([dict(whole)])) == ["id"]
    many = people(n=4 * ROWS)
    split = [dict(part) for _, part in many.groupby(np.random.default_rng(1).integers(0, 4, len(many)))]
    assert list(apart_in(split)) == ["id"]
    assert list(apart_in([dict(whole.sample(frac=1, random_state=0))])) == ["id"]
    assert apart_in([dict(whole)], ["id"]) == {}
    assert list(apart_in([dict(whole.assign(id=np.where(np.arange(ROWS) == 3, np.nan, whole.id)))])) == ["id"]


def test_a_table_with_nothing_else_stays_and_so_do_arrays():
    alone = people()[["id"]]
    assert without_ids([alone], ["x"], [])[0][0] is alone
    array = people()[["id", "age"]].to_numpy()
    assert without_ids([array], ["x"], [])[0][0] is array


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


def numbered_by_arm(form, seed=0, n=2 * ROWS):
    """People, all of A before all of B, and a column that only says so."""
    rng = np.random.default_rng(seed)
    place = np.arange(n)
    numbers = 5000 + np.cumsum(np.tile([1, 1, 3, 1, 2], n // 5))
    ids = {
        "gaps": numbers,
        "text": [f"K-{100000 + k}" for k in place],
        "code": [f"u{rng.bytes(4).hex()}" for _ in place],
        "day": [f"{1 + k % 28:02}.{1 + k // 28:02}.2026" for k in place],
        "hour": [f"{k // 60:02}:{k % 60:02}" for k in place],
    }[form]
    return pd.DataFrame({"id": ids, "age": rng.normal(40, 10, n), "arm": np.repeat(["A", "B"], n // 2)})


KINDS = {"gaps": "number", "text": "label", "code": "label", "day": "time", "hour": "time of day"}


def said(form, shell=False):
    what = "holds dates or times as text" if form in ("day", "hour") else "only identifies the rows"
    kind = KINDS[form]
    typed = f"--kinds {shlex.quote(f'id={kind}')}" if shell else f"kinds={{'id': '{kind}'}}."
    return f"'id' {what} and is left out; to use it, pass {typed}"


def halves(table):
    return [part.drop(columns="arm").reset_index(drop=True) for _, part in table.groupby("arm")]


DOORS = {
    "ask": lambda table, **kinds: mm.test(". ~ arm", table, n_permutations=99, rng=0, **kinds),
    "two by": lambda table, **kinds: mm.two_sample_test(table, by="arm", n_permutations=99, rng=0, **kinds),
    "two": lambda table, **kinds: mm.two_sample_test(*halves(table), n_permutations=99, rng=0, **kinds),
    "k by": lambda table, **kinds: mm.k_sample_test(table, by="arm", n_permutations=99, rng=0, **kinds),
    "k": lambda table, **kinds: mm.k_sample_test(halves(table), n_permutations=99, rng=0, **kinds),
    "close": lambda table, **kinds: mm.closeness_test(*halves(table), 0.5, rng=0, **kinds),
    "effect": lambda table, **kinds: mm.two_sample_effect(*halves(table), rng=0, **kinds),
    "k effect": lambda table, **kinds: mm.k_sample_effect(table, by="arm", rng=0, **kinds),
    "independence": lambda table, **kinds: mm.test("age ~ .", table, n_permutations=99, rng=0, **kinds),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", KINDS)
def test_one_rule_at_every_door(door, form):
    table = numbered_by_arm(form)
    found, without = DOORS[door](table), DOORS[door](table.drop(columns="id"))
    assert [note for note in found.warnings if "'id'" in note] == [said(form)]
    assert not any("consecutive rows" in note or "holds texts" in note for note in found.warnings)
    size = (lambda each: each.pvalue) if hasattr(found, "pvalue") else (lambda each: each.distance.estimate)
    assert size(found) == size(without)
    kept = DOORS[door](table, kinds={"id": KINDS[form]})
    assert said(form) not in kept.warnings


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("ask", [False, True])
def test_the_same_at_the_command_line(form, ask, tmp_path):
    table = numbered_by_arm(form)
    table.to_csv(tmp_path / "t.csv", index=False)

    def answer(*typed):
        found = CliRunner().invoke(app, ["test", *typed, "--permutations", "99", "--seed", "0", "--json"])
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    path = str(tmp_path / "t.csv")
    found = answer(". ~ arm", path) if ask else answer("two-sample", path, "--by", "arm")
    assert [note for note in found["notes"] if "'id'" in note] == [said(form, shell=True)]
    assert found["pvalue"] == DOORS["ask"](table).pvalue
    as_time = ["--kinds", f"id={KINDS[form]}"] if form in ("day", "hour") else []  # as text they are refused
    typed = ["id + age ~ arm", path] if ask else ["two-sample", path, "--by", "arm", "--columns", "id,age"]
    named = answer(*typed, *as_time)
    assert not any("is left out" in note for note in named["notes"])
    assert named["pvalue"] < 0.05


@pytest.mark.parametrize("number", [2, 5, 9])
@pytest.mark.parametrize("door", ["ask", "two", "k by", "effect", "independence"])
def test_few_different_dates_are_left_out_as_many_are(door, number):
    """Up to ten were compared as labels, without a word."""
    table = people()
    days = [f"2026-03-{1 + k:02}" for k in range(number)]
    table["day"] = np.random.default_rng(1).choice(days, len(table))
    found = DOORS[door](table)
    out = "'day' holds dates or times as text and is left out; to use it, pass kinds={'day': 'time'}."
    assert out in found.warnings
    assert not any(each.column == "day" for each in getattr(found, "differences", ()))
    assert not any("'day'" in note for note in DOORS[door](table, kinds={"day": "label"}).warnings)


def test_few_different_dates_in_files_are_left_out(tmp_path):
    table = people()
    table["day"] = np.where(np.random.default_rng(1).random(len(table)) < 0.5, "01.03.2026", "02.03.2026")
    table.to_csv(tmp_path / "t.csv", index=False)
    for asked in (["two-sample", "t.csv", "--by", "arm"], [". ~ arm", "t.csv"]):
        typed = [str(tmp_path / each) if each == "t.csv" else each for each in asked]
        found = CliRunner().invoke(app, ["test", *typed, "--permutations", "99", "--seed", "0"])
        assert "'day' holds dates or times as text and is left out" in found.output
        assert "day =" not in found.output


@pytest.mark.parametrize("form", KINDS)
def test_columns_that_a_question_names_stay(form):
    if form in ("day", "hour"):  # as text
        with pytest.raises(mm.errors.KindError, match=r"is text that looks like (dates|times of day)"):
            mm.test("id + age ~ arm", numbered_by_arm(form), n_permutations=99, rng=0)
        return
    found = mm.test("id + age ~ arm", numbered_by_arm(form), n_permutations=99, rng=0)
    assert not any("is left out" in note for note in found.warnings)
    assert "'id' and 'age'" in found.why[0]


def test_with_a_kernel_of_the_user_a_dot_stands_for_every_column():
    table = numbered_by_arm("gaps")
    found = mm.test(". ~ arm", table, kernel=mm.kernels.RBF(1.0), n_permutations=99, rng=0)
    assert "'id' and 'age'" in found.why[0]


def test_gaps_in_ids_cost_no_rows_and_are_no_error_of_a_question():
    table = numbered_by_arm("text")
    table["id"] = table.id.where(np.arange(len(table)) % 7 != 3, None)
    assert sum(mm.test(". ~ arm", table, n_permutations=99, rng=0).sizes) == len(table)


def test_numbers_that_were_not_read_as_such_are_no_names():
    table = numbered_by_arm("gaps").assign(id=lambda t: [f"{age:.3f}".replace(".", ",") for age in t.age])
    with pytest.raises(mm.errors.KindError, match=r"column 'id' .* is text that looks like numbers with a comma"):
        mm.two_sample_test(table, by="arm", n_permutations=99, rng=0)


def shuffled(**more):
    table = numbered_by_arm("gaps").sample(frac=1, random_state=0).reset_index(drop=True)
    return table.rename(columns={"id": "number"}).assign(**more)


@pytest.mark.parametrize("door", DOORS)
def test_ids_in_any_order_are_left_out(door):
    """They were compared, with a note, and made p-values small."""
    table = shuffled()
    found, without = DOORS[door](table), DOORS[door](table.drop(columns="number"))
    assert sum("'number' only identifies the rows and is left out" in note for note in found.warnings) == 1
    size = (lambda each: each.pvalue) if hasattr(found, "pvalue") else (lambda each: each.distance.estimate)
    assert size(found) == size(without)
    assert not any("'number'" in note for note in DOORS[door](table, kinds={"number": "number"}).warnings)
    assert not any("identifies" in note for note in DOORS[door](table.assign(number=table.number % 31)).warnings)


def test_ids_in_any_order_at_the_command_line(tmp_path):
    shuffled().to_csv(tmp_path / "t.csv", index=False)
    for typed in (["two-sample", str(tmp_path / "t.csv"), "--by", "arm"], [". ~ arm", str(tmp_path / "t.csv")]):
        found = CliRunner().invoke(app, ["test", *typed, "--permutations", "99", "--seed", "0", "--json"])
        (note,) = [note for note in json.loads(found.stdout)["notes"] if "'number'" in note]
        assert note.endswith("is left out; to use it, pass --kinds number=number")


@pytest.mark.parametrize("name", ["id", "user_id", "userId", "Customer ID", "uuid"])
def test_ids_with_wide_gaps_are_known_by_their_name(name):
    rng = np.random.default_rng(0)
    table = shuffled(**{name: rng.choice(10**7, 2 * ROWS, replace=False)})
    assert set(apart_in([dict(table)])) == {name, "number"}
    assert name not in apart_in([dict(table.assign(**{name: table[name] % 97}))])
    words = table.assign(**{name: [f"no {k}" for k in table[name]]})
    assert apart_in([dict(words)])[name] == ("only identifies the rows", "label")


def test_measurements_in_whole_numbers_stay_although_all_differ():
    rng = np.random.default_rng(0)
    for n in (20, 50, 200, 1000):
        cents = rng.choice(np.round(np.exp(rng.normal(12, 0.6, 40 * n))), n, replace=False)
        normal = np.unique(np.round(rng.normal(0, 10 * n, 4 * n)))[::3][:n]
        columns = {"income": cents, "paid": cents + 1, "humidity": rng.permutation(normal)}
        assert apart_in([columns]) == {}


def test_several_columns_of_ranks_stay_with_a_note():
    table = shuffled(rank=np.random.default_rng(0).permutation(2 * ROWS))
    found = mm.two_sample_test(table, by="arm", n_permutations=99, rng=0)
    assert found.columns == ("number", "age", "rank")
    assert sum("'number' and 'rank' hold whole numbers, nearly all different" in n for n in found.warnings) == 1


def test_independence_of_tables_is_tested_without_ids():
    table = shuffled()
    x, y = table[["number", "age"]], table[["arm"]]
    found = mm.independence_test(x, y, n_permutations=99, rng=0)
    assert any("'number' only identifies the rows and is left out" in note for note in found.warnings)
    assert found.pvalue == mm.independence_test(x[["age"]], y, n_permutations=99, rng=0).pvalue
    assert mm.independence_test(x[["number"]], y, n_permutations=99, rng=0).pvalue < 0.05
    assert mm.independence_test(["number", "age"], "arm", data=table, n_permutations=99, rng=0).pvalue < 0.05
    joint = mm.joint_independence_test(table.assign(cost=table.age), n_permutations=99, rng=0)
    assert any("'number' only identifies the rows" in note for note in joint.warnings)


def test_monitors_leave_out_ids_in_any_order():
    table = shuffled()
    _, notes = watched(table, [], [])
    assert list(notes) == ["number"]


def test_groups_of_which_there_are_too_many_are_named():
    """'Control' and 'control ' were "3 groups by 'arm'"."""
    table = people().assign(arm=np.tile(["Control", "control ", "new"], ROWS // 3))
    with pytest.raises(mm.errors.InputError, match=r"They are 'Control', 'control ', 'new'\."):
        mm.two_sample_test(table, by="arm", rng=0)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("door", ["two by", "two", "effect", "ask", "independence"])
def test_ids_of_which_a_few_repeat_are_left_out_with_their_number(door, text):
    """Of numbers 3% repeated, and they were compared without a word; texts were left out."""
    table = people(n=1000)
    table["id"] = 5000 + table["id"]
    table = pd.concat([table, table.iloc[:30]]).sample(frac=1, random_state=0, ignore_index=True)
    if text:
        table["id"] = [f"u{each:05}" for each in table["id"]]
    found = DOORS[door](table)
    (said,) = (note for note in found.warnings if "'id'" in note)
    assert said.startswith("'id' identifies the rows, but for ")
    assert " that repeat one, and is left out; to use it, pass kinds={'id': '" in said


def measured(kind, rng, n=1000):
    """Whole numbers that are no ids."""
    return {
        "cents": np.round(100 * np.exp(rng.normal(4, 1.5, n))),
        "people": np.round(np.exp(rng.normal(10, 2, n))),
        "volumes": np.round(rng.normal(1e6, 2e5, n)),
        "any of few": rng.integers(0, 5 * n, n),
        "steps": np.cumsum(rng.integers(1, 400, n))[rng.permutation(n)],
        "ages in days": rng.integers(18 * 365, 80 * 365, n),
    }[kind]


@pytest.mark.parametrize("kind", ["cents", "people", "volumes", "any of few", "steps", "ages in days"])
def test_measurements_of_which_few_repeat_are_no_ids(kind):
    for seed in range(20):
        values = measured(kind, np.random.default_rng(seed))
        assert len(np.unique(values)) >= 0.8 * len(values)
        assert apart_in([{"amount": values, "arm": values % 2}]) == {}


@pytest.mark.parametrize("n", [50, 100, 199, 200, 300, 1000])
def test_whole_numbers_drawn_at_random_are_no_ids(n):
    """In ranges that they may fill by half: of 2000 columns none."""
    rng = np.random.default_rng(n)
    for top in (n, int(1.3 * n), int(1.6 * n), int(1.8 * n), 2 * n):
        for _ in range(400):
            assert apart_in([{"level": rng.integers(0, top, n), "other": np.zeros(n)}]) == {}


def test_numbers_called_ids_that_repeat_are_noted():
    """They were compared like an amount, without a word."""
    rng = np.random.default_rng(5)
    table = {"user_id": rng.integers(0, 60, 120), "cost": rng.normal(size=120), "arm": np.repeat(["a", "b"], 60)}
    (note,) = mm.two_sample_test(table, by="arm", n_permutations=199, rng=0).warnings
    assert note == "'user_id' is compared as a number: if its values only identify users or the like, leave it out."
    assert not mm.two_sample_test(table, by="arm", kinds={"user_id": "number"}, n_permutations=199, rng=0).warnings
    assert not mm.independence_test("user_id", "cost", data=table, n_permutations=199, rng=0).warnings
    few = table | {"user_id": table["user_id"] % 5}
    assert not mm.two_sample_test(few, by="arm", n_permutations=199, rng=0).warnings
