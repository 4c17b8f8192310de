"""Bayesian networks: each variable given its parents, on a graph whose arrows may meet."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.bp.conditionals.adjustment import adjustment
from meanmap.bp.conditionals.causal_effect import CausalEffect
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.effect_of import effect_of
from meanmap.bp.conditionals.fitted_bayesian import FittedBayesianNetwork
from meanmap.bp.conditionals.identified import refuse_undecided
from meanmap.bp.conditionals.judged import ArrowScores, judged
from meanmap.bp.conditionals.laws import law_given
from meanmap.bp.conditionals.network_rows import parents_of
from meanmap.core.errors import EmptyError, InputError
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.tables.filling import columns_of
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, GraphLike, Seed
from meanmap.graphs.orientation import consistent_extension, find_cycle
from meanmap.graphs.partial import PDAG

__all__ = ["BayesianNetwork"]

# Of so many rows at most counts and lines are learned; for effects and judgements, which learn several times, of fewer.
LEAST_ROWS, MOST_ROWS = 20, 1_000_000


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
    residuals drawn from rows with parents like these, of a size that is a regression on the parents where that predicts
    better. The kernel is a sum of one for each parent unless one of all
    together clearly predicts better: what adds up is known where parents are set to values that were seldom seen
    together (Hastie & Tibshirani 1986). Labels whose parents are labels are counted in all rows, under a Dirichlet
    prior about what fewer parents and the own part of each say, whose size exceeds one row only where left-out rows
    gain by it; labels with numbers among their
    parents are a multinomial logistic regression, with a kernel's part where left-out rows gain by it, which beyond the
    data shrinks towards the shares of all rows, with a note. Of more than 50 labels the others are one, whose
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

    @one_blas_thread()
    def fit(
        self, data: Data, *, missing: str = "pairwise", kinds: Mapping[Any, Any] | None = None
    ) -> "FittedBayesianNetwork":
        """Learn each variable given its parents, from the rows in which all of them are there.

        Parameters
        ----------
        data : table
            With a column of numbers, labels, truth values or times for each variable; cells may be missing. In memory,
            in Parquet files or with Dask; of more than a million rows, a million are read, drawn by their numbers.
        missing : {"pairwise", "raise", "drop", "category"}
            What happens to missing values: a variable is learned from the rows where it is there with its parents; an
            error; the row is left out altogether; or missing labels are a label of their own.
        kinds : mapping of variable to kind, optional
            What columns mean where their data type does not say, such as {"zip": "label"}: see [`Schema.of`][].

        Returns
        -------
        FittedBayesianNetwork
            Always the same for the same table.

        Notes
        -----
        Counts and straight lines are of all rows that are looked at, `fitted.rows` says of how many; kernels and
        residuals are of up to 4000, spread over the table. Forests among them cannot be added to: new rows ask for a
        new fit. A million rows of six variables took 20 processor seconds and one gigabyte.
        """
        table, raw, notes = self._read(data, missing, kinds, most=MOST_ROWS)
        numbers, learned = table.standardised(raw), {}
        for name in track(list(self.graph.names), "learning variables"):
            above = [numbers[parent] for parent in parents_of(self.directed, name)]
            there = ~np.isnan(np.concatenate([*above, numbers[name]], axis=1)).any(axis=1)
            if there.sum() < LEAST_ROWS:
                together = f"{name!r} and its parents are there together in {there.sum()} rows"
                raise EmptyError(f"{together}; expected at least {LEAST_ROWS}.")
            learned[name] = law_given([each[there] for each in above], numbers[name][there])
        return FittedBayesianNetwork(self.graph, self.directed, table, learned, notes)

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
        table, raw, _ = self._read(data)
        return judged(self.directed, table.standardised(raw), whole_number(folds, "folds", 2))

    @one_blas_thread()
    def effect(
        self,
        data: Data,
        on: Hashable,
        *,
        of: Hashable,
        from_: object,
        to: object,
        missing: str = "pairwise",
        kinds: Mapping[Any, Any] | None = None,
        rng: Seed = None,
    ) -> CausalEffect:
        """What setting a variable to one value and not to another does to a second one, with intervals.

        Parameters
        ----------
        data : table
            As for `fit`, of up to 100,000 rows. It may lack variables of the graph: the effect is refused if it is
            not identified without them.
        on : name
            The outcome: a number, whose mean, quantiles and distribution are compared, or a label, whose shares are.
        of : name
            What is set.
        from_, to : values of it
            Labels with 20 rows at least, or numbers within the range of the rows.
        missing : {"pairwise", "raise", "drop", "category"}, or list of marks
            As for `fit`: rows with gaps in these variables are left out, or missing labels are a label of their own.
            Marks, such as [-999], stand for missing values.
        kinds : mapping of variable to kind, optional
            As for `fit`, such as {"site": "label"} where sites are numbered; a note names columns where this may be so.
        rng : None, int, Generator or JAX key
            What repeats the intervals.

        Returns
        -------
        CausalEffect
            `print` shows it; `.difference()`, `.quantiles(q)`, `.interval(confidence)`, `.arms`, `.adjusted`.

        Notes
        -----
        The graph says what is adjusted for (Henckel et al. 2022). The outcome is regressed on this and the cause, by a
        line, smooth and rough parts, and jumps and bends in numbers where these are clear; residuals are weighted so
        that averages over rows are those with the cause set (Hirshberg & Wager 2021). Intervals count noise, which rows
        came, and what the parts may have missed. They are too narrow where a jump or a bend that is too small to be
        seen lies at or between the two values: cut the cause into labels if you know of one. Nothing is learned but
        what the effect rests on: unlike `do()` it needs the rows, not a fitted network.
        The estimate is the same for the same table; only the ends of intervals have random draws in them.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(size=400)
        >>> t = rng.random(400) < 1 / (1 + np.exp(-z))
        >>> table = {"z": z, "t": np.where(t, "new", "old"), "y": 0.5 * t + z + rng.normal(size=400)}
        >>> graph = [("z", "t"), ("z", "y"), ("t", "y")]
        >>> found = BayesianNetwork(graph).effect(table, "y", of="t", from_="old", to="new", rng=0)
        >>> found.adjusted, bool(found.interval()[0] < 0.5 < found.interval()[1])
        (('z',), True)
        """
        for name in (on, of):
            if name not in self.graph.names:
                raise InputError(f"the graph has no {name!r}; it has {', '.join(map(repr, self.graph.names))}.")
        if on == of:
            raise InputError(f"on and of are both {on!r}; expected an outcome and another variable, which is set.")
        refuse_undecided(self.graph, [of], [on])
        names = list(self.graph.names)
        whole = lies_elsewhere(data) or isinstance(data, np.ndarray)
        there = names if whole else [name for name in names if str(name) in columns_of(data, "data")]
        adjusted = adjustment(self.directed, of, on, there)
        table, numbers, told = self._read(data, missing, kinds, (of, on, *(adjusted or ())))
        return effect_of(table, numbers, on, of, (from_, to), adjusted, Rng.of(rng).generator, told)

    def _read(
        self,
        data: Data,
        missing: str = "pairwise",
        kinds: Mapping[Any, Any] | None = None,
        names: Sequence[Hashable] | None = None,
        most: int | None = None,
    ) -> tuple[CodedTable, dict[Hashable, np.ndarray], tuple[str, ...]]:
        """How columns are read, numbers of each variable in its unit, and notes."""
        table, numbers, notes = CodedTable.of(data, names or self.graph.names, missing, kinds, most=most)
        constant = next((name for name, each in table.columns.items() if each.column.distinct == 1), None)
        if constant is not None:
            raise InputError(
                f"data[{constant!r}] has the same value in all rows, which tells nothing: leave it out of the graph."
            )
        return table, numbers, notes

    def __repr__(self) -> str:
        return f"BayesianNetwork({len(self.graph.names)} variables, {len(self.directed.directed)} arrows)"
