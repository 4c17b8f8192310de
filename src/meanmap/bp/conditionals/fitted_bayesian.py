"""What a Bayesian network that has learned answers: what follows from evidence, and what an intervention does."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import GivenParents
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.pieces.row_by_row import number_by_partition
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.tables.filling import columns_of
from meanmap.core.types import Data, Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs.partial import PDAG
from meanmap.learning.default import kernel_for

__all__ = ["FittedBayesianNetwork", "joined", "parents_of"]

DRAWS = 4000
# Below so many draws that count, a note says that evidence leaves few.
FEW_DRAWS = 100


@dataclass(frozen=True, eq=False)
class FittedBayesianNetwork:
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
        seen = self._read(evidence or {}, "evidence")
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
        seen = self._read(evidence or {}, "evidence")
        both = [name for name in fixed if name in seen]
        if both:
            raise InputError(f"{both[0]!r} is set and seen; expected it in one of values and evidence.")
        if not fixed:
            raise InputError("values is empty; expected what is set, such as {'dose': 1.0}. Without it use query.")
        chosen = self._targets(targets, (*fixed, *seen))
        for name in fixed:
            for target in (*chosen, *seen):
                _refuse_undecided(self.graph, name, target, set(fixed))
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
        fixed, seen = self._read(values or {}, "values"), self._read(evidence or {}, "evidence")
        for name in fixed:
            for target in self.graph.names:
                _refuse_undecided(self.graph, name, target, set(fixed))
        n, random = whole_number(n, "n"), Rng.of(rng).generator
        drawn, log_weights = self._drawn(max(n, DRAWS) if seen else n, seen, fixed, random)
        if seen:
            chosen = random.choice(len(log_weights), n, p=_normalised(log_weights))
            drawn = {name: each[chosen] for name, each in drawn.items()}
        known = {**(values or {}), **(evidence or {})}
        return {
            name: np.repeat(np.asarray([known[name]]), n) if name in known else self._in_unit(name, drawn[name])
            for name in self.graph.names
        }

    @number_by_partition
    def score(self, frame: Data) -> np.ndarray:
        """The logarithm of the density of each row: larger is better on new rows. Of labels, of their probability.

        Parameters
        ----------
        frame : table
            With all variables; rows with missing cells get NaN.

        Returns
        -------
        array (n,)
        """
        raw = columns_of(frame)
        lacking = [name for name in self.graph.names if str(name) not in raw]
        if lacking:
            raise InputError(f"frame has no column {lacking[0]!r}; it has {', '.join(map(repr, raw))}.")
        numbers = {name: self.columns[name].read(raw[str(name)], "frame") for name in self.graph.names}
        there = ~np.isnan(np.concatenate(list(numbers.values()), axis=1)).any(axis=1)
        total = np.where(there, 0.0, np.nan)
        if there.any():
            for name, law in self.conditionals.items():
                rows = joined([numbers[p][there] for p in parents_of(self.directed, name)], int(there.sum()))
                total[there] += law.log_chance(rows, numbers[name][there]) - np.log(self.columns[name].scale)
        return total

    def _beliefs(
        self,
        seen: dict[Hashable, np.ndarray],
        fixed: dict[Hashable, np.ndarray],
        targets: Iterable[Hashable] | None,
        rng: Seed,
    ) -> Beliefs[PointEmbedding]:
        names = self._targets(targets, (*seen, *fixed))
        drawn, log_weights = self._drawn(DRAWS, seen, fixed, Rng.of(rng).generator)
        weights = _normalised(log_weights)
        count = float(1 / np.sum(weights**2))
        known = {**seen, **fixed}.items()
        told = (self.columns[name].odd(self._in_unit(name, value), f"the value of {name!r}") for name, value in known)
        notes = tuple(note for note in told if note)
        if count < FEW_DRAWS:
            notes = (f"{count:.3g} of {DRAWS} draws agree with the evidence: it is improbable.", *notes)
        status = f"draws along the arrows, weighted by evidence: {count:.4g} of {DRAWS} count"
        report = Report(status, count >= FEW_DRAWS, DRAWS, notes=notes, measures={"draws that count": count})
        return Beliefs(names, {name: self._belief(name, drawn[name], weights) for name in names}, report)

    def _drawn(
        self, n: int, seen: dict[Hashable, np.ndarray], fixed: dict[Hashable, np.ndarray], random: np.random.Generator
    ) -> tuple[dict[Hashable, np.ndarray], np.ndarray]:
        """n draws of each variable as numbers, causes first, and the log likelihood of what was seen."""
        drawn: dict[Hashable, np.ndarray] = {}
        log_weights = np.zeros(n)
        for name in _causes_first(self.directed):
            known = fixed.get(name, seen.get(name))
            rows = joined([drawn[p] for p in parents_of(self.directed, name)], n)
            if known is None:
                drawn[name] = self.conditionals[name].draw(rows, random)
                continue
            drawn[name] = np.repeat(known, n, axis=0)
            if name in seen:
                log_weights += self.conditionals[name].log_chance(rows, drawn[name])
        return drawn, log_weights

    def _belief(self, name: Hashable, numbers: np.ndarray, weights: np.ndarray) -> PointEmbedding:
        column = self.columns[name]
        if column.labels is not None:
            return column.label_belief(weights @ numbers)
        points = column.centre + column.scale * numbers
        with Door():
            return PointEmbedding(kernel_for(points[:, 0]), points, weights, True)

    def _in_unit(self, name: Hashable, numbers: np.ndarray) -> np.ndarray:
        column = self.columns[name]
        return column.back(numbers[:, 0]) if column.labels is None else column.labels[numbers.argmax(axis=1)]

    def _read(self, values: Mapping[Any, Any], argument: str) -> dict[Hashable, np.ndarray]:
        """Single values as numbers (1, width)."""
        if not isinstance(values, Mapping):
            raise KindError(f'{argument} is a {type(values).__name__}; expected a mapping such as {{"dose": 1.0}}.')
        found = {}
        for name, value in values.items():
            if name not in self.columns:
                raise InputError(f"the graph has no node {name!r}; it has {', '.join(map(repr, self.graph.names))}.")
            if np.ndim(value) > 0:
                raise KindError(f"{argument}[{name!r}] has {np.size(value)} values; expected a single one.")
            found[name] = self.columns[name].read([value], argument)
            if np.isnan(found[name]).any() or not (self.columns[name].labels is None or found[name].any()):
                raise InputError(f"{argument}[{name!r}] is {value!r}, which was never seen; expected a known value.")
        return found

    def _targets(self, targets: Iterable[Hashable] | None, known: Iterable[Hashable]) -> tuple[Hashable, ...]:
        given = set(known)
        chosen = [name for name in self.graph.names if name not in given] if targets is None else list(targets)
        for name in chosen:
            if name not in self.columns:
                raise InputError(f"the graph has no node {name!r}; it has {', '.join(map(repr, self.graph.names))}.")
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


def _refuse_undecided(graph: PDAG, cause: Hashable, target: Hashable, fixed: set[Hashable]) -> None:
    """Refuse an effect that hangs on a direction which is not known (Perković 2020, theorem 3.6): a way along which the
    cause may act on the target begins with an undirected edge.
    """
    matrix, names = graph.matrix, list(graph.names)
    start, others = names.index(cause), {names.index(name) for name in fixed}
    for first in np.flatnonzero(matrix[start] & matrix[:, start]).tolist():
        reached, stack = {first} - others, [first] if first not in others else []
        while stack:
            for after in np.flatnonzero(matrix[stack.pop()]).tolist():
                if after not in reached and after not in others:
                    reached.add(after)
                    stack.append(after)
        if names.index(target) in reached:
            raise InputError(
                f"the effect of {cause!r} on {target!r} hangs on the direction of the edge {cause!r} — "
                f"{names[first]!r}, which the graph does not say: both are possible. If you know it, say so, "
                "mm.graphs.PDAG.of(arrows, lines), or mm.pc(..., with what you know as required= and forbidden=)."
            )


def parents_of(graph: PDAG, name: Hashable) -> list[Hashable]:
    """The variables with arrows to one."""
    return [a for a, b in graph.named("directed") if b == name]


def _causes_first(graph: PDAG) -> list[Hashable]:
    found: list[Hashable] = []
    while len(found) < graph.size:
        found += [n for n in graph.names if n not in found and all(p in found for p in parents_of(graph, n))]
    return found


def joined(numbers: list[np.ndarray], rows: int) -> np.ndarray:
    """Numbers (n, width) side by side, or none of them."""
    return np.concatenate([np.zeros((rows, 0)), *numbers], axis=1)
