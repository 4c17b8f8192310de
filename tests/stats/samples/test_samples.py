"""Samples are read together: columns by name, one kind each, and in units of their own."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError, KindError, NonFiniteError

FEW = {"n_permutations": 99, "rng": 0}


def shifted(rng, n=60):
    """One column shifted by one, the other wide."""
    x = {"conversion": rng.normal(0, 1, n), "revenue": rng.normal(0, 1000, n)}
    return pd.DataFrame(x), pd.DataFrame({"conversion": rng.normal(1, 1, n), "revenue": rng.normal(0, 1000, n)})


@pytest.mark.parametrize("kernel", [None, "median"])
def test_units_do_not_matter_by_default(kernel):
    x, y = shifted(np.random.default_rng(0))
    plain = mm.two_sample_test(x, y, kernel, **FEW)
    assert plain.pvalue == 0.01
    change = {"conversion": 2.0**20, "revenue": 2.0**-20}
    other = mm.two_sample_test(x * change, y * change, kernel, **FEW)
    assert other.pvalue == plain.pvalue
    assert other.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert mm.two_sample_test(x, y, kernel, scale=False, **FEW).pvalue > 0.05
    assert mm.k_sample_test([x, y], kernel, **FEW).pvalue == 0.01
    assert mm.k_sample_test([x, y], kernel, scale=False, **FEW).pvalue > 0.05
    assert plain.witness.kernel.lengthscale[1] > 100 * plain.witness.kernel.lengthscale[0]


def test_a_column_far_from_zero_is_no_other_one():
    x, y = shifted(np.random.default_rng(1))
    plain = mm.two_sample_test(x, y, **FEW)
    assert mm.two_sample_test(x + 2.0**20, y + 2.0**20, **FEW).statistic == pytest.approx(plain.statistic, rel=1e-4)


def test_columns_are_matched_by_name_and_constant_ones_are_told():
    x, y = shifted(np.random.default_rng(2))
    plain = mm.two_sample_test(x, y, **FEW)
    turned = mm.two_sample_test(x, pl.DataFrame(dict(y[["revenue", "conversion"]])), **FEW)
    assert turned.pvalue == plain.pvalue
    by_hand = mm.kernels.RBF([1.0, 1000.0])
    assert (
        mm.two_sample_test(x, y[["revenue", "conversion"]], by_hand, **FEW).statistic
        == mm.two_sample_test(x, y, by_hand, **FEW).statistic
    )
    dull = mm.two_sample_test(x.assign(site=7.0), y.assign(site=7.0), **FEW)
    assert dull.pvalue == plain.pvalue
    assert dull.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert "column 'site' is constant over all samples and carries no information." in dull.warnings


def test_labels_that_no_other_sample_has_are_told():
    x, y = {"town": ["Ulm", "Bonn"] * 4}, {"town": ["ulm", "bonn"] * 4}
    warnings = mm.two_sample_test(x, y, **FEW).warnings
    assert "column 'town' has no label in common between x and y ('Bonn' in x, 'bonn' in y)." in warnings


def test_labels_that_repeat_in_one_sample_alone_may_be_clusters():
    x, y = ({"user": [f"{letter}{k}" for k in range(6) for _ in range(3)], "n": np.arange(18.0)} for letter in "ab")
    (note,) = (note for note in mm.two_sample_test(x, y, **FEW).warnings if "no label in common" in note)
    assert note.endswith("p-values are too small: pass clusters='user', or leave it out of the table.")
    once = [{"user": [f"{letter}{k}" for k in range(18)], "n": np.arange(18.0)} for letter in "ab"]
    assert not any("repeat" in note for note in mm.two_sample_test(*once, **FEW).warnings)


TESTS = [
    lambda x, y: mm.two_sample_test(x, y, **FEW),
    lambda x, y: mm.two_sample_test(x, y, mm.kernels.Delta(), **FEW),
    lambda x, y: mm.k_sample_test([x, y], **FEW),
    lambda x, y: mm.stats.DriftMonitor.of(x, n_permutations=19, rng=0).step(y),
]
NUMBERS = np.arange(48) % 5


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (NUMBERS, NUMBERS.astype(str)),
        (NUMBERS, pd.Categorical(NUMBERS)),
        (NUMBERS > 2, (NUMBERS > 2).astype(str)),
        (pd.date_range("2026-01-01", periods=48), np.arange(48)),
        ([f"{n}.5" for n in NUMBERS], NUMBERS + 0.5),
    ],
)
@pytest.mark.parametrize("wrap", [lambda column: {"a": column}, lambda column: column], ids=["table", "array"])
def test_the_same_content_in_another_dtype_is_refused(test, first, second, wrap):
    for x, y in ((first, second), (second, first)):
        with pytest.raises(KindError, match="holds"):
            test(wrap(x), wrap(y))


@pytest.mark.parametrize("test", TESTS)
def test_arrays_are_not_matched_to_names(test):
    x, y = shifted(np.random.default_rng(3))
    for first, second in ((x, y.to_numpy()), (x.to_numpy(), y)):
        with pytest.raises(ColumnError, match=r"columns with names \(|is an array, whose columns have no names"):
            test(first, second)
    with pytest.raises(ColumnError, match="has no column 'revenue'"):
        test(x, y[["conversion"]])


def test_later_rows_are_matched_by_name_too():
    x = pl.DataFrame(dict(shifted(np.random.default_rng(4), 400)[0]))

    def pieces(frame, *turns):
        return iter([frame[200 * i : 200 * (i + 1)].select(names) for i, names in enumerate(turns)])

    one, other = ["conversion", "revenue"], ["revenue", "conversion"]
    settings = {"n_permutations": 99, "rng": 0}
    plain = mm.two_sample_test(pieces(x, one, one), pieces(x, one, one), **settings)
    turned = mm.two_sample_test(pieces(x, one, other), pieces(x, other, one), **settings)
    assert turned.pvalue == plain.pvalue > 0.5


@pytest.mark.parametrize("value", [1.7e308, -1e155])
@pytest.mark.parametrize("kernel", [None, "median", mm.kernels.Linear()])
def test_sentinels_that_overflow_are_refused_in_words(value, kernel):
    x = np.random.default_rng(5).normal(size=40)
    with pytest.raises(NonFiniteError, match=r"y holds 1 value.* too large for distances.* at row 3"):
        mm.two_sample_test(x, np.where(np.arange(40) == 3, value, x), kernel, **FEW)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e140])
def test_tiny_and_huge_units_are_no_trouble(unit):
    """Their squares vanish or overflow in single precision, and the smallest ones in double."""
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 40)) * unit
    z = x + 0.5 * y
    assert mm.two_sample_test(x, y + unit, null="spectral", rng=0).reject()
    assert not mm.two_sample_test(x, y, null="spectral", rng=0).reject()
    assert mm.conditional_independence_test(z, y, x, **FEW).pvalue < 0.05


def test_a_wild_value_in_later_rows_is_cut_to_what_single_precision_holds():
    x = np.random.default_rng(8).normal(size=20_000)
    wild = np.where(np.arange(20_000) == 19_999, 1e100, x)
    assert mm.two_sample_test(x, wild, null="spectral", rng=0).pvalue > 0.9
    with pytest.raises(InputError, match="a kernel value is inf"):
        mm.two_sample_test(x[:40], wild[-40:], mm.kernels.Polynomial(3), **FEW)


def test_wild_values_that_do_not_overflow_change_little():
    x, y = shifted(np.random.default_rng(6))
    x.loc[3, "revenue"] = 1e100
    assert mm.two_sample_test(x, y, **FEW).pvalue == 0.01
    small = mm.two_sample_test(x * 1e-250, y * 1e-250, **FEW)
    assert small.pvalue == 0.01
    with pytest.raises(InputError, match="all points of x and y are equal"):
        mm.two_sample_test(np.ones((9, 2)), np.ones((9, 2)))


def test_kernels_of_different_columns_are_no_list():
    """The points are read once, by the first: the others would take its columns for theirs."""
    x, y = shifted(np.random.default_rng(4))
    kernels = [mm.kernels.RBF([1.0, 1.0]), mm.kernels.OnColumns(mm.kernels.RBF(1.0), ["revenue"])]
    for test in (lambda: mm.two_sample_test(x, y, kernels), lambda: mm.k_sample_test([x, y], kernels[::-1])):
        with pytest.raises(KindError, match="read different columns, but those of a list must read the same"):
            test()
    assert mm.two_sample_test(x, y, [mm.kernels.RBF(1.0), mm.kernels.Laplace(1.0)], n_permutations=99, rng=0).pvalue > 0
