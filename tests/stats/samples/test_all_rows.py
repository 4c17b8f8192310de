"""P-values of columns, each by all rows that have it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import meanmap as mm

FAILURE_RATE = 1e-5


def arms(rng, n, shift=0.0, gaps=(0.5, 0.5)):
    """Ages, of which many are missing, and what was spent; the arms differ in the second."""
    arm = np.arange(n) % 2
    table = pd.DataFrame({"arm": np.where(arm, "new", "control"), "age": rng.normal(40, 9, n)})
    table["spent"] = rng.normal(size=n) + shift * arm
    table["town"] = rng.choice(["Bonn", "Köln", "Ulm"], n)
    table.loc[rng.random(n) < np.where(arm, *gaps[::-1]), "age"] = np.nan
    return table


@pytest.mark.parametrize("of", ["two", "several", "large"])
def test_gaps_of_one_column_cost_no_power_in_another(of):
    """Half of all rows were not used."""
    n = 60_000 if of == "large" else 1000
    table = arms(np.random.default_rng(21), n, 3.4 / np.sqrt(n) * 2)
    test = mm.k_sample_test if of == "several" else mm.two_sample_test
    found = test(table, by="arm", missing="drop", rng=0).column_pvalues(rng=0)
    complete = test(table.dropna(), by="arm", rng=0).column_pvalues(rng=0)
    assert found["spent"] < complete["spent"] / 2
    assert set(found) == set(complete)


def test_without_gaps_nothing_changes():
    table = arms(np.random.default_rng(22), 400, 0.3, (0.0, 0.0))
    whole, other = (mm.two_sample_test(table, by="arm", missing=way, rng=0) for way in ("raise", "drop"))
    assert whole.column_pvalues(rng=1) == other.column_pvalues(rng=1)


def test_results_are_saved_with_all_rows(tmp_path):
    result = mm.two_sample_test(arms(np.random.default_rng(23), 300), by="arm", missing="drop", rng=0)
    mm.save(result, tmp_path / "result")
    assert mm.load(tmp_path / "result").column_pvalues(rng=1) == result.column_pvalues(rng=1)


@pytest.mark.parametrize("gaps", [(0.5, 0.5), (0.2, 0.7)])
def test_the_level_of_columns_with_gaps(gaps):
    """Marginal p-values of 200 tables without any difference in values, by binomial bounds; also if values of one
    sample are missing more often.
    """
    from meanmap.stats.samples.all_rows import AllRows
    from meanmap.stats.samples.comparing import by_name
    from meanmap.stats.samples.own_rows import own_rows

    rng, rejected, smallest = np.random.default_rng([24, int(10 * gaps[0])]), 0, 0
    for _ in range(200):
        table = arms(rng, 120, 0.0, gaps)
        samples = {f"arm={name}": part.dropna() for name, part in table.groupby("arm")}
        own = own_rows([table], list(samples), "drop", None, "arm")
        columns = {name: by_name(part.drop(columns="arm"), name) for name, part in samples.items()}
        found = AllRows.of(own, columns).pvalues(199, rng)
        assert set(found) == {"age", "spent", "town"}
        rejected += found["age"] <= 0.05  # adjusted for three columns
        smallest += min(found.values()) <= 0.05
    for count in (rejected, smallest):
        assert count <= binom.ppf(1 - FAILURE_RATE, 200, 0.05)
    assert smallest >= binom.ppf(FAILURE_RATE, 200, 0.05)


def test_a_column_may_be_constant_in_complete_rows():
    """The plan is known of customers only: in complete rows all have bought."""
    rng = np.random.default_rng(31)
    arm = np.arange(2000) % 2
    bought = rng.random(2000) < np.where(arm, 0.6, 0.4)
    plan = pd.Series(rng.choice(["basic", "plus"], 2000)).where(bought)
    table = pd.DataFrame({"arm": arm.astype(str), "bought": bought, "plan": plan, "spent": rng.normal(size=2000)})
    found = mm.two_sample_test(table, by="arm", missing="drop", rng=0).column_pvalues(rng=0)
    assert set(found) == {"bought", "plan", "spent"}
    assert found["bought"] < 0.01 < found["spent"]
