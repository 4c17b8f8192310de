"""The tests of this library inside other packages' searches."""

from typing import Any

from meanmap.core.errors import InputError, KindError
from meanmap.core.types import Data
from meanmap.stats.settings import check_draws
from meanmap.structure.conditional_tests import ConditionalTests
from meanmap.structure.kernel_tests import KernelTests

__all__ = ["CallableTest", "register_in_causal_learn"]


class CallableTest:
    """Conditional tests as one callable, as pgmpy's searches take it: `PC(ci_test=CallableTest(table))`.

    Parameters
    ----------
    table : DataFrame, mapping of columns, array, or source of tests
        The data that the search is given too.
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
        self.effect_size_ = None  # read by some of pgmpy's rules, and not known here

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
        What causal-learn is to call it.
    settings
        Of `mm.structure.KernelTests`, such as method="residuals" or rng=0.

    Returns
    -------
    str
        The name, so that `pc(data, 0.05, register_in_causal_learn())` works.
    """
    try:
        from causallearn.utils import cit  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise KindError("causal-learn is not installed here: type pip install causal-learn.") from error

    class Tests(cit.CIT_Base):
        """A test by numbers of columns."""

        def __init__(self, data: Data, **other: Any):
            super().__init__(data, **other)
            self.method = name
            self._tests = KernelTests(data, **settings)

        def __call__(self, X: Data, Y: Any, condition_set: Any = None) -> float:
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
