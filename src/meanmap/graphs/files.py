"""Graphs in files: GraphML (edges and names) and UAI (factors of a Markov network with discrete variables)."""

import gzip
import io
import math
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from meanmap.core.arrays import check_finite
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.extras import optional
from meanmap.core.language import a_type
from meanmap.core.saved.files import write_whole
from meanmap.core.types import GraphLike
from meanmap.graphs.graph import Graph
from meanmap.graphs.partial import PDAG
from meanmap.graphs.sum_table import SumTable

__all__ = ["Factors", "read_graphml", "read_uai", "write_graphml", "write_uai"]

# The most states of one variable, and the most axes of a NumPy array.
MOST_STATES, MOST_AXES = 2**31, 64


def read_graphml(path: str | Path) -> Graph:
    """The graph in a GraphML file, with its node ids as names.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "chain.graphml")
    >>> write_graphml(Graph.of([("a", "b"), ("b", "c")]), path)
    >>> read_graphml(path).names
    ('a', 'b', 'c')
    """
    with optional("GraphML"):
        import networkx

    try:
        graph = networkx.read_graphml(path)
    except OSError:
        raise
    except Exception as error:  # NetworkX and its parsers raise a dozen kinds of errors for damaged files
        raise InputError(f"{path} is not a GraphML file: {type(error).__name__}: {error}.") from error
    try:
        return Graph.of(graph)
    except KindError as error:  # loops, or several edges between two nodes
        raise InputError(f"{path} cannot be used: {error}") from None


def write_graphml(graph: GraphLike, path: str | Path) -> None:
    """Write a Graph, a PDAG, a NetworkX graph or a list of edges as GraphML. Names are written as text.

    An undirected edge of a PDAG is written in both directions, with the attribute directed=False, and `doubted` as an
    attribute of the graph: `PDAG.of(networkx.read_graphml(path))` is the same graph.
    """
    with optional("GraphML"):
        import networkx

    graph = graph if isinstance(graph, PDAG) else Graph.of(graph)
    texts = [str(name) for name in graph.names]
    if doubled := next((text for text in texts if texts.count(text) > 1), None):
        raise InputError(f"graph has two nodes called {doubled!r} when written as text. Rename one of them.")
    whole = graph.to_networkx()
    content = io.BytesIO()
    networkx.write_graphml(networkx.relabel_nodes(whole, {name: str(name) for name in whole}), content)
    packed = str(path).endswith(".gz")  # as networkx reads such a name
    write_whole(path, gzip.compress(content.getvalue()) if packed else content.getvalue())


@dataclass(frozen=True, eq=False)
class Factors:
    """A discrete Markov network, p(x) ∝ Π_c ψ_c(x_c).

    Attributes
    ----------
    cardinalities : array (n,)
        The number of states of each variable; variables are 0, 1, ..., n − 1.
    scopes : tuple of tuples of int
        The variables of each factor.
    tables : tuple of arrays
        ψ_c, one axis for each variable of its scope.
    names : tuple
        The names of the variables; by default their numbers.
    labels : mapping
        The labels of states, by the names of those variables that have labels.
    """

    cardinalities: np.ndarray
    scopes: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]
    names: tuple[Hashable, ...] = ()
    labels: Mapping[Hashable, tuple] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.cardinalities)

    def __post_init__(self):
        object.__setattr__(self, "cardinalities", np.asarray(self.cardinalities, dtype=np.int64))
        n = len(self.cardinalities)
        object.__setattr__(self, "names", tuple(self.names) or tuple(range(n)))
        if len(set(self.names)) != n:
            raise InputError(f"names are {self.names}; expected {n} different ones, one for each variable.")
        for number, (scope, table) in enumerate(zip(self.scopes, self.tables, strict=True)):
            if len(set(scope)) < len(scope) or not all(0 <= i < n for i in scope):
                raise InputError(
                    f"factor {number} is on variables {scope}; expected different numbers from 0 to {n - 1}."
                )
            shape = tuple(int(self.cardinalities[i]) for i in scope)
            if np.shape(table) != shape:
                raise ShapeError(
                    f"factor {number} has shape {np.shape(table)}; expected {shape}, the states of {scope}."
                )
            if not isinstance(table, SumTable):  # which has checked its values, and is never written out
                check_finite(table, f"factor {number}")


def read_uai(path: str | Path) -> Factors:
    """The Markov network in a UAI file (of the Uncertainty in Artificial Intelligence inference competitions).

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "two.uai")
    >>> write_uai(Factors([2, 3], ((0, 1),), (np.ones((2, 3)),)), path)
    >>> read_uai(path).tables[0].shape
    (2, 3)
    """
    try:
        words = iter(Path(path).read_text(encoding="utf-8").split())
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a UAI file: it is not text.") from None

    def number(kind, what, least: float = 0, most: float = MOST_STATES):
        word = next(words, None)
        if word is None:
            raise InputError(f"{path} ends early: {what} is missing.")
        try:
            found = kind(word)
        except ValueError:
            found = None
        if found is None or not least <= found <= most:
            raise InputError(f"{path} holds {word[:40]!r} where {what} was expected.")
        return found

    header = next(words, "")
    if header.upper() not in ("MARKOV", "BAYES"):
        raise InputError(f"{path} begins with {header!r}; expected a UAI file, which begins with MARKOV or BAYES.")
    cardinalities = [
        number(int, "the number of states of a variable", 1) for _ in range(number(int, "the number of variables"))
    ]
    scopes = []
    for _ in range(number(int, "the number of factors")):
        scopes.append(tuple(number(int, "a variable") for _ in range(number(int, "the size of a factor"))))
    tables = []
    for scope in scopes:
        if not all(0 <= i < len(cardinalities) for i in scope):
            raise InputError(
                f"{path} has a factor on variables {scope}; expected numbers from 0 to {len(cardinalities) - 1}."
            )
        shape = tuple(cardinalities[i] for i in scope)
        size = number(int, "the number of entries of a table")
        if size != math.prod(shape) or len(shape) > MOST_AXES:
            raise InputError(
                f"{path} has a table of {size} entries on variables {scope[:MOST_AXES]}; expected {math.prod(shape)}, "
                f"on at most {MOST_AXES} variables."
            )
        values = [number(float, "an entry of a table", 0.0, sys.float_info.max) for _ in range(size)]
        tables.append(np.array(values).reshape(shape))
    return Factors(np.array(cardinalities), tuple(scopes), tuple(tables))


def write_uai(factors: Factors, path: str | Path) -> None:
    """Write a Markov network as a UAI file; numbers keep all their digits."""
    if not isinstance(factors, Factors):
        raise KindError(f"factors is {a_type(factors)}; expected mm.graphs.Factors.")
    lines = [
        "MARKOV",
        str(len(factors.cardinalities)),
        " ".join(map(str, factors.cardinalities)),
        str(len(factors.scopes)),
    ]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in factors.scopes]
    for table in factors.tables:
        lines += ["", str(np.size(table)), " ".join(repr(float(value)) for value in np.ravel(table))]
    write_whole(path, "\n".join(lines) + "\n")
