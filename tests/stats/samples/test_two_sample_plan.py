"""One p-value, wherever the rows lie and whoever adds them up."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.pieces.files import ParquetFiles
from tests.documented import recipe

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
KERNEL = mm.kernels.RBF([1.0, 2.0])
FEW = {"n_permutations": 99, "rng": 0}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(13_000, 2)), RNG.normal(0.03, 1.0, size=(9_000, 2))
FRAMES = [pandas.DataFrame({"a": sample[:, 0], "b": sample[:, 1]}) for sample in (X, Y)]


def answer(result):
    return result.pvalue, result.statistic, result.sizes, result.null.draws.tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Both samples as one file, as a folder of files whose names sort otherwise as text, and as an array."""
    at = tmp_path_factory.mktemp("samples")
    for name, frame, cuts in (("x", FRAMES[0], 11), ("y", FRAMES[1], 3)):
        (at / name).mkdir()
        polars.from_pandas(frame).write_parquet(at / f"{name}.parquet", row_group_size=1000)
        for i, index in enumerate(np.array_split(np.arange(len(frame)), cuts)):
            polars.from_pandas(frame.iloc[index]).write_parquet(at / name / f"part-{i}.parquet")
    np.save(at / "x.npy", X)
    return at


@pytest.fixture(scope="module")
def expected():
    return answer(mm.two_sample_test(X, Y, KERNEL, **FEW))


SOURCES = {
    "frames": lambda at: FRAMES,
    "polars": lambda at: [polars.from_pandas(frame) for frame in FRAMES],
    "memory map": lambda at: (np.load(at / "x.npy", mmap_mode="r"), Y),
    "file": lambda at: (at / "x.parquet", str(at / "y.parquet")),
    "folder": lambda at: (str(at / "x"), at / "y"),
    "pattern": lambda at: (str(at / "x" / "part-*.parquet"), [at / "y" / f"part-{i}.parquet" for i in range(3)]),
    "lazy frame": lambda at: (polars.scan_parquet(at / "x.parquet"), at / "y"),
    "Dask array": lambda at: (da.from_array(X, chunks=(4000, 1)), da.from_array(Y, chunks=(9000, 2))),
    "Dask array of unknown lengths": lambda at: (dd.from_pandas(FRAMES[0], npartitions=3).values, Y),
    "Dask frame": lambda at: (dd.from_pandas(FRAMES[0], npartitions=4), dd.from_pandas(FRAMES[1], npartitions=1)),
    "Dask frame of files": lambda at: (dd.read_parquet(at / "x"), dd.read_parquet(at / "y")),
    "one of them Dask": lambda at: (FRAMES[0], dd.read_parquet(at / "y")),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_pvalue_is_the_same_wherever_the_rows_lie(name, folder, expected):
    assert answer(mm.two_sample_test(*SOURCES[name](folder), KERNEL, **FEW)) == expected


@pytest.mark.parametrize(
    "settings", [{"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 4}], ids=str
)
def test_no_scheduler_changes_it(settings, folder, expected):
    with dask.config.set(settings):
        assert answer(mm.two_sample_test(*SOURCES["Dask frame of files"](folder), KERNEL, **FEW)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_processes_do_not_change_it(workers, folder, expected):
    with dask.config.set(scheduler="processes", num_workers=workers):
        assert answer(mm.two_sample_test(*SOURCES["Dask frame of files"](folder), KERNEL, **FEW)) == expected


def test_rows_of_a_collection_are_counted_once(expected):
    read = []

    def part(index):
        read.append(index)
        return FRAMES[0].iloc[1000 * index : 1000 * (index + 1)]

    with dask.config.set(scheduler="synchronous"):
        x = dd.from_map(part, range(13), meta=FRAMES[0][:0])
        read.clear()
        assert answer(mm.two_sample_test(x, FRAMES[1], KERNEL, **FEW)) == expected
    assert sorted(read) == sorted([*range(13)] * 3)  # counted, drawn from and added up


def test_parts_in_any_order(tmp_path, expected):
    """What another engine would do: the plan is saved, loaded elsewhere, and the states come back in any order."""
    mm.save(mm.stats.plan("two samples", *FRAMES, KERNEL, rng=0), tmp_path / "plan.meanmap")
    plan = mm.load(tmp_path / "plan.meanmap")
    states = []
    for sample, cuts in ((X, [1, 5000, 5000, 12_999]), (FRAMES[1].to_numpy(), [100])):
        parts = [pandas.DataFrame(part, columns=["a", "b"]) for part in np.split(sample, cuts)]
        total = plan.state(parts[-1][:0])
        for i, part in enumerate(reversed(parts)):
            path = mm.save(plan.state(part), tmp_path / f"{i}.meanmap")
            total = mm.load(path).merge(total) if i % 2 else total.merge(mm.load(path))
        states.append(total)
    assert answer(plan.result(*states, 99)) == expected


def test_a_state_is_a_few_numbers_for_each_feature():
    """Not one for each pair of them, whose sums took half of a pass."""
    plan = mm.stats.plan("two samples", *FRAMES, KERNEL, rng=0)
    state = plan.state(FRAMES[1])
    assert state.sums.products.shape == (1, plan.features.features.size)
    far = plan.state(FRAMES[1] * 1e9)  # no features there: sums are those of the far rows by themselves
    assert far.merge(state).n == 2 * len(Y)


def test_an_iterator_in_order_adds_up_products(expected):
    """How features vary together cannot be read off its first rows."""
    x = X[np.argsort(X[:, 0])]
    first = mm.two_sample_test(iter(np.array_split(x, 7)), iter([Y]), KERNEL, **FEW)
    second = mm.two_sample_test(iter(np.array_split(x, 3)), iter([Y[:5], Y[5:]]), KERNEL, **FEW)
    assert answer(first) == answer(second)
    assert abs(first.pvalue - expected[0]) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [KERNEL, mm.features.Fourier.draw(KERNEL, 2, 40, rng=0), None], ids=["one", "Fourier", "default"]
)
def test_the_level_with_correlations_of_a_sample(kernel):
    """1000 data sets of skew and of rare values, 5 rows of which 8192 are in the sample on average."""
    rejected, rng = 0, np.random.default_rng(11)
    for trial in range(1000):
        x, y = (
            np.c_[rng.exponential(size=n), np.where(rng.uniform(size=n) < 5e-4, 50.0, rng.normal(size=n))]
            for n in (16_000, 9_000)
        )
        rejected += mm.two_sample_test(x, y, kernel, n_permutations=199, rng=trial).reject(0.05)
    assert 33 <= rejected <= 69


def test_rows_are_drawn_by_their_number_alone():
    """Of an ordered sample the first rows would show a part only."""
    x, y = np.sort(X[:, :1], axis=0), np.sort(Y[:, :1], axis=0)
    drawn = mm.two_sample_test(x, y, "median", **FEW)
    shuffled = mm.two_sample_test(X[:, :1], Y[:, :1], "median", **FEW)
    assert drawn.kernel.lengthscale == pytest.approx(shuffled.kernel.lengthscale, rel=0.05)


def with_gaps(frame):
    frame = frame.copy()
    frame.loc[::1000, "a"] = np.nan
    return frame


def test_missing_values_are_left_out_wherever_the_rows_lie(folder, tmp_path):
    x = with_gaps(FRAMES[0])
    (tmp_path / "gaps").mkdir()
    polars.from_pandas(x[:5000]).write_parquet(tmp_path / "gaps" / "1.parquet")
    polars.from_pandas(x[5000:]).write_parquet(tmp_path / "gaps" / "2.parquet")
    sources = [x, dd.from_pandas(x, npartitions=5), tmp_path / "gaps", polars.from_pandas(x)]
    found = [mm.two_sample_test(source, FRAMES[1], KERNEL, missing="drop", **FEW) for source in sources]
    assert len({result.pvalue for result in found}) == 1
    assert {result.sizes for result in found} == {(12_987, 9000)}
    told = "13 of 13000 rows of x were left out: a value is missing in 'a' (13)."
    assert all(told in result.warnings for result in found)
    with pytest.raises(NonFiniteError, match=r"x\['a'\].* has .* missing"):
        mm.two_sample_test(x, FRAMES[1], KERNEL, **FEW)


def test_mixed_columns(folder):
    labels = [np.where(sample[:, 0] > 0.5, "high", "low") for sample in (X, Y)]
    frames = [frame.assign(c=c) for frame, c in zip(FRAMES, labels, strict=True)]
    found = mm.two_sample_test(*frames, **FEW)
    collections = [dd.from_pandas(frame, npartitions=3) for frame in frames]
    assert answer(mm.two_sample_test(*collections, **FEW)) == answer(found)
    kinds = {"c": ("low", "high")}
    ranked = mm.two_sample_test(*frames, kinds=kinds, **FEW)
    assert answer(mm.two_sample_test(*collections, kinds=kinds, **FEW)) == answer(ranked)
    assert found.columns == ranked.columns == ("a", "b", "c")


def bare_part(index):
    """The second partition lacks a column."""
    return FRAMES[0][20 * index : 20 * index + 20][["a", "b"] if index == 0 else ["a"]]


def test_partitions_that_do_not_fit(folder, tmp_path):
    x, y = FRAMES
    plan = mm.stats.plan("two samples", x, y, KERNEL, rng=0)
    with pytest.raises(ColumnError, match=r"rows of machine 7 has no column 'b'; it has 'a'"):
        plan.state(x[["a"]], "rows of machine 7")
    with pytest.raises(
        KindError, match=r"rows\['b'\] holds labels, such as 'high'; expected a number column, as in the earlier table"
    ):
        plan.state(x.assign(b="high"))
    with pytest.raises(ShapeError, match="both must come from one plan"):
        plan.state(x).merge(mm.stats.plan("two samples", x, y, KERNEL, rng=1).state(x))
    with pytest.raises(EmptyError, match="x is empty; expected at least 5 points"):
        plan.result(plan.state(x[:0]), plan.state(y))
    with pytest.raises(ParameterError, match="an iterator, which a plan would consume"):
        mm.stats.plan("two samples", iter([x]), y)
    empty = dd.concat([dd.from_pandas(x[:0], npartitions=1), dd.from_pandas(x, npartitions=2)])
    assert mm.two_sample_test(empty, y, KERNEL, **FEW).sizes == (13_000, 9000)
    bare = dd.from_map(bare_part, range(2), meta=x[:0])
    for call in (
        lambda: mm.two_sample_test(bare, y[:50], KERNEL, **FEW),
        lambda: mm.stats.plan("two samples", bare, y, KERNEL),
    ):
        with pytest.raises(ColumnError, match=r"x has a partition with the columns 'a'; expected 'a', 'b' in each"):
            call()
    with pytest.raises(ParameterError, match="more than 20000 rows are compared by statistic='features'"):
        mm.two_sample_test(dd.from_pandas(x, npartitions=2), y, statistic="unbiased", **FEW)


@pytest.mark.parametrize(
    "test",
    [
        lambda data: mm.stats.DriftMonitor.of(data),
        lambda data: mm.embed(data, mm.kernels.RBF(1.0)),
        lambda data: mm.features.PivotedCholesky.fit(mm.kernels.RBF(1.0), data),
        lambda data: mm.pc(data),
    ],
)
@pytest.mark.parametrize("data", [da.from_array(X[:100]), dd.from_pandas(FRAMES[0][:100], npartitions=2)], ids=str)
def test_collections_are_refused_where_rows_must_be_in_memory(test, data):
    with pytest.raises(KindError, match=r"of Dask, whose rows are not in memory: pass .*\.compute\(\)"):
        test(data)


def test_files_that_do_not_fit_each_other(folder, tmp_path):
    frame = polars.from_pandas(FRAMES[0][:10])
    frame.write_parquet(tmp_path / "1.parquet")
    for other, error, message in (
        (frame.drop("b"), ColumnError, "2.parquet has no column 'b', which .*1.parquet has"),
        (frame.with_columns(c=1), ColumnError, "2.parquet has a column 'c', which .*1.parquet lacks"),
        (frame.with_columns(b=polars.lit("u")), KindError, "the column 'b' holds String in .*2.parquet and Float64"),
    ):
        other.write_parquet(tmp_path / "2.parquet")
        with pytest.raises(error, match=message):
            mm.two_sample_test(tmp_path, Y)
    frame.cast({"b": polars.Int64}).write_parquet(tmp_path / "2.parquet")  # numbers are numbers
    assert ParquetFiles.of(tmp_path).count() == 20
    assert ParquetFiles.of(tmp_path, ["b"]).whole().columns == ["b"]
    with pytest.raises(ColumnError, match=r"1.parquet has no column 'z'; it has 'a', 'b'"):
        ParquetFiles.of(tmp_path, ["z"])
    (tmp_path / "none").mkdir()
    with pytest.raises(EmptyError, match=r"holds no file whose name ends in .parquet"):
        mm.two_sample_test(tmp_path / "none", Y)
    with pytest.raises(EmptyError, match="no file matches"):
        mm.two_sample_test(str(tmp_path / "z*.parquet"), Y)
    with pytest.raises(ParameterError, match="there is no file"):
        mm.two_sample_test(tmp_path / "z.parquet", Y)


@pytest.mark.slow
def test_the_recipe_with_a_scheduler_and_two_workers(folder, tmp_path):
    """The script of the documentation, as it stands there."""
    (tmp_path / "recipe.py").write_text(recipe("Cluster"))
    (tmp_path / "before").symlink_to(folder / "x")
    (tmp_path / "after").symlink_to(folder / "y")
    done = subprocess.run([sys.executable, "recipe.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    expected = str(mm.two_sample_test(*FRAMES, rng=0)).splitlines()
    assert [line for line in done.stdout.splitlines() if line][:5] == expected[:5]


def slow_part(index, marker):
    """A partition that takes a while, and says when the first has begun."""
    Path(marker).touch()
    time.sleep(0.5)
    return FRAMES[0].iloc[1000 * index : 1000 * (index + 1)]


@pytest.mark.slow
def test_a_worker_may_be_killed_in_the_middle(tmp_path, expected):
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "begun"
    x = dd.from_map(slow_part, range(13), marker=str(marker), meta=FRAMES[0][:0])
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = client.run(os.getpid)
        assert len(before) == 2

        def kill():
            # The first pass counts rows, the second draws some, and the third adds up.
            for _ in range(3):
                while not marker.exists():
                    time.sleep(0.05)
                time.sleep(3.0)
                marker.unlink()
            os.kill(min(before.values()), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        found = mm.two_sample_test(x, FRAMES[1], KERNEL, **FEW)
        killer.join()
        after = client.run(os.getpid)
    assert answer(found) == expected
    assert min(before.values()) not in after.values()


def test_groups_of_one_table_are_compared_like_the_two_samples():
    table = pandas.concat([FRAMES[0].assign(group="a"), FRAMES[1].assign(group="b")])
    found = mm.two_sample_test(table, kernel=KERNEL, by="group", **FEW)
    assert answer(found) == answer(mm.two_sample_test(*FRAMES, KERNEL, **FEW))


def test_ids_of_shuffled_rows_are_left_out_of_tables_of_any_size():
    """They were at 20,000 rows, and not at 100,000."""
    rng = np.random.default_rng(8)
    table = {"user": 100_000 + rng.permutation(20_200), "arm": rng.choice(["A", "B"], 20_200)}
    result = mm.two_sample_test(table | {"age": rng.normal(size=20_200)}, by="arm", n_permutations=19, rng=0)
    assert any("'user' only identifies the rows" in note for note in result.warnings), result.warnings
