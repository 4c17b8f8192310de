"""What a query answers: a belief for each target, by name, with a report."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from meanmap.core.errors import InputError
from meanmap.core.report import Report

__all__ = ["Beliefs"]


@dataclass(frozen=True, eq=False)
class Beliefs(Mapping):
    """The beliefs about the targets, `beliefs["name"]`.

    Attributes
    ----------
    targets : tuple
        The names.
    answer : callable
        From a target to its belief: probabilities of its states, (k,) or (B, k), or an embedding.
    report : Report
        How the messages ended.
    log_evidence : number or array (B,), optional
        The logarithm of the partition function with this evidence, log Σ_x Π ψ, where there is one: exact on trees,
        Bethe's approximation with cycles. The difference of two is the logarithm of a ratio of probabilities.
    """

    targets: tuple[Hashable, ...]
    answer: Callable[[Hashable], Any]
    report: Report
    log_evidence: Any = None

    def __getitem__(self, name: Hashable) -> Any:
        if name not in self.targets:
            shown = ", ".join(map(repr, self.targets[:10])) + (", ..." if len(self) > 10 else "")
            raise InputError(f"there is no belief about {name!r}; the targets were {shown}.")
        return self.answer(name)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        return f"Beliefs({len(self)} target{'s' * (len(self) != 1)}; {self.report.status})"
