"""What should not matter does not: functions that take data, and changes of the data that say nothing new.

Each cell of the table is a function and a change. The answer is equal, to the rounding of the change, unless
`EXCEPTIONS` says otherwise and why; the page docs/invariances.rst prints the same table.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError

PAGE = Path(__file__).parents[1] / "docs" / "invariances.rst"
FEW: dict[str, Any] = {"n_permutations": 99, "rng": 0}
RNG = np.random.default_rng(2026)


def sample(n: int, shift: float) -> pd.DataFrame:
    """Two numbers that go together, a count, a label and a truth value; all exact in float32."""
    a = RNG.normal(shift, 1.0, n).astype(np.float32).astype(float)
    return pd.DataFrame(
        {
            "b": (a + RNG.normal(0, 0.5, n)).astype(np.float32).astype(float),
            "a": a,
            "d": RNG.poisson(3, n),
            "c": np.where(a + RNG.normal(0, 0.7, n) > shift, "u", "v"),
            "e": RNG.random(n) > 0.5,
        }
    )


X, Y = sample(40, 0.0), sample(36, 0.5)
Wrap = Callable[[pd.DataFrame], Any]


def told(result: Any) -> tuple[float, ...]:
    return result.pvalue, result.statistic


def drift(x: Any, y: Any) -> tuple[float, ...]:
    monitor = mm.stats.DriftMonitor.of(x, n_permutations=99, rng=0).step(y)
    return (float(monitor.pvalues[0]),)


def columns(frame: pd.DataFrame, *numbers: int) -> pd.DataFrame:
    return frame[[frame.columns[j] for j in numbers]]


def edges(graph: Any, frame: pd.DataFrame) -> tuple[Any, ...]:
    """By position, so that names do not matter."""
    at = {str(name): j for j, name in enumerate(frame.columns)}
    found = sorted(sorted((at[str(s)], at[str(t)])) for s, t in graph.to_networkx().edges())
    return tuple(end for edge in found for end in edge)


def numbers(x: pd.DataFrame) -> pd.DataFrame:
    """All columns but the labels and the truth values."""
    return columns(x, *(j for j in range(x.shape[1]) if j not in (3, 4)))


def given(x: pd.DataFrame) -> pd.DataFrame:
    """A number and the label, and what was added."""
    return columns(x, 1, 3, *range(5, x.shape[1]))


def mean_given(x: Any, y: Any, at: Any) -> tuple[float, ...]:
    return tuple(mm.condition(x, y, ridge=0.01)(at).mean().ravel())


# Each takes two frames and what turns a frame into what is passed on. Columns of the first are known by position.
FUNCTIONS: dict[str, Callable[[pd.DataFrame, pd.DataFrame, Wrap], tuple[Any, ...]]] = {
    "two_sample_test": lambda x, y, wrap: told(mm.two_sample_test(wrap(numbers(x)), wrap(alike(y, x)), **FEW)),
    "two_sample_test, median": lambda x, y, wrap: told(
        mm.two_sample_test(wrap(numbers(x)), wrap(alike(y, x)), "median", **FEW)
    ),
    "two_sample_test, mixed": lambda x, y, wrap: told(mm.two_sample_test(wrap(x), wrap(y), **FEW)),
    "k_sample_test": lambda x, y, wrap: told(mm.k_sample_test([wrap(x), wrap(y), wrap(x)], **FEW)),
    "DriftMonitor": lambda x, y, wrap: drift(wrap(x), wrap(y)),
    "independence_test": lambda x, y, wrap: told(mm.independence_test(wrap(given(x)), wrap(columns(x, 0, 2)), **FEW)),
    "conditional_independence_test": lambda x, y, wrap: told(
        mm.conditional_independence_test(wrap(columns(x, 0)), wrap(columns(x, 2)), wrap(given(x)), **FEW)
    ),
    "joint_independence_test": lambda x, y, wrap: told(mm.stats.joint_independence_test(wrap(x), **FEW)),
    "chow_liu": lambda x, y, wrap: edges(mm.chow_liu(wrap(x)), x),
    "pc": lambda x, y, wrap: edges(mm.pc(wrap(x), rng=0), x),
    "embed": lambda x, y, wrap: (float(mm.embed(wrap(x)).norm()),),
    "default_kernel": lambda x, y, wrap: (float(np.sum(mm.default_kernel(wrap(x))(wrap(x)))),),
    "condition": lambda x, y, wrap: mean_given(wrap(given(x)), wrap(columns(x, 2)), wrap(given(x)[:3])),
    "KernelGraph": lambda x, y, wrap: tuple(
        mm.KernelGraph([(x.columns[0], x.columns[3])])
        .fit(wrap(columns(x, 0, 3)))
        .query({x.columns[0]: float(x.iloc[3, 0])})
        .probabilities(x.columns[3])
        .values()
    ),
}


def alike(y: pd.DataFrame, x: pd.DataFrame) -> pd.DataFrame:
    """The numbers of one frame in another, in that one's order."""
    return y[[name for name in y if name in numbers(x)]]


class Odd(pd.DataFrame):
    """A subclass, as other packages have them."""

    @property
    def _constructor(self):
        return Odd


def both(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame, pd.DataFrame], Any]:
    return lambda x, y: (change(x), change(y))


def structured(frame: pd.DataFrame) -> np.ndarray:
    return (
        frame.astype({name: "U1" for name in frame if frame[name].dtype == object})
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
    "an odd index": (both(lambda frame: Odd(frame).set_index(np.zeros(len(frame)))), SAME),
    "polars": (both(lambda frame: frame), lambda frame: pl.DataFrame({n: frame[n].to_numpy() for n in frame})),
    "a dictionary of lists": (both(lambda frame: frame), lambda frame: frame.to_dict("list")),
    "a structured array": (both(lambda frame: frame), structured),
    "a Table": (both(lambda frame: frame), mm.Table.of),
    "strided, read-only columns": (both(lambda frame: frame), strided),
}
REFUSED = "refused by name"
EXCEPTIONS = {
    (name, "a constant column more"): REFUSED
    for name in ("conditional_independence_test", "joint_independence_test", "chow_liu", "pc")
}


@cache
def plainly(name: str) -> tuple[Any, ...]:
    return FUNCTIONS[name](X, Y, SAME)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_says_nothing_new_changes_nothing(name, change):
    alter, wrap = CHANGES[change]
    x, y = alter(X.copy(), Y.copy())
    if EXCEPTIONS.get((name, change)) == REFUSED:
        with pytest.raises(ColumnError, match="constant"):
            FUNCTIONS[name](x, y, wrap)
        return
    found = FUNCTIONS[name](x, y, wrap)
    assert found == pytest.approx(plainly(name), rel=1e-3 if "+" in change else 1e-5, abs=1e-9)


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


@pytest.mark.parametrize("name", ["two_sample_test", "two_sample_test, mixed", "k_sample_test", "chow_liu", "embed"])
def test_statistics_do_not_know_the_order_of_rows(name):
    """Permutations are drawn by position, so that p-values are equal in law only."""
    found = FUNCTIONS[name](X[::-1], Y[::-1], SAME)
    assert found[1:] == pytest.approx(plainly(name)[1:], rel=1e-5)


def test_reading_changes_no_frame():
    x, y = X.copy(), Y.copy()
    for function in FUNCTIONS.values():
        function(x, y, SAME)
    pd.testing.assert_frame_equal(x, X)
    pd.testing.assert_frame_equal(y, Y)


def page() -> str:
    """The table of the documentation."""
    lines = [
        "What does not matter", "====================", "",
        "Each function was given the same data as they are and changed. = says that the answer is the same to the",
        "rounding of the change. Written by ``python -m tests.test_invariances``; the tests run each cell.", "",
        ".. list-table::", "   :header-rows: 1", "", "   * - change", *(f"     - {name}" for name in FUNCTIONS),
    ]  # fmt: skip
    for change in CHANGES:
        lines += [f"   * - {change}", *(f"     - {EXCEPTIONS.get((name, change), '=')}" for name in FUNCTIONS)]
    return "\n".join([*lines, "", NOTES])


NOTES = """The order of rows changes no statistic; permutations are drawn by position, so that p-values are the same in
law. Arrays may be lists, of float32, in Fortran order, strided, or JAX's. What is refused, in words:

- a column that holds numbers in one sample and text, categories, truth values or dates in another;
- an array beside a table whose columns have names;
- numbers whose squares overflow, NaN and infinity.

Kernels of your own read the units as they come, as do the defaults with ``scale=False``. Text that looks like numbers
is a label, as are categories and truth values: ``mm.Schema.of(table, kinds={"zip": "number"})`` says otherwise.
"""


def test_the_page_says_what_is_tested():
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
