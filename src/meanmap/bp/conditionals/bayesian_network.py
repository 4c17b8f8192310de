"""Bayesian networks: each variable given its parents, on a graph whose arrows may meet."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.bp.conditionals.adjustment import adjustment
from meanmap.bp.conditionals.causal_effect import CausalEffect
from meanmap.bp.conditionals.codes import notes_of_law
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.determined import determined
from meanmap.bp.conditionals.effect_of import effect_of
from meanmap.bp.conditionals.fitted_bayesian import FittedBayesianNetwork
from meanmap.bp.conditionals.identified import refuse_selected, refuse_undecided, same_value
from meanmap.bp.conditionals.judged import ArrowScores, judged
from meanmap.bp.conditionals.laws import law_given
from meanmap.bp.conditionals.repeated import repeated
from meanmap.bp.conditionals.seen_together import SeenTogether
from meanmap.bp.never_together import NeverTogether
from meanmap.bp.pooling import SHIFTS
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError
from meanmap.core.language import with_and
from meanmap.core.meant import no_column
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.filling import columns_of
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import BY_PAIRS, gaps_in
from meanmap.core.tables.selection import UNLIKE
from meanmap.core.tables.written import Written, words_of
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, GraphLike, Seed
from meanmap.graphs.orientation import consistent_extension, find_cycle
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import parents_by_name
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.designs.reading import units_of

__all__ = ["BayesianNetwork"]

# Counts and linear parts are learned from at most this many rows; effects and scores, which fit several times, use
# fewer.
LEAST_ROWS, MOST_ROWS = 20, 1_000_000
# Columns with more gaps than this share of the rows are not adjusted for if others are enough.
FEW_GAPS = 0.01
# What the numbers of clusters are called beside columns.
CLUSTERS = "(clusters)"
# What becomes of rows with gaps where "pairwise" leaves them to each variable.
UNUSED = "are left out of what is learned about a variable where it or one of its parents is missing"
# What gaps that go with other columns do to effects.
OF_GAPS = (
    "such gaps may bias do() and effect(), and intervals do not account for that. If they depend only on other columns "
    "of the table, fill them in, and pool the effects in the tables of DependencyNetwork().fit(data).impute(data, "
    f"draws=20) by bp.pooled. {SHIFTS}"
)


class BayesianNetwork(Paged):
    """A Bayesian network of numbers, labels and times: each variable modelled given its parents.

    `model = mm.bp.BayesianNetwork(graph).fit(table)` learns; `model.query({"b": 1.0}, ["a"])` is the belief about a
    after observing b = 1, `model.do({"b": 1.0}, ["a"])` the effect of setting b to 1.

    Parameters
    ----------
    graph : PDAG, networkx.DiGraph or list of arrows (from, to)
        Found by `mm.pc`, or known. Undirected edges get some direction consistent with all arrows, which does not
        matter for `query`; `do` and `effect` refuse to answer where it would matter, or where an arrow about which
        tests of `mm.pc` contradict each other would.

    Notes
    -----
    Every number is modelled by a regression on its parents: a linear part, a kernel part where that predicts better,
    and residuals drawn from all rows, or from those with similar parents where that makes left-out rows more probable,
    whose scale is itself a regression on the parents where that predicts better. The kernel is a sum of one for each
    parent unless a joint kernel clearly predicts better: additive effects can be predicted at values of parents seldom
    seen together (Hastie & Tibshirani 1986). Labels whose parents are labels are modelled by counts over all rows, with
    a Dirichlet prior centred on predictions from fewer parents, whose weight exceeds one row only where that improves
    held-out predictions; labels with numbers among their parents are modelled by multinomial logistic regression, with
    a kernel part where that improves held-out predictions, which shrinks towards the overall shares outside the data,
    with a note. Beyond 50 labels the rarest are pooled into one, whose probability is divided in proportion to their
    frequencies. If all relevant unobserved variables are labels, answers are exact, by a clique tree. Otherwise they
    come from draws along the arrows, weighted by the likelihood of the evidence, and converge as draws increase (Fung &
    Chang 1990; Shachter & Peot 1990). Reports say which method was used, and where an answer rests on values of two
    parents that hardly any row has together. Irrelevant variables are left out. Numbers that many rows share, such as
    the zeros of costs, have a probability of their own, modelled like that of a label, and so have both values of
    numbers with only two, such as 0 and 1; where such a number is a parent, what depends on it may jump there. Of
    parents with heavy tails, such as money, ranks count beside the numbers, as normal scores. Numbers of one sign, or
    between 0 and 1, stay so: they are regressed as logarithms, roots or log odds where left-out rows are more probable
    by two standard errors; otherwise draws outside the range are drawn again, or set to 0 or 1 if some rows have this
    value, which shifts means a little; logarithms of draws are finite if those of all rows are. On such a scale draws
    stay near the range of the rows, and parents outside of the data count as at the nearest end, with a note. Draws of
    whole and of rounded numbers are rounded up or down at random, so that means stay what they are. Numbers of at most
    20 values with an end that many rows have, such as ratings, are drawn from these values: their probabilities are
    those of all rows, tilted to the mean that the regression gives. Counts of up to 200 values given labels are of this
    form, too, with smoothed probabilities that go on a little beyond the rows.
    Densities of `predict` are smoothed and reach a little beyond; their means and variances are those of a thousand
    weighted draws, of `query` those of up to 4000. The Monte Carlo error of a mean is about the standard deviation over
    the root of "draws that count" in the report. That of labels, of numbers with few values and of shares of zeros is
    smaller: their probabilities given the parents are averaged over draws of these, so that a risk of 3 in 10,000 is
    found, unless evidence lies beyond effects that are not known. Quantiles of whole numbers are whole. Effects are
    those of the truncated factorisation (Pearl 2009, section 3.2), assuming that no common cause is missing from the
    graph.

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

    def _as_page(self, brief: bool = False) -> Page:
        return self.graph._as_page(brief)

    @one_blas_thread()
    @own_words
    def fit(
        self, data: Data, *, missing: str = "pairwise", kinds: Mapping[Any, Any] | None = None
    ) -> "FittedBayesianNetwork":
        """Learn each variable given its parents, from the rows in which none of them is missing.

        Parameters
        ----------
        data : table
            With a column of numbers, labels, truth values or times for each variable; cells may be missing. In memory,
            in Parquet files or with Dask; of more than a million rows, a million are read, drawn by row number.
        missing : {"pairwise", "raise", "drop", "category"}, or list of codes
            What happens to missing values: a variable is learned from the rows in which neither it nor its parents are
            missing; an error; the row is dropped altogether; or missing labels form a label of their own. A list of
            codes, such as [-999], drops rows with these, too.
        kinds : mapping of variable to kind, optional
            The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.

        Returns
        -------
        FittedBayesianNetwork
            Always the same for the same table.

        Notes
        -----
        Counts and linear parts use all rows that are read, whose number is `fitted.rows`; kernels and residuals use up
        to 4000, spread over the table. New rows require a new fit. A million rows of six variables took 20 processor
        seconds and one gigabyte.
        """
        table, raw, notes = self._read(data, missing, kinds, most=MOST_ROWS)
        apart = NeverTogether.of(table.codes(raw), table.labels)
        numbers, learned, seen = table.standardised(raw), {}, {}
        parents = parents_by_name(self.graph.names, self.directed.named("directed"))
        for name in track(list(self.graph.names), "learning variables"):
            above = [numbers[parent] for parent in parents[name]]
            there = ~np.isnan(np.concatenate([*above, numbers[name]], axis=1)).any(axis=1)
            if there.sum() < LEAST_ROWS:
                together = f"{name!r} and its parents are observed together in {there.sum()} rows"
                raise EmptyError(f"{together}; expected at least {LEAST_ROWS}.")
            above = [each[there] for each in above]
            learned[name] = law_given(above, numbers[name][there], table.columns[name])
            heard = dict(zip(parents[name], above, strict=True))
            seen[name] = SeenTogether.of(heard)
            notes += determined(name, parents[name], learned[name])
            notes += notes_of_law(table.columns, heard, name, numbers[name][there], learned[name])
        notes = tuple(note.replace(BY_PAIRS, UNUSED) for note in notes)
        return FittedBayesianNetwork(self.graph, self.directed, table, learned, seen, notes, apart)

    def judge(self, data: Data, folds: int = 5) -> ArrowScores:
        """Whether each arrow improves the model: log densities of held-out rows, with it and without.

        Parameters
        ----------
        data : table
            As for `fit`.
        folds : int
            The number of parts of the rows, each held out once.

        Returns
        -------
        ArrowScores
            For each variable the gain from all its parents together, compared with a linear regression with normal
            noise, and for each arrow its gain beyond the others: `print`, `.plot()`, `.to_networkx()`.

        Notes
        -----
        Takes `folds` times as long as a fit, for each parent and once more.

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
        return judged(self.directed, table, raw, whole_number(folds, "folds", 2))

    @one_blas_thread()
    @own_words
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
        clusters: Data = None,
        rng: Seed = None,
    ) -> CausalEffect:
        """The causal effect on one variable of setting another to one value rather than another, with intervals.

        Parameters
        ----------
        data : table
            As for `fit`, of up to 100,000 rows. It may lack variables of the graph: the effect is refused if it is
            not identified without them.
        on : name
            The outcome: a number, whose mean, quantiles and distribution are compared, or a label, whose shares are
            compared.
        of : name
            The variable that is set.
        from_, to : values of it
            Labels with at least 20 rows, or numbers within the range of the rows, with at least 20 rows near each.
            Along curves, intervals of small steps are wide, and very small steps are refused.
        missing : {"pairwise", "raise", "drop", "category"}, or list of codes
            As for `fit`: rows with missing values in these variables are dropped, or missing labels form a label of
            their own. Codes, such as [-999], stand for missing values.
        kinds : mapping of variable to kind, optional
            As for `fit`, such as {"site": "label"} where sites are numbered; a note names columns where this may be so.
        clusters : column names, array, or whole number, optional
            Which rows depend on one another, such as those of one person: a column, a value for each row, or a number
            of consecutive rows. Intervals then count clusters, not rows; at least 20 are needed. With 60 clusters of 5
            rows, 90% intervals covered .87 to .90 in simulations (200 tables each); those of rows covered .53.
        rng : None, int, Generator or JAX key
            Makes the intervals reproducible.

        Returns
        -------
        CausalEffect
            `print` shows it; `.difference()`, `.quantiles(q)`, `.interval(confidence)`, `.arms`, `.adjusted`.

        Notes
        -----
        The graph determines the adjustment set (Henckel et al. 2022), without columns with gaps if others are enough.
        The outcome is regressed on this and the cause, by a line, smooth and rough parts, and jumps and bends in
        numbers where these are clear; residuals are weighted so that averages over rows are those with the cause set
        (Hirshberg & Wager 2021). Intervals allow for noise, the sampling of rows, and what the parts may have missed.
        They are too narrow where a jump or a bend too small to detect lies at or between the two values, and cover .76
        to .87 where one of these is at a bend: cut the cause into labels if you know of one. Rules on two columns, such
        as whether two signs agree, are found and adjusted for where these are clear; rules on three columns that no
        pair of them shows are not: make such a rule a column of its own. Of dates that span more than a year the time
        of the year is adjusted for, too; other waves and cycles are noted. For plain lines with noise of one size
        intervals are 1.1 to 1.3 times as wide as those of least squares, which assume linearity: regressions that are
        straight in the cause, curved and rough are averaged, weighted by their evidence (Hoeting et al. 1999).
        Of a whole-number dose with few values the rows of both values are compared: then they are up to twice
        as wide, as a note says. Where the noise of a straight line grows with the dose t, as exp(t / 2) with t
        normal, this average allows for curves at the noisy end: intervals are 1.7 to 2 times as wide as robust
        ones of least squares, and errors 1.4 to 3 times as large (75 tables of 200 to 1000 rows; both covered
        .88 or more). Where the response to a dose bends so gently that the data hardly show it, 90% intervals
        covered .70 to .80 in simulations; where the effect grows with the square of a confounder that has heavy
        tails (Student's t with 3 degrees of freedom), .55 (20 tables of 300 rows); with the square of a normal
        one .94 (85 tables of 300 or 800 rows). Only what the effect depends on is learned: unlike `do()` it
        needs the rows, not a fitted network. The estimate is the same for the same table; only the ends of
        intervals involve random draws. Rows with gaps are left out: with gaps of a confounder that depended on
        the cause and the outcome, effects were -.29 for 0 in three tables of 1000 rows, and -.03 pooled
        over imputed tables: `bp.pooled` of `(float(d), d.draws.var())`, d the difference in each.

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
                raise no_column("the graph", name, self.graph.names, "node")
        if on == of:
            raise InputError(f"on and of are both {on!r}; expected an outcome and another variable that is set.")
        refuse_undecided(self.graph, [of], [on])
        names = list(self.graph.names)
        whole = lies_elsewhere(data) or isinstance(data, np.ndarray)
        columns = {} if whole else columns_of(data, "data")
        there = names if whole else [name for name in names if str(name) in columns]
        gaps = _with_gaps(columns, [name for name in there if name not in (of, on)], missing) if columns else ()
        adjusted = adjustment(self.directed, of, on, there, gaps)
        refuse_selected(self.directed, of, on, columns)
        if str(on) in columns and on not in (kinds or {}):
            _refuse_numbers_as_text(columns[str(on)], on)
        wanted, units = (of, on, *(adjusted or ())), None
        if clusters is not None:
            if lies_elsewhere(data):
                raise ParameterError("clusters= is for tables in memory: read the file first, or collect the rows.")
            check_order((data, clusters), ("data", "clusters"))
            inside = columns_of(data, "data")
            data = {str(name): inside[str(name)] for name in wanted if str(name) in inside}
            data[CLUSTERS] = units_of(inside, clusters).astype(float)
            table, numbers, told = self._read(data, missing, {**(kinds or {}), CLUSTERS: "number"}, (*wanted, CLUSTERS))
            units = numbers.pop(CLUSTERS)[:, 0]
            table = replace(table, columns={name: table.columns[name] for name in wanted})
        else:
            table, numbers, told = self._read(data, missing, kinds, wanted)
        told = told if adjusted is not None else (*self.graph.no_path(of, on), *told)
        if gaps:
            told += _spared(adjustment(self.directed, of, on, there), adjusted)
        if columns and units is None:
            told += repeated(columns, str(of), list(map(str, names)))
        return effect_of(table, numbers, on, of, (from_, to), adjusted, Rng.of(rng).generator, told, units)

    def _read(
        self,
        data: Data,
        missing: str = "pairwise",
        kinds: Mapping[Any, Any] | None = None,
        names: Sequence[Hashable] | None = None,
        most: int | None = None,
    ) -> tuple[CodedTable, dict[Hashable, np.ndarray], tuple[str, ...]]:
        """The codes of columns, the numbers of each variable in its unit, and notes."""
        table, numbers, notes = CodedTable.of(data, names or self.graph.names, missing, kinds, most=most)
        constant = next((name for name, each in table.columns.items() if each.column.distinct == 1), None)
        if constant is not None:
            causes = parents_by_name(self.graph.names, self.directed.named("directed"))[constant]
            why = f"and its causes are {with_and([*map(repr, causes)])}" if causes else ""
            raise InputError(same_value(constant, why))
        of_gaps = (OF_GAPS,) if any(UNLIKE in note for note in notes) else ()
        return table, numbers, (*notes, *of_gaps)

    def __repr__(self) -> str:
        return f"BayesianNetwork({len(self.graph.names)} variables, {len(self.directed.directed)} arrows)"


def _with_gaps(columns: Mapping[str, Any], names: Sequence[Hashable], missing: object) -> tuple[Hashable, ...]:
    """Variables that would cost more than a few rows."""
    if policy_and_marks(missing)[0] == "category" or not names:
        return ()
    found = gaps_in({str(name): columns[str(name)] for name in names}, "data", missing)
    return tuple(name for name, gaps in zip(names, found.values(), strict=True) if gaps.mean() > FEW_GAPS)


def _spared(best: Sequence[Hashable] | None, adjusted: Sequence[Hashable] | None) -> tuple[str, ...]:
    """A note on variables with gaps that would be adjusted for if they had none."""
    spared = [name for name in best or () if name not in (adjusted or ())]
    if not spared:
        return ()
    them = " and ".join(map(repr, spared))
    return (f"the effect is not adjusted for {them}, because of missing values: other columns are enough.",)


def _refuse_numbers_as_text(column: Data, name: Hashable) -> None:
    """Refuse an outcome of which each number, or date, would be a label of its own."""
    words = words_of([column])
    written = Written.of(words) if words else None
    if written is not None and written.many:
        raise KindError(written.note(f"data[{name!r}]", name))
