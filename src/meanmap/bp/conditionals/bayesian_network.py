"""Bayesian networks: each variable given its parents, on a graph whose arrows may meet."""

from collections.abc import Hashable

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn, learned_columns
from meanmap.bp.conditionals.fitted_bayesian import FittedBayesianNetwork
from meanmap.bp.conditionals.given_parents import GivenParents, joined
from meanmap.bp.conditionals.judged import ArrowScores, judged
from meanmap.bp.conditionals.network_rows import parents_of
from meanmap.core.errors import EmptyError, InputError
from meanmap.core.progress import track
from meanmap.core.settings import whole_number
from meanmap.core.types import Data, GraphLike
from meanmap.graphs.orientation import consistent_extension, find_cycle
from meanmap.graphs.partial import PDAG

__all__ = ["BayesianNetwork"]

LEAST_ROWS = 20


class BayesianNetwork:
    """Each variable given its parents: numbers, labels and times on a directed graph, whose arrows may meet.

    `model = mm.bp.BayesianNetwork(graph).fit(table)` learns; `model.query({"b": 1.0}, ["a"])` is what is believed once
    b is seen to be 1, `model.do({"b": 1.0}, ["a"])` what follows when b is set to 1.

    Parameters
    ----------
    graph : PDAG, networkx.DiGraph or list of arrows (from, to)
        As `mm.pc` finds it, or as you know it. Edges without a direction are taken in some direction that agrees with
        all arrows, which does not matter for `query`; `do` refuses where it would matter.

    Notes
    -----
    Every number is a regression on its parents, a straight line with a kernel's part where that predicts better, plus
    residuals drawn from rows with parents like these; for labels it gives shares. The kernel is a sum of one for each
    parent unless one of all together clearly predicts better: what adds up is known where parents are set to values
    that were seldom seen together (Hastie & Tibshirani 1986). Of more than 50 labels the others are one, whose
    probability they share as often as they came. Where all that matters and is not known is a label, answers are exact,
    on a tree of cliques. Elsewhere they come from draws along the arrows, exact as there are more of them; evidence
    weighs them by its likelihood (Fung & Chang 1990; Shachter & Peot 1990). Reports say which it was. Variables that do
    not matter are left out. Effects are those of the truncated factorisation (Pearl 2009, section 3.2), if no common
    cause is missing from the graph.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=800)
    >>> x = z + rng.normal(size=800)
    >>> y = x + 2 * z + rng.normal(size=800)
    >>> model = mm.bp.BayesianNetwork([("z", "x"), ("z", "y"), ("x", "y")]).fit({"x": x, "y": y, "z": z})
    >>> seen, done = model.query({"x": 1.0}, ["y"], rng=0), model.do({"x": 1.0}, ["y"], rng=0)
    >>> bool(abs(seen["y"].mean() - 2) < 0.25), bool(abs(done["y"].mean() - 1) < 0.25)
    (True, True)
    """

    def __init__(self, graph: GraphLike):
        self.graph = PDAG.of(graph)
        cycle = find_cycle(self.graph)
        if cycle:
            raise InputError(f"the arrows of the graph have the cycle {' → '.join(map(str, cycle))}; expected none.")
        self.directed = consistent_extension(self.graph)

    def fit(self, data: Data) -> "FittedBayesianNetwork":
        """Learn each variable given its parents, from the rows in which all of them are there.

        Parameters
        ----------
        data : table
            With a column of numbers, labels, truth values or times for each variable; cells may be missing. In memory,
            in Parquet files or with Dask; of more than 100,000 rows so many are looked at, drawn by their numbers.

        Returns
        -------
        FittedBayesianNetwork
            Always the same for the same table.

        Notes
        -----
        Each law is learned from up to 4000 rows, spread over the table, by a forest among others, which cannot be added
        to: new rows ask for a new fit, which a million rows make hardly longer.
        """
        columns, numbers = self._read(data)
        learned = {}
        for name in track(list(self.graph.names), "learning variables"):
            rows = joined([numbers[p] for p in parents_of(self.directed, name)], len(numbers[name]))
            there = ~np.isnan(np.concatenate([rows, numbers[name]], axis=1)).any(axis=1)
            if there.sum() < LEAST_ROWS:
                together = f"{name!r} and its parents are there together in {there.sum()} rows"
                raise EmptyError(f"{together}; expected at least {LEAST_ROWS}.")
            learned[name] = GivenParents.fit(rows[there], numbers[name][there])
        return FittedBayesianNetwork(self.graph, self.directed, columns, learned)

    def judge(self, data: Data, folds: int = 5) -> ArrowScores:
        """Whether each arrow is worth it: log densities of rows that were left out, with it and without.

        Parameters
        ----------
        data : table
            As for `fit`.
        folds : int
            Parts of the rows, each left out once.

        Returns
        -------
        ArrowScores
            For each variable what its parents are worth together, beside a straight line with normal noise, and for
            each arrow what it adds to the others: `print`, `.plot()`, `.to_networkx()`.

        Notes
        -----
        Takes `folds` times as long as a fit for each parent and once more.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> a, b, noise = rng.normal(size=(3, 300))
        >>> found = BayesianNetwork([("a", "c"), ("b", "c")]).judge({"a": a, "b": b, "c": a**2 + 0.3 * noise}, 3)
        >>> found.arrows["a", "c"].mean > 0.5, found.arrows["b", "c"].mean > 0.1
        (True, False)
        """
        _, numbers = self._read(data)
        return judged(self.directed, numbers, whole_number(folds, "folds", 2))

    def _read(self, data: Data) -> tuple[dict[Hashable, CodedColumn], dict[Hashable, np.ndarray]]:
        raw, columns, numbers = learned_columns(data, list(map(str, self.graph.names))), {}, {}
        for name in self.graph.names:
            if str(name) not in raw:
                raise InputError(f"data has no column {name!r}; it has {', '.join(map(repr, raw))}.")
            columns[name] = CodedColumn.of(name, raw[str(name)])
            if columns[name].column.distinct == 1:
                raise InputError(
                    f"data[{name!r}] has the same value in all rows, which tells nothing: leave it out of the graph."
                )
            numbers[name] = columns[name].read(raw[str(name)], "data")
        return columns, numbers

    def __repr__(self) -> str:
        return f"BayesianNetwork({len(self.graph.names)} variables, {len(self.directed.directed)} arrows)"
