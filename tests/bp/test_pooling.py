"""Rubin's rules against the formulas written out, and draws of gaps against what is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError, ShapeError


def slope(table):
    """Of b on a through ordinary least squares, and its variance."""
    a, b = (np.asarray(table[name], dtype=float) for name in "ab")
    left = a - a.mean()
    found = left @ b / (left @ left)
    rest = b - b.mean() - found * left
    return found, rest @ rest / (len(a) - 2) / (left @ left)


def test_rules_are_those_of_rubin_with_the_freedom_of_barnard_and_rubin():
    estimates, variances = np.array([1.0, 1.4, 0.9, 1.3]), np.array([0.20, 0.25, 0.22, 0.21])
    tables = [{"a": np.full(30, k)} for k in range(4)]
    found = mm.bp.pooled(lambda table: (estimates[table["a"][0]], variances[table["a"][0]]), tables, freedom=28)
    between = estimates.var(ddof=1) * 5 / 4
    total = variances.mean() + between
    share = between / total
    known, seen = 3 / share**2, 29 / 31 * 28 * (1 - share)
    freedom = 1 / (1 / known + 1 / seen)
    assert found.estimate == pytest.approx(1.15)
    assert found.variance == pytest.approx(total)
    assert found.lost == pytest.approx(share)
    assert found.freedom == pytest.approx(freedom)
    low, high = found.interval(0.9)
    assert (low, high) == pytest.approx(student.interval(0.9, freedom, 1.15, np.sqrt(total)))


def test_large_samples_have_the_freedom_of_the_draws_alone():
    tables = [{"a": np.array([value])} for value in (1.0, 2.0, 3.0)]
    found = mm.bp.pooled(lambda table: (table["a"], np.ones(1)), tables, freedom=np.inf)
    share = (4 / 3) / (1 + 4 / 3)
    np.testing.assert_allclose(found.freedom, 2 / share**2)


def test_without_gaps_nothing_is_lost():
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=20), "b": rng.normal(size=20)}
    found = mm.bp.pooled(slope, [table] * 5)
    estimate, variance = slope(table)
    assert (found.estimate, found.variance, found.lost) == pytest.approx((estimate, variance, 0.0))
    assert found.freedom == pytest.approx(20 / 22 * 19)


def test_estimates_and_variances_that_one_has_are_pooled_as_the_refusal_says():
    found = mm.bp.pooled(tuple, zip([1.0, 2.0, 1.5], [0.1, 0.1, 0.2], strict=True), freedom=float("inf"))
    assert found.estimate == pytest.approx(1.5)
    assert found.sd() ** 2 == pytest.approx(0.4 / 3 + 4 / 3 * 0.25)


def test_what_cannot_be_pooled_is_refused():
    tables = [{"a": np.zeros(5)}] * 2
    with pytest.raises(ParameterError, match="at least two"):
        mm.bp.pooled(slope, tables[:1])
    with pytest.raises(ParameterError, match="one table; expected a list"):
        mm.bp.pooled(slope, pd.DataFrame(tables[0]))
    with pytest.raises(ParameterError, match=r"expected the function first: bp.pooled\(function, tables\)"):
        mm.bp.pooled(tables, slope)
    with pytest.raises(ParameterError, match=r"function is a list; expected a function .* zip\(estimates, variances\)"):
        mm.bp.pooled([1.0, 2.0, 1.5], [0.1, 0.1, 0.2])
    with pytest.raises(KindError, match="function's estimates"):
        mm.bp.pooled(lambda _: ("a", 1.0), tables)
    with pytest.raises(ShapeError, match="expected a pair"):
        mm.bp.pooled(lambda _: 1.0, tables)
    with pytest.raises(ShapeError, match="of one shape"):
        mm.bp.pooled(lambda _: (np.zeros(2), 1.0), tables)
    with pytest.raises(ParameterError, match="not finite"):
        mm.bp.pooled(lambda _: (np.nan, 1.0), tables)
    with pytest.raises(ParameterError, match="freedom is 0"):
        mm.bp.pooled(lambda _: (1.0, 1.0), tables, freedom=0)


def gaps(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    table = pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "k": np.where(a > 0, "up", "down"), "other": 1})
    return table.assign(b=table["b"].mask(rng.random(n) < 0.15), k=table["k"].mask(rng.random(n) < 0.15))


@pytest.fixture(scope="module")
def model():
    return mm.bp.DependencyNetwork().fit(gaps()[["a", "b", "k"]])


def test_draws_fill_gaps_only_each_in_its_own_way(model):
    table = gaps()
    drawn = model.impute(table, draws=3, rng=0)
    assert len(drawn) == 3
    for each in drawn:
        assert not each.isna().any(axis=None)
        assert list(each.columns) == list(table.columns)
        pd.testing.assert_frame_equal(each.where(table.notna()), table)
        assert set(each["k"]) == {"up", "down"}
    assert not drawn[0].equals(drawn[1])
    assert drawn[2].equals(model.impute(table, draws=3, rng=0)[2])


def test_what_was_learned_is_as_uncertain_as_its_rows(model):
    """Means of b, drawn in many rows where a is known, differ by the error of the regression and not only by noise."""
    asked = {"a": np.zeros(2000), "b": np.full(2000, np.nan)}
    means = [each["b"].mean() for each in model.impute(asked, draws=40, rng=0)]
    # The standard error of the mean of b at a = 0 from 170 rows is 1 / sqrt(170) = .077, that of 2000 draws .022.
    assert 0.04 < np.std(means) < 0.15


def test_a_model_that_is_learned_once_refuses_draws():
    with pytest.raises(KindError, match="DependencyNetwork"):
        mm.KernelGraph([("a", "b")]).fit(gaps()[["a", "b"]].dropna()).impute({"a": [1.0], "b": [np.nan]}, draws=2)


@pytest.mark.slow
def test_gaps_that_are_not_at_random_shift_means_and_a_shift_says_by_how_much():
    """As the documentation says, in fresh tables: of 40, a right interval of 90% holds in at least 29 with probability
    .999. Values are missing with odds that grow with them by e for each standard deviation.
    """
    held = {"at random": 0, "larger ones": 0, "shifted": 0, "any shift": 0}
    for seed in range(40):
        rng = np.random.default_rng(50_000 + seed)
        a, b, noise = rng.normal(size=(3, 300))
        y = np.sqrt(0.1) * (a + b) + np.sqrt(0.8) * noise
        for why in ("at random", "larger ones"):
            gap = rng.random(300) < (0.3 if why == "at random" else 1 / (1 + np.exp(1.03 - y)))
            table = {"a": a, "b": b, "y": np.where(gap, np.nan, y)}
            tables = mm.bp.DependencyNetwork().fit(table).impute(table, draws=20, rng=seed)
            ends = []
            for shift in (0.0, 0.5, 1.0):
                moved = [each["y"] + shift * gap for each in tables]
                found = mm.bp.pooled(
                    lambda each: (each["y"].mean(), each["y"].var(ddof=1) / 300), [{"y": m} for m in moved]
                )
                ends.append(found.interval(0.9))
            held[why] += ends[0][0] <= 0 <= ends[0][1]
        held["shifted"] += ends[1][0] <= 0 <= ends[1][1]
        held["any shift"] += min(low for low, _ in ends) <= 0 <= max(high for _, high in ends)
    assert held["at random"] >= 29
    assert held["larger ones"] <= 15
    assert held["shifted"] >= 29
    assert held["any shift"] >= 36
