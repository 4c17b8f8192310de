"""What should not matter does not: functions that take data, and changes of the data that say nothing new.

Each cell of the table is a function and a change. The answer is equal, to the rounding of the change, unless
`EXCEPTIONS` says otherwise and why; the page docs/invariances.rst prints the same table.
"""

import ast
import inspect
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from benchmarks.table import list_table
from meanmap.core.errors import ColumnError, EmptyError, KindError, NonFiniteError
from tests.invariances import ELSEWHERE, FEW, FUNCTIONS, ROWS_OF, Wrap, X, Y, columns, drift, given, numbers, told

PAGE = Path(__file__).parents[1] / "docs" / "invariances.rst"


class Odd(pd.DataFrame):
    """A subclass, as other packages have them."""

    @property
    def _constructor(self):
        return Odd


def both(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame, pd.DataFrame], Any]:
    return lambda x, y: (change(x), change(y))


def accented(x: pd.DataFrame, y: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Labels with an accent, one character here and two there."""
    return x.assign(c=x["c"].map({"u": "u", "v": "\u00fc"})), y.assign(c=y["c"].map({"u": "u", "v": "u\u0308"}))


def structured(frame: pd.DataFrame) -> np.ndarray:
    return (
        frame.astype({name: "U5" for name in frame if frame[name].dtype == object})
        .to_records(index=False)
        .view(np.ndarray)
    )


def strided(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Columns that run backwards, cannot be written to, or are every second of another array's."""
    found = {}
    for j, name in enumerate(frame.columns):
        column = frame[name].to_numpy()
        found[name] = column[::-1].copy()[::-1] if j % 2 else np.repeat(column, 2)[::2]
        found[name].flags.writeable = False
    return found


def typed(kinds: dict[str, str]) -> Callable[[pd.DataFrame, pd.DataFrame], Any]:
    return both(lambda frame: frame.astype({n: k for n, k in kinds.items() if n in frame}))


def with_holes(frame: pd.DataFrame) -> pd.DataFrame:
    """Three rows more, each with a value missing."""
    holes = frame[5:8].assign(**dict.fromkeys(frame.columns[:3], np.nan))
    return pd.concat([frame[:9], holes, frame[9:]], ignore_index=True)


def arrow(frame: pd.DataFrame) -> Any:
    """A table of Arrow, or one that speaks as it does where the package is not there."""
    try:
        import pyarrow
    except ImportError:
        return Arrow(frame)
    return pyarrow.Table.from_pandas(frame)


class Stream:
    """A table that is handed over as a stream of Arrow and nothing else, as relations of DuckDB are."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = pl.DataFrame({str(name): frame[name].to_numpy() for name in frame})

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


FORMATS = cycle((".csv", ".npz", ".parquet"))


def from_files(frame: pd.DataFrame) -> mm.Table:
    """Written into files of different kinds in turn, and read again."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "table").with_suffix(next(FORMATS))
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
            words = [str(name) for name in frame if frame[name].dtype.kind == "O"]  # of which a text says nothing
            return mm.io.read_table(path, labels=words)[0]
        if path.suffix == ".npz":
            columns = {str(name): frame[name].to_numpy() for name in frame}
            np.savez(path, **{n: c.astype(str) if c.dtype == object else c for n, c in columns.items()})
        else:
            pl.DataFrame({str(name): frame[name].to_numpy() for name in frame}).write_parquet(path)
        return mm.io.read_table(path)[0]


def with_thousands(frame: pd.DataFrame) -> mm.Table:
    """Written with separators of thousands, as 1,234,567.5, and read again."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        shown = {n: frame[n].map("{:,}".format) if frame[n].dtype.kind in "if" else frame[n] for n in frame}
        pd.DataFrame(shown).to_csv(path, sep=";", index=False)
        words = [str(name) for name in frame if frame[name].dtype.kind == "O"]
        return mm.io.read_table(path, labels=words, delimiter=";", thousands=",")[0]


class Arrow:
    """The names and columns of a table of Arrow."""

    def __init__(self, frame: pd.DataFrame):
        self.column_names, self.shape, self.frame = list(frame.columns), frame.shape, frame

    @property
    def columns(self) -> list[Any]:
        """Columns, not names."""
        return [self.frame[name] for name in self.frame]

    def __getitem__(self, name: str) -> Any:
        return self.frame[name]

    def column(self, name: str) -> Any:
        """One column."""
        return self.frame[name]


def rescaled(times: float, plus: float) -> Callable[[pd.DataFrame, pd.DataFrame], Any]:
    return both(lambda frame: frame.assign(b=frame["b"] * times + plus))


SAME: Wrap = lambda frame: frame  # noqa: E731
# What is done to the frames, and what they are passed on as.
CHANGES: dict[str, tuple[Callable[[pd.DataFrame, pd.DataFrame], Any], Wrap]] = {
    "a column × 10⁶": (rescaled(1e6, 0), SAME),
    "a column × 10⁻⁶": (rescaled(1e-6, 0), SAME),
    "a column + 10⁶": (rescaled(1, 1e6), SAME),
    "columns of one sample in another order": (lambda x, y: (x, y[y.columns[::-1]]), SAME),
    "other names of columns": (both(lambda frame: frame.set_axis(["n", "m", "l", "z", "k"], axis=1)), SAME),
    "other names of labels": (both(lambda frame: frame.assign(c=frame["c"].map({"u": "10", "v": "9"}))), SAME),
    "a constant column more": (both(lambda frame: frame.assign(f=7.0)), SAME),
    "float32": (typed({"a": "float32", "b": "float32"}), SAME),
    "counts as floats": (typed({"d": "float64"}), SAME),
    "counts as int8": (typed({"d": "int8"}), SAME),
    "nullable dtypes": (typed({"d": "Int64", "a": "Float64", "c": "string", "e": "boolean"}), SAME),
    "labels as categories": (typed({"c": "category"}), SAME),
    "truth values as text": (typed({"e": "str"}), SAME),
    "letters with accents, composed in another way": (accented, SAME),
    "an odd index": (both(lambda frame: Odd(frame).set_index(np.zeros(len(frame)))), SAME),
    "polars": (both(lambda frame: frame), lambda frame: pl.DataFrame({n: frame[n].to_numpy() for n in frame})),
    "a dictionary of lists": (both(lambda frame: frame), lambda frame: frame.to_dict("list")),
    "a structured array": (both(lambda frame: frame), structured),
    "a Table": (both(lambda frame: frame), mm.Table.of),
    "strided, read-only columns": (both(lambda frame: frame), strided),
    "a table of Arrow": (both(lambda frame: frame), arrow),
    "a stream of Arrow": (both(lambda frame: frame), Stream),
    "narwhals": (both(lambda frame: frame), lambda frame: import_module("narwhals").from_native(frame)),
    "files of CSV, NPZ and Parquet": (both(lambda frame: frame), from_files),
    "a column × 10⁶, with separators of thousands": (rescaled(1e6, 0), with_thousands),
    "rows with missing values": (both(with_holes), SAME),
}
MISSING = "refused with their number"
SCIKIT = "refused by scikit-learn"
CONSTANT = "refused by name"
COUNTED = "each column by all rows that have it"
EXCEPTIONS: dict[tuple[str, str], str] = {}
EXCEPTIONS |= {
    (name, "rows with missing values"): MISSING
    for name in ("embed", "default_kernel", "posterior_witness", "prewhiten")
}
EXCEPTIONS[("prewhiten", "a constant column more")] = CONSTANT
EXCEPTIONS |= {
    (name, "rows with missing values"): COUNTED
    for name in ("DriftMonitor", "DriftMonitor, an empty column", "DriftMonitor.to_dict", "meanmap drift")
}
EXCEPTIONS |= {
    (name, way): SCIKIT
    for name in ("estimators", "densities")
    for way in (
        "a dictionary of lists",
        "a structured array",
        "a Table",
        "strided, read-only columns",
        "files of CSV, NPZ and Parquet",
        "a column × 10⁶, with separators of thousands",
    )
}
EXCEPTIONS |= {
    ("DriftMonitor, an empty column", way): MISSING
    for way in ("a Table", "files of CSV, NPZ and Parquet", "a column × 10⁶, with separators of thousands")
}
RAISED: dict[str, tuple[Any, str]] = {
    MISSING: ((NonFiniteError, EmptyError), "missing value|not finite"),
    CONSTANT: (ColumnError, "is constant"),
    SCIKIT: ((TypeError, ValueError), "float|array"),
}


def takes_data(made: Any) -> bool:
    """Whether a public function, or what makes or fits a public class, is annotated to take data."""
    makers = [made] if inspect.isfunction(made) else [getattr(made, name, None) for name in ("of", "fit", "draw")]
    for maker in filter(inspect.isroutine, makers):
        (node, *_) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(maker)))).body
        assert isinstance(node, ast.FunctionDef)
        if any("Data" in ast.unparse(each.annotation) for each in node.args.args if each.annotation):
            return True
    return False


def test_each_public_function_that_takes_data_has_a_row():
    folders = (
        mm,
        mm.stats,
        mm.stats.results,
        mm.bp,
        mm.ep.models,
        mm.embeddings,
        mm.estimators,
        mm.features,
        mm.learning,
        mm.structure,
    )
    public = {name: getattr(folder, name) for folder in folders for name in folder.__all__}
    found = {name for name, each in public.items() if not inspect.ismodule(each) and takes_data(each)}
    unknown = {name for name in found if ROWS_OF.get(name, name) not in FUNCTIONS and name not in ELSEWHERE}
    assert not unknown
    assert not {name for name in (*ROWS_OF, *ELSEWHERE) if name not in public}


@cache
def plainly(name: str) -> tuple[Any, ...]:
    return FUNCTIONS[name](X, Y, SAME)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_says_nothing_new_changes_nothing(name, change):
    alter, wrap = CHANGES[change]
    x, y = alter(X.copy(), Y.copy())
    refused = EXCEPTIONS.get((name, change))
    if refused == COUNTED:
        assert FUNCTIONS[name](x, y, wrap) != plainly(name)
        return
    if refused is not None:
        error, words = RAISED[refused]
        with pytest.raises(error, match=words):
            FUNCTIONS[name](x, y, wrap)
        return
    found = FUNCTIONS[name](x, y, wrap)
    assert len(found) == len(plainly(name)) > 0
    assert found == pytest.approx(plainly(name), rel=1e-3 if "+" in change else 1e-5, abs=1e-9)


WRITTEN = {
    "in ISO 8601": "%Y-%m-%d %H:%M:%S",
    "on a clock of twelve hours": "%Y-%m-%d %I:%M:%S %p",
    "with points": "%d.%m.%Y %H:%M:%S",
}
OF_TIMES = {
    "two_sample_test": lambda x, y, kinds: told(mm.two_sample_test(x, y, kinds=kinds, **FEW)),
    "k_sample_test": lambda x, y, kinds: told(mm.k_sample_test([x, y], kinds=kinds, **FEW)),
    "two_sample_effect": lambda x, y, kinds: (mm.two_sample_effect(x, y, kinds=kinds, rng=0).distance.estimate,),
    "independence_test": lambda x, y, kinds: told(mm.independence_test("when", "b", data=x, kinds=kinds, **FEW)),
    "DriftMonitor": lambda x, y, kinds: tuple(map(float, mm.DriftMonitor.of(x, kinds=kinds, **FEW).step(y).pvalues)),
    "BayesianNetwork": lambda x, y, kinds: (
        float(mm.bp.BayesianNetwork([("b", "when")]).fit(x, kinds=kinds).query({"b": 0.5}, rng=0)["when"].mean()),
    ),
}


@pytest.mark.parametrize("way", list(WRITTEN)[1:])
@pytest.mark.parametrize("name", OF_TIMES)
def test_how_times_are_written_changes_nothing(name, way):
    def of(form: str) -> list[pd.DataFrame]:
        days = [pd.Timestamp("2026-01-31") + pd.to_timedelta((1e6 * each["a"]).round(), unit="s") for each in (X, Y)]
        return [each[["b"]].assign(when=day.dt.strftime(form)) for each, day in zip((X, Y), days, strict=True)]

    function = OF_TIMES[name]
    assert function(*of(WRITTEN[way]), {"when": "time"}) == function(*of(WRITTEN["in ISO 8601"]), {"when": "time"})


@pytest.mark.parametrize("name", ["two_sample_test", "k_sample_test", "two_sample_effect", "independence_test"])
def test_on_which_clock_times_of_day_are_written_changes_nothing(name):
    def of(form: str) -> list[pd.DataFrame]:
        times = [pd.Timestamp(0) + pd.to_timedelta((3600 * each["a"]).round(), unit="s") for each in (X, Y)]
        return [each[["b"]].assign(when=time.dt.strftime(form)) for each, time in zip((X, Y), times, strict=True)]

    function, kinds = OF_TIMES[name], {"when": "time of day"}
    assert function(*of("%I:%M:%S %p"), kinds) == function(*of("%H:%M:%S"), kinds)


ARRAYS: dict[str, Wrap] = {
    "lists": np.ndarray.tolist,
    "Fortran order": np.asfortranarray,
    "rows of another array, backwards": lambda x: np.repeat(x, 2, axis=0)[::-1][::2][::-1],
    "float32": lambda x: x.astype(np.float32),
    "a frame without names": pd.DataFrame,
    "JAX": jnp.asarray,
}
OF_ARRAYS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "two_sample_test": lambda x, y: told(mm.two_sample_test(x, y, **FEW)),
    "k_sample_test": lambda x, y: told(mm.k_sample_test([x, y], **FEW)),
    "DriftMonitor": drift,
    "independence_test": lambda x, y: told(mm.independence_test(x, range(len(x)), **FEW)),
}


@pytest.mark.parametrize("way", ARRAYS)
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_how_an_array_lies_in_memory_changes_nothing(name, way):
    x, y = (numbers(frame).to_numpy(float) for frame in (X, Y))
    before = x.copy()
    found = OF_ARRAYS[name](ARRAYS[way](x), ARRAYS[way](y))
    assert found == pytest.approx(OF_ARRAYS[name](x, y), rel=1e-5)
    assert (x == before).all()


@pytest.mark.parametrize("name", ["two_sample_test, median", "chow_liu", "embed"])
def test_statistics_do_not_know_the_order_of_rows(name):
    """Permutations are drawn by position, so that p-values are equal in law only, and statistics in units of draws."""
    found = FUNCTIONS[name](X[::-1], Y[::-1], SAME)
    assert found[1:] == pytest.approx(plainly(name)[1:], rel=1e-5)


@pytest.mark.parametrize("name", ["two_sample_test", "k_sample_test", "DriftMonitor", "independence_test", "embed"])
def test_a_column_of_numbers_twice_is_the_same_column(name):
    def twice(frame: pd.DataFrame, times: int) -> np.ndarray:
        return np.repeat(frame[["b"]].to_numpy(), times, axis=1)

    found = [
        {
            "two_sample_test": lambda x, y: told(mm.two_sample_test(x, y, **FEW)),
            "k_sample_test": lambda x, y: told(mm.k_sample_test([x, y], **FEW)),
            "DriftMonitor": drift,
            "independence_test": lambda x, y: told(mm.independence_test(x, X["d"], **FEW)),
            "embed": lambda x, y: (float(mm.embed(x).norm()),),
        }[name](twice(X, times), twice(Y, times))
        for times in (1, 2)
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def pieces(frame: pd.DataFrame, rows: int) -> Any:
    return iter([frame[start : start + rows] for start in range(0, len(frame), rows)])


@pytest.mark.parametrize(
    "test",
    [
        lambda x, y: told(mm.two_sample_test(x, y, n_permutations=99, rng=0)),
        lambda x, y: told(mm.independence_test(x, y, n_permutations=99, rng=0)),
    ],
    ids=["two_sample_test", "independence_test"],
)
def test_how_a_stream_is_cut_changes_nothing(test):
    """Tables in pieces of 7 rows and of 19: blocks are regrouped."""
    x, y = columns(X, 0, 1), columns(X, 0, 1)[::-1]
    assert test(pieces(x, 7), pieces(y, 7)) == test(pieces(x, 19), pieces(y, 40))


def answers(fitted: dict[str, Any]) -> dict[str, list[float]]:
    """What each fitted object says about rows that come later."""
    return {
        "KernelGraph": list(fitted["KernelGraph"].query({"b": 0.5}).probabilities("c").values()),
        "KernelField": [float(fitted["KernelField"].query({0: 0.5})[1].mean())],
        "condition": fitted["condition"](given(X)[:3]).mean().ravel().tolist(),
        "DriftMonitor": fitted["DriftMonitor"].step(Y).pvalues.tolist(),
        "learn_kernel": [float(mm.embed(numbers(X), fitted["learn_kernel"].kernel).norm())],
        "logistic_regression": fitted["logistic_regression"].predict_proba(columns(X, 1, 2)[:3]).ravel().tolist(),
    }


def test_saving_loading_and_another_process_change_nothing(tmp_path):
    pair = X["a"].to_numpy(), X["b"].to_numpy()
    fitted = {
        "KernelGraph": mm.KernelGraph([("b", "c")]).fit(X),
        "KernelField": mm.KernelField([(0, 1)], relations=["r"], variables=["p", "q"]).fit({"r": pair}),
        "condition": mm.condition(given(X), columns(X, 2), ridge=0.01),
        "DriftMonitor": mm.stats.DriftMonitor.of(X, **FEW),
        "learn_kernel": mm.learn_kernel(numbers(X), draws=1, rng=0),
        "logistic_regression": mm.ep.models.logistic_regression(columns(X, 1, 2), X["c"] == "u"),
    }
    said = answers(fitted)
    for name, each in fitted.items():
        mm.save(each, tmp_path / f"{name}.meanmap")
    loaded = {name: mm.load(tmp_path / f"{name}.meanmap") for name in fitted}
    assert answers(loaded) == {name: pytest.approx(values, rel=1e-9) for name, values in said.items()}
    code = (
        "import json, sys; import meanmap as mm; from tests.test_invariances import answers; from pathlib import Path; "
        "print(json.dumps(answers({p.stem: mm.load(p) for p in Path(sys.argv[1]).iterdir()})))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    there = json.loads(done.stdout.splitlines()[-1])
    assert there == {name: pytest.approx(values, rel=1e-9) for name, values in said.items()}


def test_a_frame_whose_rows_are_elsewhere_is_refused():
    class Lazy(pd.DataFrame):
        npartitions = 3
        __dask_graph__ = None

    for function in (mm.chow_liu, mm.pc):
        with pytest.raises(KindError, match=r"(\w+) is a frame of Dask, whose rows are not in memory: pass \1\.comp"):
            function(Lazy(X))


def test_reading_changes_no_frame():
    x, y = X.copy(), Y.copy()
    for function in FUNCTIONS.values():
        function(x, y, SAME)
    pd.testing.assert_frame_equal(x, X)
    pd.testing.assert_frame_equal(y, Y)


def page() -> str:
    """The page of the documentation: the exceptions, and what was called with which changes."""
    lines = [
        "Invariances", "===========", "",
        "How data are written should not change an answer: units, names, containers, the order of columns. Each of",
        f"{len(FUNCTIONS)} functions was called with the original data and with {len(CHANGES)} changes of them. The",
        "answers agree up to rounding, with these exceptions.", "",
        *list_table(["change", "functions", "instead"], _exceptions(), option="widths: 30 45 25"),
        "``python -m tests.test_invariances`` writes this page; tests check each function with each change.", "",
        NOTES,
        "What was changed", "----------------", "", *(f"- {change}" for change in CHANGES), "",
        "Which functions were called", "---------------------------", "", f"{'; '.join(FUNCTIONS)}.", "",
    ]  # fmt: skip
    together = {row: [name for name, other in ROWS_OF.items() if other == row] for row in ROWS_OF.values()}
    named = [f"- {row}: {', '.join(f'``{name}``' for name in names)}" for row, names in together.items()]
    reasons = [f"- ``{name}`` {why}" + (";" if name != list(ELSEWHERE)[-1] else ".") for name, why in ELSEWHERE.items()]
    told = ["Names that stand for several functions:", "", *named, "", "Functions that were not called:", "", *reasons]
    return "\n".join([*lines, *told, ""])


def _exceptions() -> list[list[str]]:
    """A row for each change and each other outcome, with the functions that have it."""
    rows = []
    for change in CHANGES:
        found = {name: EXCEPTIONS[name, change] for name in FUNCTIONS if (name, change) in EXCEPTIONS}
        rows += [
            [change, "; ".join(n for n in found if found[n] == said), said] for said in dict.fromkeys(found.values())
        ]
    return rows


NOTES = """The order of rows changes no statistic; permutations are drawn by position, so p-values keep their
distribution but may change. Folds and landmarks are chosen by position, too: where rows are shuffled, kernels and
ridges that ``learn_kernel`` and graphs choose may change, and beliefs with them, by less than their errors. Arrays may
be lists, in float32, in Fortran order, strided, or JAX arrays. A column given twice
counts once in monitors, embeddings, and tests of samples and of independence. Times of one table may be written
in ISO 8601, with dots, or on the 12-hour clock. Answers do not depend on how a stream is cut into pieces, nor on saving
and loading fitted objects (graphs, fields, operators, monitors, kernels, models), here or in another process. Nor do
tests of two samples and of independence depend on how rows are divided among Parquet files, Dask partitions and workers
(p-values agree bit for bit: tests/stats/samples/test_two_sample_plan.py). The following are refused:

- arrays of another kind than those from which an element, operator or test was made, or named tables instead of arrays;
- a column that holds numbers in one sample and text, categories, truth values or dates in another;
- an array together with a table whose columns have names;
- times with a time zone together with times without one;
- numbers whose squares overflow, NaN and infinity;
- collections of Dask where rows must be in memory.

Tests also keep their levels on difficult data (heavy tails, ties, rare labels, labels with Zipf's distribution, a
different label in each row, 5 rows against 400, codes for missing values, values missing where they are large, more
columns than rows, zeros, dates): tests/stats/test_levels.py counts rejections in a thousand data sets of each. At level
.05, the 99% bounds are 33 to 69 rejections. Tests of two samples rejected 35 to 55 times, and 32 to 57 times with 5
rows against 400 (with 5 against 5000 and heavy tails 100 times in 2000, with bounds of 75 to 126). Tests of three
samples rejected 39 to 55 times, of independence 41 to 59, of joint independence 35 to 61, and of conditional
independence by ``"kci"`` 39 to 57. The exceptions:

- if each row has a different label, no test has any information, and none rejected;
- ``method="features"``, which is meant for many rows, is conservative with 70 rows: 6 (heavy tails) to 33 rejections;
- conditional tests by ``method="residuals"`` rejected 33 to 54 times, 45 with codes for missing values and 54 with
  zeros in x and y;
- conditional tests refuse more columns in z than the number of rows allows, and ``method="residuals"`` refuses labels.

User-defined kernels receive columns in their original units, as do the default kernels with ``scale=False``. Text that
looks like numbers is read as labels, as are categories and truth values, with a note if there are more than ten
different values, and tests refuse it if nearly every row has another one; ``mm.Schema.of(table, kinds={"zip":
"number"})`` reads it as numbers.
"""


def test_the_page_says_what_is_tested():
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
