"""A fitted Bayesian network: what follows from evidence, and from interventions."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.conditionals.codes import notes_about
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.counterfactual import what_would_have_been
from meanmap.bp.conditionals.determined import contradicted
from meanmap.bp.conditionals.identified import refuse_undecided
from meanmap.bp.conditionals.label_tables import to_pgmpy
from meanmap.bp.conditionals.laws import Law
from meanmap.bp.conditionals.network_rows import NetworkRows
from meanmap.bp.conditionals.seen_together import SeenTogether, extrapolated
from meanmap.bp.evidence.named import named
from meanmap.bp.never_together import NeverTogether
from meanmap.core.errors import InputError
from meanmap.core.notes import note_lines, warn_of
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import ancestors

__all__ = ["FittedBayesianNetwork"]


@dataclass(frozen=True, eq=False)
class FittedBayesianNetwork(NetworkRows):
    """A fitted `BayesianNetwork`.

    Attributes
    ----------
    graph : PDAG
        As it was given.
    directed : PDAG
        With all edges directed, as it was learned.
    table : CodedTable
        How each variable is read.
    conditionals : dict
        Each variable given its parents.
    seen : dict
        The parents of each variable in some rows, if it has several.
    notes : tuple of str
        Notes on missing values and doubtful columns of the table, which reports of answers repeat.
    apart : NeverTogether
        Labels that were expected together in some rows, and were not.
    """

    graph: PDAG
    directed: PDAG
    table: CodedTable
    conditionals: Mapping[Hashable, Law]
    seen: Mapping[Hashable, SeenTogether]
    notes: tuple[str, ...] = ()
    apart: NeverTogether = field(default_factory=NeverTogether)

    @one_blas_thread()
    def do(
        self,
        values: Mapping[Any, Any],
        targets: Iterable[Hashable] | None = None,
        *,
        evidence: Mapping[Any, Any] | None = None,
        rng: Seed = None,
    ) -> Beliefs[PointEmbedding]:
        """The distribution of variables under an intervention that sets others to values.

        Parameters
        ----------
        values : mapping from names to single values
            What is set.
        targets : names, optional
            All other variables unless given. An effect that depends on an undirected edge, or on one about which
            tests of `mm.pc` contradict each other, is refused.
        evidence : mapping from names to single values, or a row of a table, optional
            Values observed after the intervention.
        rng : None, int, Generator or JAX key
            Seed of the draws.

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
        fixed, seen = self._single(named(values, "values"), argument="values"), self._single(evidence)
        if not fixed.raw:
            raise InputError(
                "values is empty; expected the variables to set, such as {'dose': 1.0}. Without any use query."
            )
        both = next((name for name in fixed.raw if name in seen.raw), None)
        if both is not None:
            raise InputError(f"{both!r} is both set and observed; expected it in one of values and evidence.")
        names = self._targets(targets, {**fixed.raw, **seen.raw})
        refuse_undecided(self.graph, fixed.raw, (*names, *seen.raw))
        beliefs = self._told(seen.setting(fixed), names, rng)
        if targets is None or seen.raw:  # what is seen afterwards may change what is no effect
            return beliefs
        heard = self._heard(fixed.raw)
        still = [name for name in names if not ancestors(heard, [name]) & fixed.raw.keys()]
        told = (note for name in still for cause in fixed.raw for note in self.graph.no_path(cause, name))
        return replace(beliefs, report=replace(beliefs.report, notes=(*told, *beliefs.report.notes)))

    def sample(
        self, n: int, evidence: Data | None = None, *, values: Mapping[Any, Any] | None = None, rng: Seed = None
    ) -> dict[Hashable, Any]:
        """Joint draws of all variables, given the known values of some, and with some set as by `do`.

        Parameters
        ----------
        n : int
            The number of draws.
        evidence : mapping from names to values, or table, optional
            Single values, or a column for each variable that may miss cells: `n` draws for every row. They are chosen
            among more draws by their likelihood, and may repeat.
        values : mapping from names to single values, optional
            What is set; evidence is then of single values, too.
        rng : None, int, Generator or JAX key
            Seed of the draws.

        Returns
        -------
        dict
            A column (n,) for each variable, (rows, n) for a table of evidence.
        """
        if not values:
            return super().sample(n, evidence, rng=rng)
        fixed = self._single(named(values, "values"), argument="values")
        refuse_undecided(self.graph, fixed.raw, self.graph.names)
        return self._sampled(self._single(evidence).setting(fixed), n, rng, True)

    def counterfactual(
        self, row: Data, values: Mapping[Any, Any], targets: Iterable[Hashable] | None = None
    ) -> dict[Hashable, Any]:
        """The counterfactual values of one case, had some of its values been different.

        Variables that are not effects of these stay as they were. A number that is an effect keeps its rank given its
        parents: whoever was in the upper tenth among cases like theirs would have been in the upper tenth among the
        others. This assumes that the number increases with its noise, as with additive noise of any size; data cannot
        test that.

        Parameters
        ----------
        row : mapping from names to single values, or a row of a table
            The case as it was. What changes must be there with all of its parents. Columns that are not variables of
            the model are ignored, and missing values are unknown.
        values : mapping from names to single values
            What would have been set.
        targets : names, optional
            All other variables of the row unless given. Labels that would have other probabilities are refused: which
            of them a case would have had is not known from data; so are numbers that many rows share, such as zeros,
            unless all of these would have become the same, and effects that depend on an undirected edge.

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
        was, would = (
            self._single(row, argument="row", whole=True),
            self._single(named(values, "values"), argument="values"),
        )
        if not would.raw:
            raise InputError("values is empty; expected the variables to set, such as {'dose': 1.0}.")
        others = [name for name in was.raw if name not in would.raw]
        chosen = self._targets(others if targets is None else targets, would.raw)
        refuse_undecided(self.graph, would.raw, chosen)
        (seen,), (fixed,) = self._cells(was), self._cells(would)
        laws = self.columns, self.conditionals
        found = what_would_have_been(self.graph, self._heard(), self._order, *laws, seen, fixed, chosen)
        told = extrapolated(self.seen, self._heard(fixed), {**seen, **found}, found, {}, np.ones(1))
        told += contradicted(self.columns, self.conditionals, self._heard(), seen, seen)
        changed = [name for name in found if name not in fixed]
        above = {parent for name in changed for parent in self._heard()[name]}
        warn_of((*notes_about(self.notes, changed, above), *was.notes, *would.notes, *told))
        return {
            name: self.columns[name].back(found[name][:, 0])[0] if name in found else was.raw[name][0]
            for name in chosen
        }

    def to_pgmpy(self) -> Any:
        """A `DiscreteBayesianNetwork` of pgmpy with the probabilities of all labels given their parents."""
        return to_pgmpy(self.columns, self.conditionals, self._heard())

    def __repr__(self) -> str:
        first = f"FittedBayesianNetwork({len(self.columns)} variables, {len(self.directed.directed)} arrows)"
        return "\n".join([first, *note_lines(self.notes)])
