"""Correlations that changed: named where they did, rarely elsewhere, with intervals that hold."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.stats.result import Interval
from meanmap.stats.samples.drift_columns import Rows, moved_columns
from meanmap.stats.samples.drift_words import in_one_line
from meanmap.stats.samples.relations import Relation, changed_relations


def rows(rng, n, correlation):
    z = rng.normal(size=(n, 4))
    b = correlation * z[:, 0] + np.sqrt(1 - correlation**2) * z[:, 1]
    return {"a": np.exp(z[:, 0]), "b": b, "c": z[:, 2], "d": z[:, 3]}


def test_a_lost_correlation_is_named_and_its_interval_holds():
    """Spearman's correlation of a normal pair is 6/π asin(ρ/2); the interval may miss in 5 of 100 tables at most."""
    truth = -6 / np.pi * np.arcsin(0.8 / 2)
    held = []
    for seed in range(200):
        rng = np.random.default_rng([5, seed])
        (found,) = changed_relations(rows(rng, 400, 0.8), rows(rng, 150, 0.0), "abcd")
        assert found.pair == ("a", "b")
        held.append(found.low < truth < found.high)
    assert np.count_nonzero(held) >= binom.ppf(1e-4, len(held), 0.95)


def test_nothing_is_named_without_a_change():
    """More than two of 2000 tables have a chance of 1e-3 at most."""
    named = 0
    for seed in range(2000):
        rng = np.random.default_rng([6, seed])
        named += bool(changed_relations(rows(rng, 60, 0.9), rows(rng, 40, 0.9), "abcd"))
    assert named <= 2


def test_units_order_and_columns_that_are_no_numbers_do_not_matter():
    rng = np.random.default_rng(7)
    first, second = rows(rng, 300, 0.9), rows(rng, 300, 0.1)
    (plain,) = changed_relations(first, second, "abcd")
    words = np.where(rng.random(300) < 0.5, "p", "q")
    other, another = ({**each, "b": 1e6 * each["b"], "k": words, "s": np.ones(300)} for each in (first, second))
    assert changed_relations(other, another, ["s", "k", "d", "c", "a", "b"]) == [plain]


def test_a_monitor_names_the_correlation_that_was_lost():
    """It named the means of both columns, which had not changed."""
    rng = np.random.default_rng(8)
    monitor = mm.DriftMonitor.of(pd.DataFrame(rows(rng, 1500, 0.8)), rng=0)
    for _ in range(6):
        monitor = monitor.step(pd.DataFrame(rows(rng, 600, 0.0)))
        if monitor.alarm:
            break
    first, *others = monitor.to_dict()["compared"][0]["columns"]
    assert first["what"] == "rank correlation of a and b"
    assert first["difference"]["high"] < -0.6
    assert not any(each["what"].startswith(("sd", "median")) for each in others)
    assert "rank correlation of a and b" in str(monitor)


def test_a_mean_beside_a_lost_correlation_keeps_its_own_pvalue():
    """The row "mean b" had the p-value .002 of its relation to a, which alone had changed."""
    rng = np.random.default_rng(6)
    reference, batch = ({n: np.asarray(c) for n, c in rows(rng, *n).items()} for n in ((800, 0.8), (400, 0.1)))
    found = moved_columns(Rows(reference), Rows(batch), 0)
    assert found[0]["what"] == "rank correlation of a and b"
    assert found[0]["pvalue"] <= 0.01
    assert min(row["pvalue"] for row in found[1:]) > 0.01
    assert in_one_line(found) == "rank correlation of a and b {} → {}".format(*found[0]["cells"][:2])


@pytest.mark.parametrize("by", [False, True])
def test_a_two_sample_test_names_a_lost_correlation(by, tmp_path):
    """Only means that had not changed were shown."""
    rng = np.random.default_rng(7)
    samples = rows(rng, 500, 0.8), rows(rng, 300, 0.1)
    if by:
        both = {name: np.concatenate([sample[name] for sample in samples]) for name in samples[0]}
        result = mm.two_sample_test(both | {"arm": np.repeat(["p", "q"], (500, 300))}, by="arm", rng=0)
    else:
        result = mm.two_sample_test(*samples, rng=0)
    names = ("arm=p", "arm=q") if by else ("x", "y")
    (found,) = result.differences.relations
    assert found.pair == ("a", "b")
    ends = "rank correlation of a and b: {1:} in {4:}, {2:} in {5:}, a difference of {3:}".format(
        *found.cells(), *names
    )
    assert ends in str(result)
    assert str(result.differences).splitlines()[1].startswith("rank correlation of a and b")
    assert "The rank correlation of a and b is" in result.page(tmp_path / "page.html").read_text()
    assert result.to_dict()["correlations"] == [found.to_dict()]
    mm.save(result, tmp_path / "result")
    assert str(mm.load(tmp_path / "result")) == str(result)
    same = mm.two_sample_test(samples[0], rows(rng, 300, 0.8), rng=0)
    assert same.differences.relations == ()
    assert "correlations" not in same.to_dict()


def test_means_that_differ_by_rounding_are_shown_with_four_digits():
    """The means of a column and of its reverse were shown as 0.1973289759219692 and 0.19732897592196916."""
    column = np.random.default_rng(0).normal(size=60)
    table = {"a": column, "b": np.arange(60.0)}
    result = mm.two_sample_test(table, {"a": column[::-1], "b": np.arange(60.0)}, n_permutations=19, rng=0)
    (found,) = (each for each in result.differences if each.column == "a")
    assert all(len(cell) <= 7 for cell in found.cells()[1:3])


def test_correlations_that_are_the_same_when_printed_are_not_named():
    """Revenue and whether there was any: 0.9996 and 0.9993, printed as a difference of -0.00 (-0.00 to -0.00)."""
    rng = np.random.default_rng(4)
    tables = []
    for share in (0.08, 0.1):
        some = rng.random(20_000) < share
        tables.append({"revenue": np.where(some, rng.lognormal(3, 1, 20_000), 0), "some": some.astype(float)})
    assert changed_relations(*tables, ["revenue", "some"]) == []


def test_no_number_is_printed_with_the_sign_of_nothing():
    relation = Relation(("a", "b"), -0.0004, 0.0, -0.004, -0.0001)
    assert relation.cells()[1:] == ("0.00", "0.00", "0.00 (0.00 to 0.00)")
    assert str(Interval(-0.0, -0.0, 0.0)) == "0 (0 to 0)"
