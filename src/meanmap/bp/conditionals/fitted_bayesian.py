"""What a Bayesian network that has learned answers: what follows from evidence, and what an intervention does."""

import warnings
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.counterfactual import what_would_have_been
from meanmap.bp.conditionals.given_parents import GivenParents, joined
from meanmap.bp.conditionals.identified import refuse_undecided
from meanmap.bp.conditionals.label_tables import tables_of, to_pgmpy
from meanmap.bp.conditionals.network_rows import NetworkRows, parents_of
from meanmap.bp.tables.clique_tree import CliqueTree
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.points import refuse_unread
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import by_name, whole_number
from meanmap.core.types import Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import relevant
from meanmap.learning.default import kernel_for

# Labels that an error names.
MOST_TOLD = 10

__all__ = ["FittedBayesianNetwork"]

# Beliefs come from so many draws; from fewer, but not below these, where all variables together would take more numbers
# than that: answers about fifty variables then take a second.
DRAWS, LEAST_DRAWS, MOST_DRAWN = 4000, 1000, 60_000
# Below so many draws that count, a note says that evidence leaves few.
FEW_DRAWS = 100
# So many draws say how wide the kernel of a belief is.
ENOUGH = 500


@dataclass(frozen=True, eq=False)
class FittedBayesianNetwork(NetworkRows):
    """A `BayesianNetwork` that has learned.

    Attributes
    ----------
    graph : PDAG
        As it was given.
    directed : PDAG
        With all edges directed, as it was learned.
    columns : dict
        How each variable is read.
    conditionals : dict
        Each variable given its parents.
    """

    graph: PDAG
    directed: PDAG
    columns: Mapping[Hashable, CodedColumn]
    conditionals: Mapping[Hashable, GivenParents]

    def query(
        self, evidence: Mapping[Any, Any] | None = None, targets: Iterable[Hashable] | None = None, *, rng: Seed = None
    ) -> Beliefs[PointEmbedding]:
        """Beliefs about variables, given values of others that were seen.

        Parameters
        ----------
        evidence : mapping from names to single values, optional
            What was seen.
        targets : names, optional
            All other variables unless given.
        rng : None, int, Generator or JAX key
            What repeats the draws.

        Returns
        -------
        Beliefs
            `.mean()`, `.quantile(q)`, `.density(grid)`, `.sample(n, rng)` of numbers, `.probabilities()` of labels;
            `beliefs.report` says how many draws count.
        """
        seen = self._read(evidence, "evidence")
        return self._beliefs(seen, {}, targets, rng)

    def do(
        self,
        values: Mapping[Any, Any],
        targets: Iterable[Hashable] | None = None,
        *,
        evidence: Mapping[Any, Any] | None = None,
        rng: Seed = None,
    ) -> Beliefs[PointEmbedding]:
        """What becomes of variables when others are set to values, whatever their causes say.

        Parameters
        ----------
        values : mapping from names to single values
            What is set.
        targets : names, optional
            All other variables unless given. An effect that hangs on an edge without a direction is refused.
        evidence : mapping from names to single values, optional
            What is seen afterwards.
        rng : None, int, Generator or JAX key
            What repeats the draws.

        Returns
        -------
        Beliefs
            As of `query`.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=400)
        >>> model = mm.bp.BayesianNetwork([("a", "b")]).fit({"a": a, "b": a**2 + 0.1 * rng.normal(size=400)})
        >>> effect, none = model.do({"a": 1.5}, ["b"], rng=0), model.do({"b": 2.0}, ["a"], rng=0)
        >>> bool(abs(effect["b"].mean() - 2.25) < 0.2), bool(abs(none["a"].mean()) < 0.2)
        (True, True)
        """
        fixed = self._read(values, "values")
        seen = self._read(evidence, "evidence")
        both = [name for name in fixed if name in seen]
        if both:
            raise InputError(f"{both[0]!r} is set and seen; expected it in one of values and evidence.")
        if not fixed:
            raise InputError("values is empty; expected what is set, such as {'dose': 1.0}. Without it use query.")
        chosen = self._targets(targets, (*fixed, *seen))
        refuse_undecided(self.graph, fixed, (*chosen, *seen))
        return self._beliefs(seen, fixed, chosen, rng)

    def sample(
        self,
        n: int,
        evidence: Mapping[Any, Any] | None = None,
        *,
        values: Mapping[Any, Any] | None = None,
        rng: Seed = None,
    ) -> dict[Hashable, np.ndarray]:
        """Joint draws of all variables, given what is known of some, and with some set as by `do`.

        Parameters
        ----------
        n : int
            How many.
        evidence : mapping from names to single values, optional
            What was seen. Draws are then chosen among more of them by its likelihood, and may repeat.
        values : mapping from names to single values, optional
            What is set.
        rng : None, int, Generator or JAX key
            What repeats the draws.

        Returns
        -------
        dict
            A column (n,) for each variable.
        """
        fixed, seen = self._read(values, "values"), self._read(evidence, "evidence")
        refuse_undecided(self.graph, fixed, self.graph.names)
        n, random, parents, given = whole_number(n, "n"), Rng.of(rng).generator, self._heard(fixed), {**fixed, **seen}
        for note in self._oddities(given):
            warnings.warn(note, stacklevel=2)
        free = [name for name in self._order if name not in given]
        hearing = [name for name in seen if not given.keys() >= set(parents[name])]
        drawn, log_weights = self._drawn(max(n, DRAWS) if seen else n, free, hearing, given, parents, random)
        if seen:
            chosen = random.choice(len(log_weights), n, p=_normalised(log_weights))
            drawn = {name: each[chosen] for name, each in drawn.items()}
        known = self._known({**(values or {}), **(evidence or {})})
        return {
            name: np.repeat(np.asarray([known[name]]), n) if name in known else self._in_unit(name, drawn[name], random)
            for name in self.graph.names
        }

    def counterfactual(
        self, row: Mapping[Any, Any], values: Mapping[Any, Any], targets: Iterable[Hashable] | None = None
    ) -> dict[Hashable, Any]:
        """What would have become of one case, had some of its values been others.

        What is no effect of these stays as it was. A number that is keeps its rank among those that its parents leave
        possible: whoever was in the upper tenth among cases like theirs would have been in the upper tenth among the
        others. So it is where what the parents do not explain acts in one direction, as added noise does, whatever its
        size; no data can show whether that is so.

        Parameters
        ----------
        row : mapping from names to single values
            The case as it was. What changes must be there with all of its parents.
        values : mapping from names to single values
            What would have been set.
        targets : names, optional
            All other variables of the row unless given. Labels that would have other probabilities are refused: which
            of them a case would have had is not known from data; so is what hangs on an edge without a direction.

        Returns
        -------
        dict
            A value for each target.

        Notes
        -----
        Abduction, action and prediction (Pearl 2009, section 7.1), on the assumption that no common cause is missing.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> dose = rng.normal(size=500)
        >>> data = {"dose": dose, "level": 2 * dose + rng.normal(size=500)}
        >>> model = mm.bp.BayesianNetwork([("dose", "level")]).fit(data)
        >>> found = model.counterfactual({"dose": 0.0, "level": 0.5}, {"dose": 1.0})
        >>> bool(abs(found["level"] - 2.5) < 0.3)
        True
        """
        seen, fixed = self._read(row, "row"), self._read(values, "values")
        if not fixed:
            raise InputError("values is empty; expected what would have been set, such as {'dose': 1.0}.")
        chosen = self._targets([name for name in seen if name not in fixed] if targets is None else targets, fixed)
        refuse_undecided(self.graph, fixed, chosen)
        laws = self.columns, self.conditionals
        found = what_would_have_been(self.graph, self._heard(), self._order, *laws, seen, fixed, chosen)
        for note in self._oddities({**seen, **fixed}):
            warnings.warn(note, stacklevel=2)
        was = self._known(row)
        return {name: self.columns[name].back(found[name][:, 0])[0] if name in found else was[name] for name in chosen}

    def to_pgmpy(self) -> Any:
        """A `DiscreteBayesianNetwork` of pgmpy with the probabilities of all labels given their parents."""
        return to_pgmpy(self.columns, self.conditionals, self._heard())

    def _beliefs(
        self,
        seen: dict[Hashable, np.ndarray],
        fixed: dict[Hashable, np.ndarray],
        targets: Iterable[Hashable] | None,
        rng: Seed,
    ) -> Beliefs[PointEmbedding]:
        names = self._targets(targets, (*seen, *fixed))
        notes = self._oddities({**seen, **fixed})
        found, report = self._answers(names, seen, fixed, DRAWS, rng)
        beliefs = {name: self._belief(name, *each) for name, each in found.items()}
        return Beliefs(names, beliefs, replace(report, notes=(*report.notes, *notes)))

    def _answers(
        self,
        names: Sequence[Hashable],
        seen: Mapping[Hashable, np.ndarray],
        fixed: Mapping[Hashable, np.ndarray],
        draws: int,
        rng: Seed,
    ) -> tuple[dict[Hashable, tuple[np.ndarray, np.ndarray]], Report]:
        """For each name draws as numbers (n, width) and their weights; for labels that are answered exactly all labels
        as numbers and their probabilities.
        """
        known, parents = {**seen, **fixed}, self._heard(fixed)
        needed = relevant(parents, names, known)
        order = [name for name in self._order if name in needed]
        hearing = [name for name in seen if needed.intersection(parents[name])]
        factors = tables_of(self.columns, self.conditionals, parents, known, order, hearing)
        if factors is not None:
            exact = CliqueTree(factors).query(targets=names)
            return {name: (np.eye(self.columns[name].width), exact[name]) for name in names}, exact.report
        n = int(np.clip(MOST_DRAWN // (len(order) + len(hearing) + 1), LEAST_DRAWS, draws))
        drawn, log_weights = self._drawn(n, order, hearing, known, parents, Rng.of(rng).generator)
        weights = _normalised(log_weights)
        count = float(1 / np.sum(weights**2))
        few = count < FEW_DRAWS
        notes = (f"{count:.3g} of {n} draws agree with the evidence: it is improbable.",) if few else ()
        status = f"draws along the arrows, weighted by evidence: {count:.4g} of {n} count"
        report = Report(status, not few, n, notes=notes, measures={"draws that count": count})
        return {name: (drawn[name], weights) for name in names}, report

    def _oddities(self, known: Mapping[Hashable, np.ndarray]) -> tuple[str, ...]:
        """What is odd about values that were given: numbers far outside. Labels never seen were refused."""
        seen = ((n, column) for n, column in self.columns.items() if n in known and column.labels is None)
        told = (column.odd(column.back(known[n][:, 0]), f"the value of {n!r}") for n, column in seen)
        return tuple(note for note in told if note)

    def _drawn(
        self,
        n: int,
        order: Iterable[Hashable],
        hearing: Iterable[Hashable],
        known: Mapping[Hashable, np.ndarray],
        parents: Mapping[Hashable, Sequence[Hashable]],
        random: np.random.Generator,
    ) -> tuple[dict[Hashable, np.ndarray], np.ndarray]:
        """n draws of some variables as numbers, causes first, and the log likelihood of what was seen and hears of
        them.
        """
        drawn = {name: np.repeat(value, n, axis=0) for name, value in known.items()}
        for name in order:
            drawn[name] = self.conditionals[name].draw(joined([drawn[p] for p in parents[name]], n), random)
        log_weights = np.zeros(n)
        for name in hearing:
            rows = joined([drawn[p] for p in parents[name]], n)
            log_weights += self.conditionals[name].log_chance(rows, drawn[name])
        return drawn, log_weights

    @cached_property
    def _order(self) -> list[Hashable]:
        """All variables, causes before their effects."""
        return _causes_first(self.directed)

    def _heard(self, fixed: Collection[Hashable] = ()) -> dict[Hashable, list[Hashable]]:
        """The parents of each variable; what is set has none."""
        return {name: [] if name in fixed else above for name, above in self._parents.items()}

    @cached_property
    def _parents(self) -> dict[Hashable, list[Hashable]]:
        return {name: parents_of(self.directed, name) for name in self._order}

    def _belief(self, name: Hashable, numbers: np.ndarray, weights: np.ndarray) -> PointEmbedding:
        column = self.columns[name]
        if column.labels is not None:
            return column.label_belief(weights @ numbers)
        points = column.centre + column.scale * numbers
        with Door():
            return PointEmbedding(kernel_for(points[:ENOUGH, 0]), points, weights, True)

    def _in_unit(self, name: Hashable, numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
        column = self.columns[name]
        return column.back(numbers[:, 0]) if column.labels is None else column.named(numbers, random)

    def _read(self, values: Mapping[Any, Any] | None, argument: str) -> dict[Hashable, np.ndarray]:
        """Single values as numbers (1, width)."""
        found = {}
        for name, value in self._known(by_name(values, argument)).items():
            refuse_unread(value, f"{argument}[{name!r}]")
            if np.ndim(value) > 0:
                raise KindError(f"{argument}[{name!r}] has {np.size(value)} values; expected a single one.")
            found[name] = self.columns[name].read([value], argument)
            if np.isnan(found[name]).any():
                raise InputError(f"{argument}[{name!r}] is missing ({value!r}); leave out what is not known.")
            labels, column = self.columns[name].labels, self.columns[name].column
            if labels is not None and self.columns[name].codes(column.read([value], argument))[0] < 0:
                some = ", ".join(repr(label) for label in labels[:MOST_TOLD].tolist())
                more = ", ..." if len(labels) > MOST_TOLD else ""
                raise InputError(f"{argument}[{name!r}] is {value!r}, which was never seen; expected {some}{more}.")
        return found

    def _known(self, values: Mapping[Any, Any]) -> dict[Hashable, Any]:
        """Values by the names that the graph has."""
        return {self.graph.names[self.graph.skeleton.index(name)]: value for name, value in values.items()}

    def _targets(self, targets: Iterable[Hashable] | None, known: Iterable[Hashable]) -> tuple[Hashable, ...]:
        given = set(known)
        if targets is None:
            return tuple(name for name in self.graph.names if name not in given)
        chosen = [self.graph.names[self.graph.skeleton.index(name)] for name in targets]
        for name in chosen:
            if name in given:
                raise InputError(f"{name!r} is a target and known already; expected one or the other.")
        return tuple(chosen)

    def __repr__(self) -> str:
        return f"FittedBayesianNetwork({len(self.columns)} variables, {len(self.directed.directed)} arrows)"


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    if not np.isfinite(log_weights.max()):
        raise InputError("no draw agrees with the evidence: its labels were never seen with such parents.")
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _causes_first(graph: PDAG) -> list[Hashable]:
    found: list[Hashable] = []
    while len(found) < graph.size:
        found += [n for n in graph.names if n not in found and all(p in found for p in parents_of(graph, n))]
    return found
