"""Several samples: which columns differ, between which samples, and by how much."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_ind

import meanmap as mm
from meanmap.stats.samples.comparing import differences

FAILURE_RATE = 1e-5


def arms(rng, n=80, shift=1.0):
    """Three arms; in c the time is longer and more pay."""
    arm = np.repeat(["a", "b", "c"], n)
    third = arm == "c"
    return pd.DataFrame(
        {
            "arm": arm,
            "time": rng.normal(60, 10, 3 * n) + 10 * shift * third,
            "paid": np.where(rng.random(3 * n) < 0.3 + 0.3 * shift * third, "yes", "no"),
            "age": rng.normal(40, 9, 3 * n),
            "site": rng.choice(["north", "south", "east"], 3 * n),
        }
    )


def test_columns_and_pairs_that_differ_are_found():
    table = arms(np.random.default_rng(0))
    result = mm.k_sample_test(table, by="arm", rng=0)
    pvalues = result.column_pvalues(rng=0)
    assert set(pvalues) == {"time", "paid", "age", "site"}
    assert max(pvalues["time"], pvalues["paid"]) < 0.05 < min(pvalues["age"], pvalues["site"])
    clear = {(each.column, each.names) for each in result.differences if each.clear}
    assert clear == {(column, pair) for column in ("time", "paid") for pair in (("arm=a", "arm=c"), ("arm=b", "arm=c"))}
    frame = result.differences.to_frame()
    assert list(frame[["first_sample", "second_sample"]].iloc[0]) in (["arm=a", "arm=c"], ["arm=b", "arm=c"])
    assert len(frame) == result.differences.comparisons == 3 * (1 + 1 + 1 + 3)
    said = json.loads(json.dumps(result.to_dict()))["differences"][0]
    assert said["samples"][1] == "arm=c"


def test_differences_are_those_of_pairs_with_one_correction():
    table = arms(np.random.default_rng(1))[["arm", "time"]]
    found = mm.k_sample_test(table, by="arm", rng=0).differences
    for each in found:
        x, y = (table["time"][table["arm"] == name[-1]] for name in each.names)
        expected = ttest_ind(y, x, equal_var=False).confidence_interval(1 - 0.05 / 3)
        assert (each.first, each.second) == pytest.approx((x.mean(), y.mean()))
        assert (each.difference.low, each.difference.high) == pytest.approx(tuple(expected))


def test_print_and_page_say_which():
    table = arms(np.random.default_rng(2))
    result = mm.k_sample_test(table, by="arm", rng=0)
    text = str(result)
    assert "column     mean time: " in text
    assert " in arm=a, " in text
    assert " in arm=c, a difference of " in text
    assert "p-values   time 0.00" in text or "p-values   paid 0.00" in text
    assert "intervals  95%, simultaneous for 18 comparisons of 3 pairs of samples" in text
    assert "(of each column and its dependence on others, all samples together; adjusted for 4 columns)" in text
    head = str(result.differences).splitlines()[0].split()
    assert head[:4] == ["what", "samples", "first", "second"]
    (compared, pvalues) = result._tables()
    assert pvalues[0][0] == "column"
    assert {row[1] for row in compared[1:]} == {f"arm={x} and arm={y}" for x, y in ("ab", "ac", "bc")}


def test_two_samples_have_the_same_answers_as_by_the_two_sample_test():
    table = arms(np.random.default_rng(3))
    table = table[table["arm"] != "b"]
    several, two = mm.k_sample_test(table, by="arm", rng=0), mm.two_sample_test(table, by="arm", rng=0)
    assert several.column_pvalues(rng=1) == two.column_pvalues(rng=1)
    assert str(several.differences) == str(two.differences)
    assert not differences({"t": [1.0]}, {"u": [1.0]})


def test_columns_that_do_not_differ_are_rarely_rejected():
    rng, trials = np.random.default_rng(4), 200
    rejected = clear = 0
    for trial in range(trials):
        table = arms(rng, 20, 0.0)[["arm", "time", "paid", "age"]]
        result = mm.k_sample_test(table, by="arm", n_permutations=19, rng=trial)
        rejected += min(result.column_pvalues(rng=trial, n_permutations=99).values()) <= 0.05
        clear += any(each.clear for each in result.differences)
    assert binomtest(rejected, trials, 0.05, alternative="greater").pvalue > FAILURE_RATE
    assert binomtest(clear, trials, 0.05, alternative="greater").pvalue > FAILURE_RATE


def test_relations_between_columns_are_found_in_one_of_three_samples():
    rng = np.random.default_rng(5)
    x, y, other = rng.normal(size=(3, 300))
    y[200:] = x[200:] + 0.3 * y[200:]
    samples = [pd.DataFrame({"x": x, "y": y / y.std(), "z": other})[k : k + 100] for k in (0, 100, 200)]
    pvalues = mm.k_sample_test(samples, rng=0).column_pvalues(rng=0)
    assert max(pvalues["x"], pvalues["y"]) < 0.05 < pvalues["z"]


def test_results_are_saved(tmp_path):
    result = mm.k_sample_test(arms(np.random.default_rng(6), 20), by="arm", rng=0)
    again = mm.load(mm.save(result, tmp_path / "r.meanmap"))
    assert again.column_pvalues(rng=0) == result.column_pvalues(rng=0)
    assert str(again) == str(result)


def test_columns_are_tested_within_strata():
    table = arms(np.random.default_rng(7), 20)
    result = mm.k_sample_test(table, by="arm", within="site", n_permutations=99, rng=0)
    assert set(result.column_pvalues(n_permutations=99)) == set(result.columns)
