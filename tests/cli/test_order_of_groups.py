"""Which group of a file comes first, so that differences are those to it."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app


def answer(*typed):
    found = CliRunner().invoke(app, ["test", "two-sample", *typed, "--permutations", "99", "--seed", "0", "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(
    ("labels", "said", "first"),
    [
        (("blue", "control"), [], "control"),
        (("blue", "green"), [], "blue"),
        (("blue", "green"), ["--kinds", "arm=green<blue"], "green"),
        (("blue", "green", "red"), ["--kinds", "arm=red<green<blue"], "red"),
    ],
)
def test_a_control_or_a_declared_group_comes_first(labels, said, first, gap, tmp_path):
    """A file without gaps had "control minus blue", and one with gaps "blue minus control"."""
    rng = np.random.default_rng(0)
    arm = np.repeat(labels, 40)
    table = pd.DataFrame(
        {"arm": arm, "age": rng.normal(size=len(arm)) + (arm == first), "cost": rng.normal(size=len(arm))}
    )
    table.loc[[3] if gap else [], "cost"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    found = answer(str(tmp_path / "a.csv"), "--by", "arm", *said)
    ages = [each for each in found["differences"] if each["column"] == "age" and f"arm={first}" in each["samples"]]
    assert len(ages) == len(labels) - 1
    assert {each["samples"][0] for each in ages} == {f"arm={first}"}
    assert all(each["estimate"] < 0 for each in ages)


@pytest.mark.parametrize("test", [mm.two_sample_test, mm.two_sample_effect])
def test_declared_categories_order_the_groups(test):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"arm": np.tile(["blue", "green"], 40), "age": rng.normal(size=80), "cost": rng.normal(size=80)}
    )
    ordered = table.assign(arm=pd.Categorical(table.arm, ["green", "blue"]))
    for found in (test(ordered, by="arm", rng=0), test(table, by="arm", kinds={"arm": ["green", "blue"]}, rng=0)):
        assert "differences are arm=blue minus arm=green" in str(found)
    assert "differences are arm=green minus arm=blue" in str(test(table, by="arm", rng=0))


@pytest.mark.parametrize("gap", [False, True])
def test_groups_written_in_two_ways_are_noted_once(gap, tmp_path):
    """A file without gaps had three groups without a word."""
    rng = np.random.default_rng(1)
    arm = np.repeat(["old", "new", "New"], [40, 30, 10])
    table = pd.DataFrame({"arm": arm, "age": rng.normal(size=80), "cost": rng.normal(size=80)})
    table.loc[[3] if gap else [], "cost"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    ran = CliRunner().invoke(
        app, ["test", "two-sample", str(tmp_path / "a.csv"), "--by", "arm", "--permutations", "99"]
    )
    assert ran.exit_code == 0
    assert ran.output.count("'New' and 'new', which differ only in capitals") == 1


def test_a_refusal_of_three_groups_says_which_are_alike():
    table = pd.DataFrame({"arm": ["old", "new", "New "] * 10, "age": range(30)})
    with pytest.raises(ValueError, match="'New ' and 'new', which differ only in spaces or capitals"):
        mm.two_sample_test(table, by="arm", rng=0)
