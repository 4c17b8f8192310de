"""Joint independence in one pass: one p-value, wherever the rows lie, close to that of whole matrices."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF
from meanmap.stats import joint_independence_test
from meanmap.stats.independence.joint_plan import _influence

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 6000
FEW = {"n_permutations": 99, "rng": 0}


def draws(seed=0, dependence=0.0, n=N):
    """Three numbers; any two are independent."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 3))
    turned = rng.random(n) < dependence
    table[turned, 2] = np.abs(table[turned, 2]) * np.sign(table[turned, 0] * table[turned, 1])
    return table


TABLE = draws()


def answer(result):
    return result.pvalue, result.statistic, result.sizes, result.null.draws.tolist()


def test_the_pvalue_is_the_same_wherever_the_rows_lie(tmp_path):
    frame = pandas.DataFrame(TABLE, columns=["u", "v", "w"])
    (tmp_path / "parts").mkdir()
    for i, index in enumerate(np.array_split(np.arange(N), 12)):
        polars.from_pandas(frame.iloc[index]).write_parquet(tmp_path / "parts" / f"{i:02}.parquet")
    np.save(tmp_path / "table.npy", TABLE)
    expected = answer(joint_independence_test(TABLE, **FEW))
    table = dd.read_parquet(tmp_path / "parts")
    ways = [
        list(TABLE.T),
        frame,
        np.load(tmp_path / "table.npy", mmap_mode="r"),
        tmp_path / "parts",
        polars.scan_parquet(tmp_path / "parts" / "*.parquet"),
        da.from_array(TABLE, (1000, 2)),
        table,
        [table["u"], table["v"], table["w"]],
    ]
    for number, way in enumerate(ways):
        assert answer(joint_independence_test(way, **FEW)) == expected, number
    plan = mm.load(mm.save(mm.stats.plan("joint independence", ways[5], rng=0), tmp_path / "plan"))
    first, second, third = (plan.state(part) for part in np.split(TABLE, [17, 5000]))
    both = mm.load(mm.save(third, tmp_path / "state")).merge(first).merge(second)
    assert answer(plan.result(both, 99)) == expected
    assert plan.state(pieces(777)) == both


def pieces(size):
    return (tuple(TABLE[start : start + size].T) for start in range(0, N, size))


def test_close_to_whole_matrices():
    """The statistic with every row a landmark is that of the V-statistic, and the limit that of the permutations."""
    table = draws(1, 0.3, 250)
    kernel = RBF(2.0)
    whole = joint_independence_test(table, kernel, n_permutations=999, rng=0)
    features = joint_independence_test(table, kernel, null="spectral", n_permutations=999, rng=0)
    assert features.statistic == pytest.approx(250 * whole.statistic, rel=0.03)
    scale = 250 * whole.null.draws.mean(), 250 * whole.null.draws.std()
    assert features.null.draws.mean() == pytest.approx(scale[0], rel=0.1)
    assert features.null.draws.std() == pytest.approx(scale[1], rel=0.3)


def test_the_limit_is_the_law_of_what_a_row_adds():
    """For values of three variables with few levels, against enumeration of all their combinations."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(levels, 4)) for levels in (2, 3, 4)]
    chances = [rng.dirichlet(np.ones(levels)) for levels in (2, 3, 4)]
    means = np.array([p @ v for p, v in zip(chances, values, strict=True)])
    covariances = [(v - m).T @ (p[:, None] * (v - m)) for v, p, m in zip(values, chances, means, strict=True)]
    expected = np.zeros((4, 4))
    for i, j, k in np.ndindex(2, 3, 4):
        a, b, c = values[0][i], values[1][j], values[2][k]
        alone = a * means[1] * means[2] + means[0] * b * means[2] + means[0] * means[1] * c
        adds = a * b * c - alone + 2 * means.prod(axis=0)
        expected += chances[0][i] * chances[1][j] * chances[2][k] * np.outer(adds, adds)
    np.testing.assert_allclose(_influence(means, covariances), expected, atol=1e-12)


def test_power_that_no_pair_has():
    table = {"a": TABLE[:, 0], "b": TABLE[:, 1], "c": draws(0, 0.1)[:, 2], "flat": np.ones(N)}
    found = joint_independence_test(table, **FEW)
    assert found.pvalue == 0.01
    assert "flat is constant: nothing depends on it, and it is left out." in found.warnings
    labels = {**table, "a": np.where(TABLE[:, 0] > 0, "up", "down")}
    assert joint_independence_test(dd.from_pandas(pandas.DataFrame(labels), npartitions=2), **FEW).pvalue == 0.01


def test_missing_values_and_kinds():
    frame = pandas.DataFrame(TABLE, columns=["u", "v", "w"]).assign(town=np.arange(N) % 7)
    frame.loc[::1000, "u"] = np.nan
    settings = {"missing": "drop", "kinds": {"town": "label"}, **FEW}
    here, there = (joint_independence_test(each, **settings) for each in (frame, dd.from_pandas(frame, npartitions=3)))
    assert answer(here) == answer(there)
    assert here.sizes == (N - 6,)
    assert there.warnings[0] == "6 of 6000 rows of the variables were left out: a value is missing in 'u' of u (6)."
    labels = frame.assign(town=frame["town"].astype(str))
    assert answer(joint_independence_test(labels, missing="drop", **FEW)) == answer(here)


def rejections(trials, seed):
    rng = np.random.default_rng(seed)
    found = 0
    for trial in range(trials):
        table = {
            "skew": rng.exponential(size=1000) ** 2,
            "few": rng.poisson(0.7, 1000).astype(float),
            "label": rng.choice(["a", "b", "c"], 1000, p=[0.9, 0.08, 0.02]),
        }
        found += joint_independence_test(table, null="spectral", n_permutations=199, rng=trial).reject()
    return found


def test_level():
    assert scipy.stats.binomtest(rejections(40, 3), 40, 0.05).pvalue > 1e-5


@pytest.mark.slow
def test_level_at_length():
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    found = rejections(1000, 4)
    assert low <= found <= high, found


@pytest.mark.parametrize(
    ("variables", "settings", "error", "message"),
    [
        (pieces(100), {}, KindError, "variables is an iterator, which can be read only once"),
        (TABLE, {"null": "permutation"}, InputError, "null='permutation' takes at most 5000"),
        ([TABLE[:, 0], pieces(100)], {}, KindError, r"variables\[1\] is an iterator"),
        (da.from_array(TABLE[:, 0]), {}, ShapeError, "expected a list of variables"),
        ([da.from_array(TABLE[:, 0]), TABLE[:, 1]], {}, KindError, "are Dask collections and others are in memory"),
        (da.from_array(TABLE), {"missing": "forget"}, ParameterError, "missing is 'forget'; expected one of"),
        (TABLE, {"kinds": {"z": "label"}}, ColumnError, "kinds names 'z'"),
        ([TABLE[:, 0], np.ones(N)], {}, ColumnError, r"variables\[1\] is constant"),
    ],
)
def test_bad_input(variables, settings, error, message):
    with pytest.raises(error, match=message):
        joint_independence_test(variables, **settings)


def test_parts_that_do_not_fit_the_plan():
    plan = mm.stats.plan("joint independence", TABLE, RBF(1.0), rng=0)
    with pytest.raises(ShapeError, match="a piece has 2 member"):
        plan.state(iter([(TABLE[:, 0], TABLE[:, 1])]))
    with pytest.raises(ShapeError, match="plan is for 3 variables, but 2 were given"):
        plan.state(TABLE[:, :2])
