"""Reports of iterative computations."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.notes import note_lines
from meanmap.core.values import Value, plain

__all__ = ["Report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report(Value):
    """How an iterative computation ended, for people to read and programs to check.

    Attributes
    ----------
    status : str
        How it ended, in words.
    converged : bool
        Whether it converged.
    steps : int
        Steps taken.
    residuals : numpy.ndarray
        The monitored quantity, one number per step.
    counts : dict
        Counts of values that were floored, skipped, forced, ...
    notes : tuple of str
        Caveats.
    measures : dict
        Other diagnostics, by name.
    choices : dict
        What was chosen for the user, by name, in words.

    Examples
    --------
    >>> print(Report("converged", True, 3, residuals=[1.0, 0.1, 0.001], counts={"floored": 2}))
    converged after 3 steps, last residual 0.001
      floored: 2
    """

    status: str
    converged: bool
    steps: int
    residuals: Any = field(default_factory=lambda: np.empty(0))
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    measures: dict[str, float] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "residuals", np.asarray(self.residuals, dtype=float))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain Python values, ready for JSON."""
        return plain(self, "status", "converged", "steps", "residuals", "counts", "notes", "measures", "choices")

    def __str__(self) -> str:
        first = f"{self.status} after {self.steps} step{'s' if self.steps != 1 else ''}"
        if len(self.residuals):
            first += f", last residual {self.residuals[-1]:.3g}"
        lines = [first]
        lines += [f"  {name} {choice}" for name, choice in self.choices.items()]
        lines += [f"  {name}: {count}" for name, count in self.counts.items()]
        lines += [f"  {name}: {value:.3g}" for name, value in self.measures.items()]
        lines += note_lines(self.notes)
        return "\n".join(lines)
