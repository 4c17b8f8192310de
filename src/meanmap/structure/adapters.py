"""The tests of this library in the searches of other packages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.extras import optional
from meanmap.core.settings import is_number
from meanmap.core.tables.missing import present
from meanmap.core.types import Data
from meanmap.stats import conditional_independence_test, independence_test
from meanmap.stats.result import TestResult
from meanmap.stats.settings import check_draws
from meanmap.structure.conditional_tests import ConditionalTests
from meanmap.structure.kernel_tests import KernelTests

__all__ = ["ArrayTest", "CallableTest", "register_in_causal_learn", "tigramite_test"]


class CallableTest:
    """Conditional tests as one callable, as pgmpy's searches take it: `PC(ci_test=CallableTest(table))`.

    Parameters
    ----------
    table : DataFrame, mapping of columns, array, or source of tests
        The same data as for the search.
    settings
        Of `mm.structure.KernelTests`, such as method="residuals" or rng=0.

    Attributes
    ----------
    p_value_ : float
        Of the last call.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=100)
    >>> test = CallableTest({"a": a, "b": a**2, "c": rng.normal(size=100)}, rng=0)
    >>> test("a", "b", []), test("a", "c", ["b"], significance_level=0.01)
    (False, True)
    """

    def __init__(self, table: Data, **settings: Any):
        self._tests = table if isinstance(table, ConditionalTests) else KernelTests(table, **settings)
        self.p_value_ = 1.0
        self.effect_size_ = None  # some of pgmpy's rules read it; it is not known here

    def __call__(
        self, X: Data, Y: Any, Z: Any = (), data: Data = None, significance_level: float = 0.05, **_: Any
    ) -> bool:
        """Whether X and Y look independent given Z. `data`, which older versions of pgmpy pass, is not read again."""
        if isinstance(self._tests, KernelTests):
            check_draws(self._tests.n_permutations, significance_level)
        names = [str(name) for name in (X, Y, *Z)]
        unknown = next((name for name in names if name not in self._tests.names), None)
        if unknown is not None:
            raise InputError(f"the search asks about {unknown!r}; the test was given {', '.join(self._tests.names)}.")
        self.p_value_ = float(self._tests.pvalues([(names[0], names[1])], tuple(names[2:]))[0])
        return bool(self.p_value_ > significance_level)


def register_in_causal_learn(name: str = "meanmap", **settings: Any) -> str:
    """Make `pc(data, 0.05, "meanmap")` of causal-learn, and its other searches, ask the tests of this library.

    Parameters
    ----------
    name : str
        What causal-learn calls it.
    settings
        Of `mm.structure.KernelTests`, such as method="residuals" or rng=0.

    Returns
    -------
    str
        The name, so that `pc(data, 0.05, register_in_causal_learn())` works.
    """
    with optional("register_in_causal_learn"):
        from causallearn.utils import cit  # pyright: ignore[reportMissingImports]

    class Tests(cit.CIT_Base):
        """A test addressed by column numbers."""

        def __init__(self, data: Data, **other: Any):
            super().__init__(data, **other)
            self.method = name
            self._tests = KernelTests(data, **settings)

        def __call__(self, X: Data, Y: object, condition_set: object = None) -> float:
            """The p-value of columns X and Y given others."""
            (x,), (y,), given, key = self.get_formatted_XYZ_and_cachekey(X, Y, condition_set)
            if key not in self.pvalue_cache:
                names = self._tests.names
                self.pvalue_cache[key] = float(
                    self._tests.pvalues([(names[x], names[y])], tuple(names[i] for i in given))[0]
                )
            return self.pvalue_cache[key]

    cit.register_ci_test(name, Tests)
    return name


class ArrayTest:
    """Both tests as one function of arrays, `test(X, Y)` and `test(X, Y, Z)`, which returns a p-value, for dowhy.

    `falsify_graph(graph, frame, independence_test=ArrayTest(), conditional_independence_test=ArrayTest())`.

    Parameters
    ----------
    settings
        Of `mm.conditional_independence_test` and `mm.independence_test` both, such as missing="drop" or rng=0.

    Notes
    -----
    dowhy passes columns of a DataFrame of several kinds as arrays of objects: those that hold only numbers are read as
    numbers here, all others as labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=200)
    >>> x, y = z + rng.normal(size=(2, 200))
    >>> test = ArrayTest(rng=0)
    >>> test(x, y) < 0.01, test(x, y, z) > 0.05
    (True, True)
    """

    def __init__(self, **settings: Any):
        self.settings = settings

    def __call__(self, X: Data, Y: Data, Z: Data = None) -> float:
        """The p-value for X and Y, of one column or several each, given Z."""
        return self.result(_by_columns(X), _by_columns(Y), None if Z is None else _by_columns(Z)).pvalue

    def result(self, x: Data, y: Data, z: Data) -> TestResult:
        """The result of the test for tables that have been read."""
        if z is None:
            return independence_test(x, y, **self.settings)
        return conditional_independence_test(x, y, z, **self.settings)


def tigramite_test(**settings: Any) -> Any:
    """Both tests for the searches of tigramite: `PCMCI(dataframe, cond_ind_test=tigramite_test(rng=0))`.

    The value of a link is the statistic as a z-score: its distance above the null mean in null standard deviations.
    Variables that `data_type` calls discrete are read as labels.

    Parameters
    ----------
    settings
        As for `ArrayTest`.

    Returns
    -------
    CondIndTest
        Of tigramite.
    """
    with optional("a test of tigramite"):
        from tigramite.independence_tests.independence_tests_base import (  # pyright: ignore[reportMissingImports]
            CondIndTest,
        )

    class KernelTest(CondIndTest):
        """A test of rows whose value and p-value are requested one after the other."""

        def __init__(self):
            self._tests, self._pvalue = ArrayTest(**settings), 1.0
            self.two_sided = self.residual_based = self.recycle_residuals = False
            super().__init__(significance="analytic")

        @property
        def measure(self) -> str:
            """What tigramite calls it."""
            return "meanmap"

        def get_dependence_measure(self, array: Any, xyz: Any, data_type: Any = None) -> float:
            """The z-score of the statistic of the rows of `array`, which are x, y or z according to `xyz`."""
            discrete = np.zeros(np.shape(array), bool) if data_type is None else np.asarray(data_type) == 1
            sides = []
            for k in range(3):
                columns = {
                    f"x{j}": array[j].astype(str) if discrete[j].all() else array[j] for j in np.flatnonzero(xyz == k)
                }
                sides.append(columns or None)
            found = self._tests.result(*sides)
            self._pvalue, draws = found.pvalue, found.null.draws
            spread = float(draws.std())
            return (found.statistic - float(draws.mean())) / spread if spread > 0 else 0.0

        def get_analytic_significance(self, value: float, T: int, dim: int, xyz: object = None) -> float:
            """The p-value of the value that was requested last."""
            return self._pvalue

    return KernelTest()


def _by_columns(array: Data) -> Any:
    """An array of objects as a table of numbers and labels; everything else unchanged."""
    values = np.asarray(array)
    if values.dtype != object or values.ndim not in (1, 2):
        return array
    columns: Sequence[np.ndarray] = [values] if values.ndim == 1 else list(values.T)
    return {f"x{j}": _read(column) for j, column in enumerate(columns)}


def _read(column: np.ndarray) -> np.ndarray:
    held = column[present(column)]
    numbers = len(held) and all(map(is_number, held))
    return np.where(present(column), column, np.nan).astype(float) if numbers else column
