"""Numbers that may stand for missing values are told of, and ordinary columns are not."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.missing import settle
from meanmap.core.tables.sentinels import Sentinels

RNG = np.random.default_rng(0)
AGE = RNG.normal(36, 12, 400).clip(18, 78).round(1)


def coded(column, *codes, times=12):
    column = np.array(column, float)
    for k, code in enumerate(codes):
        column[k * times : (k + 1) * times] = code
    return column


@pytest.mark.parametrize("codes", [[-999], [-99], [-1e9], [9999], [1e9], [99999], [-999, -998], [-999, 9999], [-12345]])
def test_a_code_far_from_all_other_values_is_found(codes):
    found = Sentinels.of(coded(AGE, *codes))
    assert found is not None
    assert (found.values, found.counts) == (tuple(sorted(codes)), (12,) * len(codes))
    assert (found.low, found.high, found.number) == (AGE[12 * len(codes) :].min(), AGE[12 * len(codes) :].max(), 400)


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (RNG.uniform(size=300), -1),
        (RNG.integers(0, 2, 300), 99),
        (RNG.integers(1, 6, 300), 99),
        (RNG.poisson(2, 300), -999),
        (RNG.normal(10, 9, 300), -99.0),
        (RNG.lognormal(6, 1, 300).round(2), -99999),
        (2000 + RNG.integers(0, 20, 300), 0),
    ],
)
def test_codes_of_other_columns_are_found(column, code):
    assert Sentinels.of(column) is None
    found = Sentinels.of(coded(column, code))
    assert found is not None
    assert found.values == (code,)


def ordinary():
    """Columns that are no reason for doubt, many of each kind."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        yield rng.standard_cauchy(300)
        yield rng.standard_cauchy(300).round()
        yield rng.zipf(1.5, 300)
        yield rng.geometric(0.02, 300)
        yield rng.lognormal(3, 2, 300).round()
        yield np.where(rng.uniform(size=300) < 0.7, 0, rng.poisson(4, 300))
        yield np.where(rng.uniform(size=300) < 0.7, 0, rng.lognormal(7, 1, 300).round(2))
        yield rng.uniform(size=300) < rng.uniform(0.01, 0.5)
        yield rng.integers(-1, 2, 300)
        yield rng.integers(1, 6, 300)
        yield rng.integers(0, 100, 300)
        yield np.minimum(rng.exponential(40, 300), 100.0)
        yield rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], 300)
        yield np.r_[rng.normal(size=150), rng.normal(50, 1, 150)]
        yield rng.integers(1990, 2026, 300)
        yield rng.choice([0.0, 100.0, 1000.0], 300)


def ordinary_times():
    """Birthdays, log files of a day, school years and centuries, none of which is a reason for doubt."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        yield np.datetime64("1900-01-01") + rng.integers(0, 40_000, 300)
        yield np.datetime64("1970-01-01") + rng.integers(0, 9_000, 300)
        yield np.datetime64("2026-03-01T00:00:00") + rng.integers(0, 86_400, 300)
        yield (2000 + rng.integers(0, 25, 300) - 1970).astype("M8[Y]").astype("M8[D]")
        yield np.datetime64("1500-01-01") + rng.integers(0, 180_000, 300)
        yield np.datetime64("2026-01-01") + rng.exponential(300, 300).astype(int)


@pytest.mark.parametrize("code", ["9999-12-31", "1900-01-01", "1970-01-01", "0001-01-01", "1899-12-30", "1815-07-04"])
def test_days_that_stand_for_nothing_are_found(code):
    days = np.datetime64("2019-05-01") + RNG.integers(0, 2000, 300)
    assert Sentinels.of(days) is None
    days[:6] = np.datetime64(code)
    found = Sentinels.of(days)
    assert found is not None
    assert found.times
    assert str(found) == f"{code} in 6 of 300 rows (2%)"
    zoned = pd.Series(days.astype("M8[us]")).dt.tz_localize("UTC")
    for column in (days, days.astype("M8[us]"), days.tolist(), [*days.tolist(), None], pl.Series(days), zoned):
        (note,) = doubts([{"day": column}], ["x"])
        assert f"holds {code} in 6 of 300 rows (2%), far from all other values, 2019-05-" in note
        assert note.endswith(f"and it counts as a time: if it stands for a missing value, pass missing=['{code}'].")
        (kept,), (left,) = settle([{"day": column}], ["x"], [code])
        assert left.startswith(f"{len(column) - 294} of {len(column)} rows of x were left out")
        assert doubts([kept], ["x"]) == ()
    assert f"far from all others: {code} in 6 of 300" in str(mm.Schema.of({"day": days}))


def test_ordinary_columns_are_let_be():
    fired = [column for column in ordinary_times() if Sentinels.of(column) is not None]
    assert not fired, fired[0]
    fired = [column for column in ordinary() if Sentinels.of(column) is not None]
    assert not fired, fired[0]


@pytest.mark.parametrize("rows", [100, 300, 1000])
def test_zeros_for_missing_measurements_are_found_and_zeros_of_amounts_and_counts_are_not(rows):
    """Of 60 columns of each kind at most 3 are noted, of measurements at least 45."""
    rng = np.random.default_rng(18_200_019)
    amounts = {
        "costs": lambda: rng.lognormal(5, rng.uniform(0.5, 2), rows),
        "waiting times": lambda: rng.exponential(50, rows),
        "rain": lambda: rng.gamma(2, 5, rows),
        "shares": lambda: rng.uniform(size=rows),
        "counts": lambda: rng.poisson(rng.uniform(1, 20), rows),
        "doses": lambda: rng.choice([50.0, 100.0], rows),
        "many doses": lambda: rng.choice(np.arange(50.0, 550.0, 50.0), rows),
        "cut off": lambda: np.maximum(rng.normal(10, 10, rows), 0),
    }
    for name, draw in amounts.items():
        columns = [np.where(rng.uniform(size=rows) < rng.uniform(0, 0.5), 0, draw()) for _ in range(60)]
        assert sum(Sentinels.zeros(column) is not None for column in columns) <= 3, name
    for spread in (5, 10):
        columns = [coded(rng.normal(50, spread, rows), 0, times=15 * rows // 100) for _ in range(60)]
        assert sum(Sentinels.zeros(column) is not None for column in columns) >= 45


def test_the_note_on_zeros_is_of_their_column_alone():
    """A treatment has zeros, too."""
    age = coded(np.random.default_rng(0).normal(50, 10, 400), 0, times=60)
    table = pd.DataFrame({"age": age, "t": np.arange(400) % 2, "y": age + np.arange(400.0)})
    arrows = [("age", "t"), ("age", "y"), ("t", "y")]
    found = mm.bp.BayesianNetwork(arrows).effect(table, "y", of="t", from_=0, to=1, rng=0)
    (note,) = [each for each in found.notes if "holds 0" in each]
    assert note.startswith("column 'age' of data holds 0 in 60 of 400 rows (15%) but nothing between 0 and ")
    assert (
        "if it stands for a missing value, replace it in this column alone, such as .replace(0, float('nan'))" in note
    )
    assert "far from all others: 0 in 60 of 400 rows" in str(mm.Schema.of(table))


def test_too_few_values_and_columns_of_one_value_say_nothing():
    for column in ([1.0, 2.0, -999.0], [-999.0] * 30, [5.0] * 20 + [-999.0], [np.nan] * 20, [np.inf] * 30, []):
        assert Sentinels.of(np.array(column)) is None


def test_the_sentence_names_column_value_count_and_what_to_type():
    (note,) = doubts([{"age": coded(AGE, -999)}, {"age": AGE}], ["x", "y"])
    assert note == (
        f"column 'age' of x and y holds -999 in 12 of 800 rows (1.5%), far from all other values, {AGE.min():g} to "
        f"{AGE.max():g}, and it counts as a number: if it stands for a missing value, pass missing=[-999]."
    )


@pytest.mark.parametrize(
    "sample",
    [
        coded(AGE, -999),
        coded(AGE, -999)[:, None],
        coded(AGE, -999).tolist(),
        pd.Series(coded(AGE, -999)),
        pd.DataFrame({"age": coded(AGE.round(), -999)}).astype("Int64"),
        {"age": [None, *coded(AGE, -999).tolist()]},
        [[value] for value in coded(AGE, -999).tolist()],
    ],
)
def test_samples_of_all_kinds_are_looked_at(sample):
    (note,) = doubts([sample], ["x"])
    assert "holds -999 in 12 of 400 rows" in note


def test_other_things_than_columns_of_numbers_have_none():
    for sample in ([[1.0], [1.0, 2.0]], ["a"] * 30, [{"a"}] * 30, {"a": ["-999"] * 30}, np.zeros((30, 2, 2)), []):
        assert doubts([sample], ["x"]) == ()
    assert doubts([{"zip": coded(AGE, -999)}], ["x"], {"zip": "label"}) == ()


def told(ask):
    """All that a function says in warnings and notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ask()
    said = [str(each.message) for each in caught]
    for name in ("warnings", "notes"):
        said += getattr(found, name, ())
    said += getattr(getattr(found, "report", None), "notes", ())
    return [each for each in said if "holds -999 in" in each]


N = 60
TABLE = {"age": coded(AGE[:N], -999, times=4), "pay": AGE[:N] + RNG.normal(size=N), "size": RNG.normal(size=N)}
OTHER = {name: column[::-1] + 0.1 for name, column in TABLE.items()} | {"age": TABLE["age"][::-1]}
ASKED = {
    "two samples": lambda t, o: mm.two_sample_test(t, o, n_permutations=50, rng=0),
    "k samples": lambda t, o: mm.k_sample_test([t, o], n_permutations=50, rng=0),
    "effect": lambda t, o: mm.two_sample_effect(t, o, rng=0),
    "effects": lambda t, o: mm.stats.k_sample_effect([t, o], rng=0),
    "closeness": lambda t, o: mm.closeness_test(t, o, rng=0),
    "independence": lambda t, o: mm.independence_test(t["age"], t["pay"], n_permutations=50, rng=0),
    "dependence": lambda t, o: mm.stats.independence_effect(t["age"], t["pay"], rng=0),
    "joint": lambda t, o: mm.joint_independence_test(t, n_permutations=50, rng=0),
    "conditional": lambda t, o: mm.conditional_independence_test(t["age"], t["pay"], t["size"], rng=0),
    "ask": lambda t, o: mm.test("age ~ pay", t, n_permutations=50, rng=0),
    "condition": lambda t, o: mm.condition(t["age"], t["pay"]),
    "embed": lambda t, o: mm.embed(t),
    "learn_kernel": lambda t, o: mm.learn_kernel(t, rng=0),
    "pc": lambda t, o: mm.pc(t, rng=0),
    "chow_liu": lambda t, o: mm.chow_liu(t),
    "graph": lambda t, o: mm.KernelGraph([("age", "pay"), ("pay", "size")]).fit(t).query({"pay": 36.0}),
    "network": lambda t, o: mm.bp.BayesianNetwork([("age", "pay")]).fit(t),
    "dependency": lambda t, o: mm.bp.DependencyNetwork([]).fit(t),
    "monitor": lambda t, o: mm.DriftMonitor.of(t, rng=0),
    "batch": lambda t, o: mm.DriftMonitor.of(t, rng=0).step(o),
    "bet": lambda t, o: mm.stats.TwoSampleBet.of(t, o, rng=0),
    "Gaussian process": lambda t, o: ep.models.gp_classification(t, TABLE["size"] > 0, kernel=mm.kernels.RBF(9.0)),
    "linear model": lambda t, o: ep.models.logistic_regression(t, TABLE["size"] > 0),
    "estimator": lambda t, o: mm.estimators.ConditionalMeanRegressor().fit(pd.DataFrame(t), TABLE["size"]),
}


@pytest.mark.parametrize("name", ASKED)
def test_whatever_takes_its_units_from_data_tells_of_them(name):
    assert told(lambda: ASKED[name](TABLE, OTHER)), name


def test_the_schema_shows_them():
    assert "; far from all others: -999 in 4 of 60 rows (6.7%), for a missing value?" in str(mm.Schema.of(TABLE))


def test_a_margin_in_standard_deviations_is_that_of_the_other_values():
    """A shift of one standard deviation is not close, whatever stands for missing ages; without a move it is."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(36, 12, (2, 600))
    gap = rng.uniform(size=600) < 0.06
    far = mm.closeness_test(np.where(gap, -999, x), np.where(gap, -999, y + 12), margin=0.2, rng=0)
    assert far.pvalue > 0.9
    assert mm.closeness_test(np.where(gap, -999, x), np.where(gap, -999, y), margin=0.4, rng=0).pvalue < 0.01
    shift = mm.two_sample_effect(np.where(gap, -999, x), np.where(gap, -999, y + 6), rng=0).shift
    plain = mm.two_sample_effect(x, y + 6, rng=0).shift
    assert shift.estimate == pytest.approx(plain.estimate, rel=0.15)


def test_codes_of_one_digit_that_many_rows_have_are_reported_near_the_others_too():
    """-9 in a tenth of the rows beside a normal column was no code, as it lies less than a range of the others away."""
    numbers = np.random.default_rng(0).normal(size=500)
    found = Sentinels.of(np.r_[numbers, [-9.0] * 50])
    assert (found.values, found.counts) == ((-9.0,), (50,))
    assert Sentinels.of(np.r_[numbers, [-9.0] * 2]) is None  # as far out, seldom
    assert Sentinels.of(np.r_[numbers, [-10.0] * 50]) is None  # no such code
    clipped = np.maximum(numbers, -1)
    assert Sentinels.of(clipped) is None
    assert Sentinels.of(np.random.default_rng(1).integers(-1, 6, 500).astype(float)) is None


def test_minus_one_beside_ages_is_a_code_and_beside_zeros_is_a_number():
    ages = np.random.default_rng(0).normal(45, 12, 800).round().clip(18, 85)
    assert Sentinels.of(np.r_[ages, [-1.0] * 40]).values == (-1.0,)
    assert Sentinels.of(np.r_[ages, [-1.0] * 3]) is None
    scores = np.random.default_rng(1).integers(0, 6, 800).astype(float)
    assert Sentinels.of(np.r_[scores, [-1.0] * 40]) is None
    assert Sentinels.of(np.r_[scores[scores > 0], [-1.0] * 40]).values == (-1.0,)


def test_nines_beside_yes_and_no_are_codes():
    for answers in ([0.0, 1.0], [1.0, 2.0]):
        assert Sentinels.of(np.r_[answers * 40, [9.0] * 6]).values == (9.0,)
        assert Sentinels.of(np.r_[answers * 40, [8.0, 9.0] * 6]).values == (8.0, 9.0)
    assert Sentinels.of(np.r_[[1.0, 2.0, 3.0] * 40, [9.0] * 6]) is None
    assert Sentinels.of(np.r_[[0.0, 1.0] * 40, [3.0] * 6]) is None


@pytest.mark.parametrize(
    ("low", "high", "codes"),
    [
        (18, 85, [99]),
        (18, 85, [88, 99]),
        (18, 85, [97, 98, 99]),
        (1, 90, [-1]),
        (1, 5, [9]),
        (1, 5, [8, 9]),
        (0, 10, [77, 88]),
        (1, 4, [7]),
        (1, 4, [-1]),
        (1, 5, [-2, -1]),
        (1, 7, [-3, -2, -1]),
        (1, 7, [9]),
        (1, 6, [8, 9]),
        (0, 800, [999]),
    ],
)
def test_codes_of_whole_numbers_stand_apart_by_missing_whole_numbers(low, high, codes):
    numbers = np.random.default_rng(3).integers(low, high, 600, endpoint=True).astype(float)
    numbers[:2] = low, high
    for times in (20, 40):
        found = Sentinels.of(np.r_[numbers, np.repeat([float(code) for code in codes], times)])
        assert found is not None
        assert (found.values, found.counts) == (tuple(sorted(codes)), (times,) * len(codes))
    assert Sentinels.of(np.r_[numbers, [float(codes[0])] * 2]) is None


def test_whole_numbers_apart_that_are_no_codes_are_let_be():
    """Tails, other whole numbers, cylinders, working days and weeks, shops, years of school, and half of the rows."""
    ages = np.arange(18.0, 86.0).repeat(9)
    assert Sentinels.of(np.r_[ages, [99.0] * 3]) is None
    assert Sentinels.of(np.r_[ages, [95.0] * 25]) is None
    assert Sentinels.of(np.r_[ages, 86.0, [88.0] * 25]) is None
    assert Sentinels.of(np.r_[[3.0, 4.0, 5.0, 6.0] * 20, [8.0] * 20]) is None
    assert Sentinels.of(np.r_[[1.0, 2.0, 3.0, 4.0, 5.0] * 20, [7.0] * 20]) is None
    assert Sentinels.of(np.r_[[1.0, 2.0, 3.0, 4.0] * 20, [7.0] * 30]) is None
    assert Sentinels.of(np.r_[[12.0, 14.0, 15.0, 16.0] * 20, [8.0] * 20]) is None
    assert Sentinels.of(np.r_[[1.0, 3.0, 6.0, 8.0] * 20, [9.0] * 20]) is None
    assert Sentinels.of(np.r_[[-2.0, -1.0, 1.0, 2.0] * 20]) is None
    assert Sentinels.of(np.r_[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0] * 20, [-1.0, -2.0] * 10]) is None
    assert Sentinels.of(np.r_[[1.0, 2.0, 3.0, 4.0, 5.0] * 20, [-2.0] * 20]) is None


def test_counts_and_scores_have_no_codes():
    """Of 4800 columns two at most are named, for one value far out; the last have true centenarians."""
    rng, named = np.random.default_rng(19_000_000), []
    for rows in (60, 300, 1000):
        for _ in range(200):
            p = rng.uniform(0.05, 0.8)
            ages = rng.normal(50, 18, rows).clip(0).round()
            for column in (
                rng.poisson(40 * p, rows),
                rng.poisson(rng.gamma(1.0, 20 * p, rows)),
                rng.geometric(0.1 + p, rows) if p < 0.5 else np.where(rng.random(rows) < p, 0, rng.poisson(9, rows)),
                rng.binomial(rng.integers(4, 120), p, rows),
                rng.binomial(10, rng.beta(p, 1.0, rows)),
                rng.integers(1, 5 + rng.integers(7), rows),
                np.where(rng.random(rows) < 0.1 * p, rng.poisson(80 * p, rows), rng.poisson(5, rows)),
                np.where(rng.random(rows) < 0.1 * p, rng.normal(97, 3, rows).round(), ages),
            ):
                found = Sentinels.of(column.astype(float))
                named += [] if found is None else [found.counts]
    assert named.count((1,)) == len(named) <= 2


def test_the_note_on_a_code_that_is_near_says_what_is_missing_between():
    ages = np.arange(18.0, 86.0).repeat(9)
    (note,) = doubts([{"age": np.r_[ages, [99.0] * 25]}], ["data"])
    assert note == (
        "column 'age' of data holds 99 in 25 of 637 rows (3.9%) but nothing between 85 and 99, and it counts as a "
        "number: if it stands for a missing value, pass missing=[99]."
    )
    (note,) = doubts([{"age": np.r_[ages, [-1.0] * 25]}], ["data"])
    assert "holds -1 in 25 of 637 rows (3.9%) but nothing between -1 and 18, and it counts" in note


@pytest.mark.parametrize("code", [-1.0, -9.0, -999.0])
def test_negative_codes_beside_long_tails_of_positive_numbers(code):
    """However small beside the range, and with zeros, but for -1, which may follow them."""
    income = np.round(np.exp(np.random.default_rng(0).normal(10.0, 0.8, 600)), -2)
    assert Sentinels.of(np.r_[income, [code] * 40]).values == (code,)
    with_zeros = Sentinels.of(np.r_[income, np.zeros(200), [code] * 40])
    assert (with_zeros is not None) == (code < -1)
    assert Sentinels.of(np.r_[income, -100.0, -40.0, [code] * 40]) is None


def test_nines_among_other_values_that_many_rows_have_are_codes():
    """Among incomes. Charm prices are shared by many rows, too, and the last value may be where incomes are capped."""
    rng = np.random.default_rng(12)
    incomes = rng.lognormal(11, 1, 600).round()
    found = Sentinels.in_column(np.r_[incomes, [99_999.0] * 20])
    assert found is not None
    assert (found.values, found.counts) == ((99_999.0,), (20,))
    assert "99999 in 20 of 620 rows (3.2%), at least 5 times as often as any other value from" in found.note("'income'")
    assert Sentinels.nines(np.r_[incomes, [99_999.0] * 9]) is None
    assert Sentinels.nines(np.r_[incomes, [99_998.0] * 20]) is None
    assert Sentinels.nines(np.r_[incomes.clip(max=99_999), [99_999.0] * 20]) is None
    assert Sentinels.nines(rng.choice([499.0, 999.0, 4999.0, 9999.0, 12_999.0], 600)) is None
    assert Sentinels.nines(np.r_[incomes, [9999.0] * 20, [7999.0] * 20, [12_999.0] * 20]) is None
    assert Sentinels.nines(rng.integers(9990, 10_020, 6000).astype(float)) is None
