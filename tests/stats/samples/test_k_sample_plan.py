"""Several samples: one p-value, wherever the rows lie and whoever adds them up."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, ParameterError

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
KERNEL = mm.kernels.RBF([1.0, 2.0])
FEW = {"n_permutations": 99, "rng": 0}
SIZES = {"a": 9000, "b": 8000, "c": 6000}


def draws(seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(shift * (name == "c"), 1.0, size=(n, 2)) for name, n in SIZES.items()}


SAMPLES = draws()


def answer(result):
    return result.pvalue, result.statistic, result.sizes, result.null.draws.tolist()


@pytest.fixture(scope="module")
def expected():
    return answer(mm.k_sample_test(SAMPLES, KERNEL, **FEW))


def test_the_pvalue_is_the_same_wherever_the_rows_lie(tmp_path, expected):
    frames = {name: pandas.DataFrame(sample, columns=["u", "v"]) for name, sample in SAMPLES.items()}
    for i, index in enumerate(np.array_split(np.arange(9000), 12)):
        (tmp_path / "a").mkdir(exist_ok=True)
        polars.from_pandas(frames["a"].iloc[index]).write_parquet(tmp_path / "a" / f"{i}.parquet")
    np.save(tmp_path / "b.npy", SAMPLES["b"])
    mapped = np.load(tmp_path / "b.npy", mmap_mode="r")
    listed = list(SAMPLES.values())
    assert answer(mm.k_sample_test(listed, KERNEL, **FEW)) == expected
    assert answer(mm.k_sample_test(frames, KERNEL, **FEW)) == expected
    assert answer(mm.k_sample_test([listed[0], mapped, da.from_array(listed[2], (1000, 2))], KERNEL, **FEW)) == expected
    files = {"a": tmp_path / "a", "b": frames["b"], "c": dd.from_pandas(frames["c"], npartitions=3)}
    assert answer(mm.k_sample_test(files, KERNEL, **FEW)) == expected
    short = [sample[:200] for sample in listed[1:]]
    exact = mm.k_sample_test([da.from_array(short[0]), mapped[:200]], KERNEL, **FEW)
    assert answer(exact) == answer(mm.k_sample_test([short[0], short[0]], KERNEL, **FEW))
    assert exact.null.exact


def test_parts_in_any_order(tmp_path, expected):
    plan = mm.load(mm.save(mm.stats.plan("several samples", SAMPLES, KERNEL, rng=0), tmp_path / "plan"))
    states = []
    for sample in SAMPLES.values():
        first, second, third = (plan.state(part) for part in np.split(sample, [17, 5000]))
        states.append(mm.load(mm.save(third, tmp_path / "state")).merge(first).merge(second))
    assert answer(plan.result(states, 99)) == expected
    with pytest.raises(ParameterError, match="there are 2 states, but the plan is for 3 samples: a, b, c"):
        plan.result(states[:2])


def test_groups_of_a_long_table_are_compared_like_samples():
    """In whatever order their rows come."""
    labels = np.repeat(list(SIZES), list(SIZES.values()))
    both = np.concatenate(list(SAMPLES.values()))
    order = np.argsort(np.random.default_rng(1).uniform(size=len(labels)) + 10.0 * (labels == "b"), kind="stable")
    table = pandas.DataFrame({"u": both[:, 0], "v": both[:, 1], "group": labels})
    whole = mm.k_sample_test(table, KERNEL, by="group", **FEW)
    assert whole.sizes == tuple(SIZES.values())
    found = mm.k_sample_test(table.iloc[order], KERNEL, by="group", **FEW)
    assert found.statistic == pytest.approx(whole.statistic, abs=0.2)
    assert found.pvalue > 0.01
    moved = mm.k_sample_test(draws(1, 0.1), KERNEL, **FEW)
    assert moved.pvalue == 0.01


def test_missing_values_and_columns():
    frames = [pandas.DataFrame(sample, columns=["u", "v"]) for sample in SAMPLES.values()]
    frames[1].loc[::1000, "u"] = np.nan
    found = [
        mm.k_sample_test([frames[0], second, frames[2]], KERNEL, missing="drop", **FEW)
        for second in (frames[1], dd.from_pandas(frames[1], npartitions=2))
    ]
    assert answer(found[0]) == answer(found[1])
    assert "8 of 8000 rows of samples[1] were left out: a value is missing in 'u' (8)." in found[1].warnings
    with pytest.raises(ColumnError, match="v"):
        mm.k_sample_test([frames[0], dd.from_pandas(frames[2][["u"]], npartitions=2)], KERNEL, **FEW)


def test_iterators_are_read_once(expected):
    def parts(sample, size):
        return (sample[start : start + size] for start in range(0, len(sample), size))

    first, second = (
        mm.k_sample_test([parts(sample, size) for sample in SAMPLES.values()], KERNEL, **FEW) for size in (3000, 777)
    )
    assert answer(first) == answer(second)
    assert abs(first.pvalue - expected[0]) < 0.3
