"""Which columns a monitor watches: in Python those of the command, without ids, row numbers, times and dates."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app

BATCHES = 6
FORMS = {
    "gaps": ("only identifies the rows", "number"),
    "wide gaps": ("only identifies the rows", "number"),
    "text": ("only identifies the rows", "label"),
    "day": ("holds dates or times as text", "time"),
    "when": ("holds times, which differ in every batch,", "time"),
}


def rows(form, start, n, rng):
    place = start + np.arange(n)
    ids = {
        "gaps": 10 * place // 7,
        "wide gaps": 1000 * place + rng.integers(0, 999, n),
        "text": [f"K-{100000 + k}" for k in place],
        "day": [f"{1 + k % 28:02}.{1 + k // 28 % 12:02}.{2000 + k // 336}" for k in place],
        "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(60 * place + rng.integers(0, 59, n), unit="s"),
    }[form]
    return pd.DataFrame({"id": ids, "x": rng.normal(size=n), "y": rng.normal(size=n)})


def tables(form, seed=0):
    rng = np.random.default_rng(seed)
    return rows(form, 0, 400, rng), [rows(form, 400 + 60 * k, 60, rng) for k in range(BATCHES)]


def run(reference, batches, **options):
    monitor = mm.DriftMonitor.of(reference, rng=0, **options)
    for batch in batches:
        monitor = monitor.step(batch)
    return monitor


def note(form):
    what, kind = FORMS[form]
    return f"'id' {what} and is left out; to use it, pass kinds={{'id': '{kind}'}}."


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("form", FORMS)
def test_ids_and_times_raise_no_alarm(form, missing):
    reference, batches = tables(form)
    found = run(reference, batches, missing=missing)
    without = run(reference.drop(columns="id"), [batch.drop(columns="id") for batch in batches], missing=missing)
    assert found.alarms == ()
    assert found.pvalues.tolist() == without.pvalues.tolist()
    assert found.left_out == {"id": note(form)}
    assert str(found).count(note(form)) == 1
    start = mm.DriftMonitor.of(reference, rng=0, missing=missing)
    assert start.notes.count(note(form)) == str(start).count(note(form)) == 1


@pytest.mark.parametrize("form", ["gaps", "when"])
def test_a_declared_column_is_watched(form):
    reference, batches = tables(form)
    found = run(reference, batches, kinds={"id": FORMS[form][1]})
    assert found.left_out == {}
    assert found.alarms


def test_batches_need_no_such_column_and_its_gaps_cost_no_row():
    reference, batches = tables("gaps")
    lost = [batch.assign(id=np.where(np.arange(60) % 2, np.nan, batch.id)) for batch in batches[:3]]
    found = run(reference, [*lost, *(batch.drop(columns="id") for batch in batches[3:])])
    assert found.pvalues.tolist() == run(reference, batches).pvalues.tolist()


def test_a_kernel_of_the_user_strata_and_a_table_of_nothing_else_keep_it():
    reference, batches = tables("gaps")
    assert run(reference, batches[:1], kernel=mm.kernels.RBF(1.0)).left_out == {}
    assert run(reference[["id"]], []).left_out == {}
    sites = reference.assign(id=np.arange(400) // 100)
    assert run(sites, [], within="id").left_out == {}


def test_states_and_saved_monitors_know_it(tmp_path):
    reference, batches = tables("text")
    monitor = mm.DriftMonitor.of(reference, margin=0.5, rng=0)
    both = monitor.step(monitor.state(batches[0])), monitor.step(batches[0])
    # Rows are compared column by column as well, each with half of the false alarms.
    np.testing.assert_allclose(np.minimum(2 * both[0].pvalues, 1), both[1].pvalues, rtol=1e-4)
    plain = mm.DriftMonitor.of(reference, rng=0)
    mm.save(plain, tmp_path / "monitor.mm")
    assert mm.load(tmp_path / "monitor.mm").step(batches[0]).pvalues == plain.step(batches[0]).pvalues


@pytest.mark.parametrize("form", ["gaps", "wide gaps", "text", "day"])
def test_the_command_watches_the_same_columns_and_says_so_in_the_same_words(form, tmp_path):
    reference, batches = tables(form)
    files = [tmp_path / f"b{k}.csv" for k in range(BATCHES)]
    reference.to_csv(tmp_path / "ref.csv", index=False)
    for file, batch in zip(files, batches, strict=True):
        batch.to_csv(file, index=False)

    def answer(*more):
        typed = ["drift", str(tmp_path / "ref.csv"), *map(str, files), "--seed", "0", "--json", *more]
        return json.loads(CliRunner().invoke(app, typed).stdout)

    found = answer()
    what, kind = FORMS[form]
    said = f"'id' {what} and is left out; to use it, pass --kinds id={kind}"
    assert [each for each in found["notes"] if "'id'" in each] == [said]
    assert [each["pvalue"] for each in found["batches"]] == run(reference, batches, missing="drop").pvalues.tolist()
    # Dates as text are refused where they are asked for.
    named = answer("--columns", "id,x,y", *(["--kinds", "id=time"] if form == "day" else []))
    assert not any("is left out" in each for each in named["notes"])
    if kind == "number":
        assert named["alarms"]
