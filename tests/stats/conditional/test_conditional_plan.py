"""The conditional test in three passes: one p-value, wherever the rows lie, with its level and power."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError, KindError, ParameterError, ShapeError
from meanmap.stats import conditional_independence_test

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 9000
FEW = {"n_permutations": 99, "rng": 0}


def draws(seed=0, dependence=0.0, n=N):
    """Two effects of a number and a label, the first skew."""
    rng = np.random.default_rng(seed)
    number, town = rng.normal(size=n), rng.choice(["a", "b", "c"], n, p=[0.7, 0.25, 0.05])
    x = np.sin(number) + (town == "b") + rng.exponential(size=n)
    y = number**2 / 2 + (town != "a") * rng.normal(size=n) + rng.normal(size=n) + dependence * x * number
    return pandas.DataFrame({"x": x, "y": y, "number": number, "town": town})


FRAME = draws()


def answer(result):
    return result.pvalue, result.statistic, result.sizes, result.null.draws.tolist()


def asked(data, **settings):
    return conditional_independence_test("x", "y", ["number", "town"], data=data, **{**FEW, **settings})


def test_the_pvalue_is_the_same_wherever_the_rows_lie(tmp_path):
    (tmp_path / "parts").mkdir()
    for i, index in enumerate(np.array_split(np.arange(N), 12)):
        polars.from_pandas(FRAME.iloc[index]).write_parquet(tmp_path / "parts" / f"{i:02}.parquet")
    expected = answer(asked(FRAME))
    for way in (tmp_path / "parts", polars.scan_parquet(tmp_path / "parts" / "*.parquet")):
        assert answer(asked(way)) == expected
    assert answer(asked(dd.read_parquet(tmp_path / "parts"))) == expected


def test_arrays_maps_and_states_in_any_order(tmp_path):
    x, y, z = FRAME["x"].to_numpy(), FRAME["y"].to_numpy(), FRAME[["number"]].to_numpy()
    np.save(tmp_path / "z.npy", z)
    expected = answer(conditional_independence_test(x, y, z, **FEW))
    assert answer(conditional_independence_test(x, y, np.load(tmp_path / "z.npy", mmap_mode="r"), **FEW)) == expected
    lazy = da.from_array(x, 2000), da.from_array(y, 2000), da.from_array(z, (2000, 1))
    plan = mm.stats.plan("conditional independence", *lazy, rng=0)
    while True:
        plan = mm.load(mm.save(plan, tmp_path / "plan"))
        first, second, third = (plan.state(x[p], y[p], z[p]) for p in (slice(17), slice(17, 5000), slice(5000, N)))
        both = mm.load(mm.save(third, tmp_path / "state")).merge(first).merge(second)
        pieces = ((x[s : s + 777], y[s : s + 777], z[s : s + 777]) for s in range(0, N, 777))
        assert plan.state(pieces) == both
        if plan.passes == 1:
            break
        with pytest.raises(ParameterError, match=r"passes are left: continue with plan = plan.after"):
            plan.result(both)
        before, plan = plan, plan.after(both)
        with pytest.raises(ParameterError, match=r"the state is of another plan or pass"):
            plan.after(both) if plan.passes > 1 else plan.result(both)
    assert answer(plan.result(both, 99)) == expected
    assert plan.passes == before.passes - 1


def test_power_and_what_is_a_function_of_z():
    assert asked(FRAME).pvalue > 0.01
    assert asked(draws(0, 0.3)).pvalue == 0.01
    decided = asked(dd.from_pandas(FRAME.assign(x=FRAME["number"] * 2), npartitions=2))
    assert decided.pvalue == 1
    assert decided.sizes == (N,)
    assert "x or y is a function of z" in decided.warnings[0]


def test_missing_values_and_kinds():
    frame = FRAME.assign(town=FRAME["town"].map({"a": 1, "b": 2, "c": 3}))
    frame.loc[::1000, "x"] = np.nan
    settings = {"missing": "drop", "kinds": {"town": "label"}}
    here, there = (asked(each, **settings) for each in (frame, dd.from_pandas(frame, npartitions=3)))
    assert answer(here) == answer(there)
    assert here.sizes == (N - 9,)
    assert there.warnings[0].startswith("9 of 9000 rows of x and y and z were left out")


def test_labels_that_come_later_are_one():
    """A label that is not among the rows that the plan was made of belongs to none of theirs."""
    plan = mm.stats.plan("conditional independence", FRAME["x"], FRAME["y"], FRAME["town"], rng=0)
    later = plan.members[2].variable(np.array(["a", "d", "e"]), "z").indicators
    ((_, shares),) = plan.members[2].labels.values()
    np.testing.assert_allclose(later[1:], -np.stack([shares, shares]))
    np.testing.assert_allclose(later[0], [1 - shares[0], *-shares[1:]])


def rejections(trials, seed):
    rng = np.random.default_rng(seed)
    found = 0
    for trial in range(trials):
        frame = draws(int(rng.integers(2**31)), n=6000)
        found += asked(frame, n_permutations=199, rng=trial).reject()
    return found


def test_level():
    assert scipy.stats.binomtest(rejections(8, 3), 8, 0.05, "greater").pvalue > 1e-4


@pytest.mark.slow
def test_level_at_length():
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    found = rejections(1000, 4)
    assert low <= found <= high, found


@pytest.mark.parametrize(
    ("change", "settings", "error", "message"),
    [
        ({"x": iter([np.zeros(3)])}, {}, KindError, "x is an iterator; expected variables whose rows can be counted"),
        ({"y": np.zeros(5)}, {}, ShapeError, "x has 9000, y has 5, z has 9000 points"),
        ({}, {"clusters": 2, "method": "features"}, ParameterError, "clusters= are for method='kci'"),
        (
            {"x": da.from_array(FRAME["x"].to_numpy())},
            {},
            KindError,
            "are Dask collections and others are in memory",
        ),
        ({}, {"missing": "forget"}, ParameterError, "missing is 'forget'; expected one of"),
        ({}, {"kinds": {"w": "label"}}, ColumnError, "kinds names 'w'"),
        ({"x": np.ones(N)}, {}, ColumnError, "x is constant"),
        ({}, {"method": "kci", "null": "spectral", "n_permutations": 0}, InputError, "n_permutations"),
    ],
)
def test_bad_input(change, settings, error, message):
    variables = {"x": FRAME["x"].to_numpy(), "y": FRAME["y"].to_numpy(), "z": FRAME["number"].to_numpy(), **change}
    with pytest.raises(error, match=message):
        conditional_independence_test(**variables, **{**FEW, **settings})


def test_texts_are_read_in_memory_alone():
    words = np.array([f"row {i}" for i in range(N)])
    frame = dd.from_pandas(FRAME.assign(town=words), npartitions=2)
    with pytest.raises(
        KindError, match=r"z holds texts that differ in nearly every row .*, which can only be read in memory"
    ):
        asked(frame)


@pytest.mark.parametrize("labels", [np.asarray, lambda column: column == "b", lambda column: np.stack([column] * 2, 1)])
def test_arrays_of_labels_are_read_piece_by_piece_too(labels, monkeypatch):
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=120), rng.choice(["a", "b"], 120), rng.choice(["a", "b", "c"], 120)
    ask = lambda: conditional_independence_test(x, labels(y), labels(z), **FEW).pvalue  # noqa: E731
    whole = ask()
    monkeypatch.setattr("meanmap.features.states.pairs.ROWS", 50)
    assert ask() == pytest.approx(whole)


def test_values_behind_that_are_too_rare_for_a_sample_of_rows():
    """4, 5 and 12 ones of 5500: a thousand spread rows, from which features of z are made, may have none."""
    for seed in (1, 4, 10):
        rng = np.random.default_rng([11, seed])
        z = (rng.uniform(size=5500) < 2e-3) * 1.0
        x, y = 3 * z + rng.normal(size=(2, 5500))
        assert mm.conditional_independence_test(x, y, z, rng=seed, n_permutations=199).pvalue > 0.01
