"""The answer to a query: a belief for each target, by name, with a report."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from meanmap.bp.beliefs.drawing import draw_beliefs
from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.bp.beliefs.pages import MOST_GIVEN, beliefs_page
from meanmap.core.errors import ColumnError, KindError
from meanmap.core.language import in_few_words
from meanmap.core.meant import did_you_mean, listed
from meanmap.core.notes import note_lines
from meanmap.core.report import Report
from meanmap.core.types import Axes
from meanmap.core.values import as_known, label_shown
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["Beliefs", "in_words"]

# A belief is an embedding, a density, or an array of probabilities.
Belief = TypeVar("Belief")


def in_words(evidence: Mapping[Any, Any]) -> tuple[str, ...]:
    """What is known, with the value where there is one, not many or a likelihood.

    Examples
    --------
    >>> in_words({"soil": "loam", "depth": 0.1 + 0.2, "rain": [1.0, 2.0]})
    ('soil = loam', 'depth = 0.3', 'rain')
    """
    single = {name: value.item() if isinstance(value, np.generic) else value for name, value in evidence.items()}
    return tuple(
        f"{name} = {value:.6g}"
        if isinstance(value, float)
        else f"{name} = {label_shown(value)}"
        if isinstance(value, str | int)
        else str(name)
        for name, value in single.items()
    )


@dataclass(frozen=True, eq=False)
class Beliefs(Paged, Mapping[Hashable, Belief], Generic[Belief]):
    """The beliefs about the targets, `beliefs["name"]`.

    Attributes
    ----------
    targets : tuple
        The names.
    answer : callable or mapping
        From a target to its belief: probabilities of its states, (k,) or (B, k), or an embedding.
    report : Report
        Whether the messages converged.
    log_evidence : number or array (B,), optional
        The logarithm of the partition function with this evidence, log Σ_x Π ψ, where there is one: exact on trees,
        Bethe's approximation with cycles. The difference of two is the logarithm of a ratio of probabilities.
    labels : mapping
        For targets whose values are labels: the label of each point of their belief.
    given : tuple of str
        What was known: the names, with the value where there is one.
    """

    targets: tuple[Hashable, ...]
    answer: Callable[[Hashable], Belief] | Mapping[Hashable, Belief]
    report: Report
    log_evidence: Any = None
    labels: Mapping[Hashable, tuple] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    def __getitem__(self, name: Hashable) -> Belief:
        known = as_known(name, self.targets)
        if known is None:
            meant = did_you_mean(name, self.targets)
            raise ColumnError(f"there is no belief about {name!r}{meant}; the targets were {listed(self.targets)}.")
        return self.answer[known] if isinstance(self.answer, Mapping) else self.answer(known)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def probabilities(self, name: Hashable) -> dict[Any, Any]:
        """The probability of each label of a variable that has labels, a number or (B,)."""
        belief: Any = self[name]
        name = as_known(name, self.targets)
        if isinstance(belief, LabelBelief):
            return belief.probabilities()
        if name not in self.labels:
            raise KindError(f"{name!r} has no labels: use beliefs[{name!r}].density(grid), .quantile(q) or .expect(f).")
        found: dict[Any, Any] = {}
        for i, label in enumerate(self.labels[name]):
            found[label] = found.get(label, 0.0) + belief.weights[..., i]
        return found

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw each belief: densities, bars of states, weighted points; returns the matplotlib Axes, one per target."""
        return draw_beliefs(self, ax)

    def _as_page(self, brief: bool = False) -> Page:
        return beliefs_page(self, brief)

    def to_save(self) -> "Beliefs[Belief]":
        """These beliefs, all of them computed."""
        return replace(self, answer=dict(self))

    def __repr__(self) -> str:
        given = f" given {in_few_words(self.given, MOST_GIVEN)}" if self.given else ""
        first = f"Beliefs({len(self)} target{'s' * (len(self) != 1)}{given}; {self.report.status})"
        return "\n".join([first, *note_lines(self.report.notes)])
