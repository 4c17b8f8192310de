"""The question of the PC algorithm: are x and y independent given z? A graph or a function of data answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.extras import optional
from meanmap.core.settings import is_number
from meanmap.core.tables.table import Table
from meanmap.core.types import Data, GraphLike
from meanmap.graphs import PDAG
from meanmap.graphs.orientation import equivalence_class

__all__ = ["ConditionalTests", "DSeparation", "FunctionTests", "Pair", "Tests", "checked_pvalue"]

Pair = tuple[str, str]
Answered = Sequence[Any] | np.ndarray


@runtime_checkable
class ConditionalTests(Protocol):
    """Anything with these attributes and methods is a source of conditional independences for `mm.pc`.

    With `n`, the number of rows, and `rows(index)`, the same tests on some of them, it can be asked for half-samples
    too.

    Attributes
    ----------
    names : tuple of str
        The variables.
    most_given : int
        The most variables it can condition on.
    """

    names: tuple[str, ...]
    most_given: int

    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """A p-value for each pair, all given the same variables, so that work can be shared."""
        ...


class Tests(ABC):
    """The tests of a search, for whatever source was passed.

    Attributes
    ----------
    names : tuple of str
        The variables.
    most_given : int
        The most variables it can condition on.
    n : int
        The number of rows; 0 where there are none to choose from.
    least : float
        The smallest p-value of permutations; 0 where none is known.
    """

    names: tuple[str, ...]
    most_given: int
    n: int = 0
    least: float = 0.0

    @classmethod
    def of(cls, source: ConditionalTests) -> "Tests":
        """A source of conditional independences, as the search uses it."""
        return source if isinstance(source, Tests) else Passed(source)

    @abstractmethod
    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """A p-value for each pair, all given the same variables."""

    def answers(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> Answered:
        """An answer for each pair, in any thread or process, before any notes are made."""
        return self.pvalues(pairs, given)

    def told(self, pairs: Sequence[Pair], given: tuple[str, ...], answers: Sequence[Any]) -> Answered:
        """The p-values of answers, wherever they were computed; notes are made of them."""
        return answers

    def functions(self) -> list[Pair]:
        """Pairs (a, b) of variables such that a is a function of b, as far as this is known."""
        return []

    def notes(self) -> list[str]:
        """What the reader of the answers should know about the data."""
        return []

    def crowded(self) -> str:
        """Which variable leaves little room for others to be given, and what to do; empty where none does."""
        return ""

    def rows(self, index: np.ndarray) -> "Tests":
        """The tests on some of the rows."""
        raise KindError(f"half_samples needs to select rows, but {self.called} has no method rows(index).")

    @property
    def called(self) -> str:
        """What messages call it."""
        return type(self).__name__


class Passed(Tests):
    """A user's own source of conditional independences, which may be able to select rows."""

    def __init__(self, source: Any):
        self._source, self.names, self.most_given = source, source.names, source.most_given
        self.n = getattr(source, "n", 0)

    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """The answers of the source."""
        return self._source.pvalues(pairs, given)

    def rows(self, index: np.ndarray) -> "Tests":
        """The source restricted to some of its rows."""
        return Tests.of(self._source.rows(index))

    def __copy__(self) -> "Passed":
        return Passed(copy(self._source))

    @property
    def called(self) -> str:
        """What messages call the source."""
        return type(self._source).__name__


class DSeparation(Tests):
    """The conditional independences of a known graph: 1 for independent (d-separated), 0 for dependent.

    Parameters
    ----------
    dag : PDAG, networkx.DiGraph or list of pairs (from, to)
        The directed acyclic graph.

    Examples
    --------
    >>> truth = DSeparation([("a", "b"), ("c", "b")])
    >>> truth.pvalues([("a", "c")], ()).tolist(), truth.pvalues([("a", "c")], ("b",)).tolist()
    ([1.0], [0.0])
    """

    def __init__(self, dag: GraphLike):
        graph: Any = PDAG.of(dag)
        equivalence_class(graph)  # refuses cycles and undirected edges
        self.names = tuple(graph.names)
        self.most_given = len(self.names)
        self._graph = graph.to_networkx()

    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """Whether each pair is d-separated by the given variables (Pearl 1988)."""
        with optional("d-separation"):
            import networkx

        return np.array([float(networkx.is_d_separator(self._graph, {a}, {b}, set(given))) for a, b in pairs])


class FunctionTests(Tests):
    """Any function of three samples, used as a test instead of those of this library.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or array
        The data.
    function : callable (x, y, z) -> p-value or TestResult
        x and y are columns; z is a table of columns (a dict), or None at first, when nothing is given.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import pearsonr
    >>> def correlation(x, y, z):
    ...     if z is not None:
    ...         z = np.column_stack([np.ones(len(x)), *z.values()])
    ...         x, y = (v - z @ np.linalg.lstsq(z, v, rcond=None)[0] for v in (x, y))
    ...     return pearsonr(x, y).pvalue
    >>> tests = FunctionTests({"a": [1.0, 2, 3, 4], "b": [1.0, 2, 3, 5]}, correlation)
    >>> bool(tests.pvalues([("a", "b")], ())[0] < 0.05)
    True
    """

    def __init__(self, table: Data, function: Callable[[Any, Any, Any], Any]):
        self._table, self._function = Table.of(table), function
        self.names, self.n = self._table.names, len(self._table)
        self.most_given = len(self.names)

    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """The function's p-values."""
        z = {name: self._table[name] for name in given} if given else None
        answers = [self._function(self._table[a], self._table[b], z) for a, b in pairs]
        return np.array(
            [
                checked_pvalue(getattr(answer, "pvalue", answer), pair)
                for answer, pair in zip(answers, pairs, strict=True)
            ]
        )

    def rows(self, index: np.ndarray) -> "FunctionTests":
        """The test on some of the rows."""
        table = Table({name: self._table[name][index] for name in self.names})
        return FunctionTests(table, self._function)


def checked_pvalue(value: object, pair: Pair) -> float:
    """A p-value as a float; anything else, NaN included, is refused because it would look like a dependence."""
    if not is_number(value) or not 0 <= float(value) <= 1:
        raise InputError(f"the test of {pair[0]!r} and {pair[1]!r} returned {value!r}; expected a p-value from 0 to 1.")
    return float(value)
