"""An estimated effect: the distributions of two arms and their differences, each with an interval."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.bp.conditionals.pages import effect_page
from meanmap.core.errors import InputError, KindError
from meanmap.core.intervals import ends
from meanmap.core.meant import did_you_mean
from meanmap.core.notes import note_lines
from meanmap.core.settings import probability
from meanmap.core.types import Array
from meanmap.core.values import Value, frame_of, label_shown
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.shown import Shown

__all__ = ["Arm", "CausalEffect", "Estimate"]

# Shares that differ by less count as equal.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Value):
    """A number, or several, with their values in resampled data: `found.value`, `float(found)`, `found.interval(0.9)`.

    Attributes
    ----------
    value : float or array (...)
    draws : array (B, ...)
        The same for reweighted rows.
    labels : tuple
        Of the outcome, if there is a share for each: `found["yes"]` is that of one of them.

    Examples
    --------
    >>> found = Estimate(2.0, np.linspace(1, 3, 101))
    >>> print(found)
    2 (1.1 to 2.9)
    >>> float(found)
    2.0
    >>> Estimate(np.array([0.3, 0.7]), np.full((5, 2), [0.3, 0.7]), labels=("no", "yes"))["yes"].value
    0.7
    """

    value: Any
    draws: np.ndarray
    labels: tuple = field(default=(), kw_only=True)

    def __float__(self) -> float:
        if np.ndim(self.value):
            raise TypeError(
                f"this estimate holds {len(self.value)} shares, one for each label; expected one: estimate[label]."
            )
        return float(self.value)

    def __getitem__(self, label: object) -> "Estimate":
        if label not in self.labels:
            shown = ", ".join(map(repr, self.labels)) or "none, it is a number"
            meant = did_you_mean(label, self.labels)
            raise InputError(f"label is {label!r}{meant}; the labels of the outcome are: {shown}.")
        at = self.labels.index(label)
        return Estimate(float(self.value[at]), self.draws[:, at])

    def interval(self, confidence: float = 0.9) -> Any:
        """The interval that contains the truth with this confidence; of labels one of each share,
        `{label: (low, high)}`.
        """
        if self.labels:
            return {label: self[label].interval(confidence) for label in self.labels}
        low, high = np.quantile(self.draws, ends(confidence), axis=0)
        return low[()], high[()]

    def __str__(self) -> str:
        if self.labels:
            return "; ".join(f"{label_shown(label)} {self[label]}" for label in self.labels)
        low, high = self.interval()
        if np.ndim(self.value):
            return "; ".join(f"{v:.3g} ({a:.3g} to {b:.3g})" for v, a, b in zip(self.value, low, high, strict=True))
        return f"{self.value:.3g} ({low:.3g} to {high:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class Arm(Value):
    """The distribution of the outcome where the cause is set to one value.

    Attributes
    ----------
    average : Estimate
        The mean of a number, or the share of each label.
    at : array (G,) or None
        Values of a number, rising.
    below : Estimate or None
        The probability of values up to each of these, (G,).
    rows : float
        The effective number of rows of the arm, after weighting.
    """

    average: Estimate
    at: np.ndarray | None
    below: Estimate | None
    rows: float

    def mean(self) -> Estimate:
        """The mean of a number; of labels their shares: `arm.mean()["yes"]`."""
        return self.average

    def cdf(self, grid: Array) -> Estimate:
        """The probability of values up to each point of `grid`, (m,)."""
        at, below, grid = *self._law(), np.asarray(grid, dtype=float)
        step = np.searchsorted(at, grid, side="right")

        def read(rows: np.ndarray) -> np.ndarray:
            return np.concatenate([np.zeros((*rows.shape[:-1], 1)), rows], axis=-1)[..., step]

        return Estimate(read(below.value), read(below.draws))

    def quantile(self, q: float) -> Estimate:
        """The value with a share `q` of the distribution below it."""
        at, below, level = *self._law(), probability(q, "q", 0.5)

        def read(rows: np.ndarray) -> Any:
            return at[np.minimum((rows < level - ROUNDING).sum(axis=-1), len(at) - 1)]

        return Estimate(float(read(below.value)), read(below.draws))

    def _law(self) -> tuple[np.ndarray, Estimate]:
        if self.at is None or self.below is None:
            raise KindError("the outcome is a label, which has no quantiles; expected mean(), the shares of labels.")
        return self.at, self.below


@dataclass(frozen=True, eq=False, repr=False)
class CausalEffect(Paged, Value):
    """The effect on one variable of setting another to `to` rather than to `from_`, by `BayesianNetwork.effect`.

    Attributes
    ----------
    on, of : names
        The outcome, and what is set.
    from_, to : values
    arms : tuple of Arm
        The distribution of the outcome under each.
    labels : tuple
        Those of the outcome, or none.
    adjusted : tuple of names
        What the effect is adjusted for.
    path : bool
        Whether the graph has a path from the cause to the outcome; without one the effect is exactly 0.
    unsupported : float
        The share of rows for which few similar rows have one of the two values.
    rows : int
        The number of rows used.
    notes : tuple of str
        Caveats.
    shown : Shown or None
        The outcome of some rows, which the page draws: of those with each value, or against a cause that is a number.
    clusters : int or None
        In how many clusters these rows are, if rows of a cluster may depend on one another.
    """

    on: Hashable
    of: Hashable
    from_: Any
    to: Any
    arms: tuple[Arm, Arm]
    labels: tuple
    adjusted: tuple
    path: bool
    unsupported: float
    rows: int
    notes: tuple[str, ...] = ()
    shown: Shown | None = None
    clusters: int | None = None

    def difference(self, label: object = None) -> Estimate:
        """The difference of means, `to` less `from_`; of a label outcome that of the shares of all labels, or of one of
        them: `effect.difference()["yes"]`, or `effect.difference("yes")`.
        """
        before, after = (arm.mean() for arm in self.arms)
        found = Estimate(after.value - before.value, after.draws - before.draws, labels=self.labels)
        return found if label is None else found[label]

    def quantiles(self, q: float = 0.5) -> Estimate:
        """The difference of quantiles, such as the medians."""
        before, after = (arm.quantile(q) for arm in self.arms)
        return Estimate(after.value - before.value, after.draws - before.draws)

    def interval(self, confidence: float = 0.9) -> Any:
        """The interval of the difference of means; of labels one of each share, `{label: (low, high)}`."""
        return self.difference().interval(confidence)

    def to_dict(self, confidence: float = 0.9) -> dict[str, Any]:
        """The effect as plain Python values, ready for JSON."""

        def plain(found: Estimate) -> Any:
            if found.labels:
                return [plain(found[label]) for label in found.labels]
            return np.stack([found.value, *found.interval(confidence)], axis=-1).tolist()

        means = {"difference": plain(self.difference()), "arms": [plain(arm.mean()) for arm in self.arms]}
        named = {"labels": list(self.labels)} if self.labels else {"median": plain(self.quantiles())}
        asked = {"on": str(self.on), "of": str(self.of), "from": str(self.from_), "to": str(self.to)}
        basis = {"adjusted": [str(name) for name in self.adjusted], "path": self.path, "rows": self.rows}
        basis |= {} if self.clusters is None else {"clusters": self.clusters}
        overlap = {"unsupported": self.unsupported, "arm_rows": [arm.rows for arm in self.arms]}
        return {**asked, **means, **named, "confidence": confidence, **basis, **overlap, "notes": list(self.notes)}

    def to_frame(self, confidence: float = 0.9) -> Any:
        """A pandas frame: estimate, low, high of the differences of mean and median, or of the share of each label."""
        found = {label: self.difference(label) for label in self.labels}
        found = found or {"mean": self.difference(), "median": self.quantiles()}
        low, high = zip(*(each.interval(confidence) for each in found.values()), strict=True)
        return frame_of({"estimate": [each.value for each in found.values()], "low": low, "high": high}, list(found))

    def _as_page(self, brief: bool = False) -> Page:
        return effect_page(self)

    def __str__(self) -> str:
        step = f"from {_shown(self.from_)} to {_shown(self.to)}"
        lines = [f"the effect of {self.of!r} {step} on {self.on!r}, with 90% intervals"]
        if self.labels:
            lines += [f"  share of {label!r}: {self.difference(label)}" for label in self.labels]
        else:
            lines += [f"  mean: {self.difference()}", f"  median: {self.quantiles()}"]
        return "\n".join([*lines, *(f"  {line}" for line in self._basis()), *note_lines(self.notes)])

    def _basis(self) -> list[str]:
        """What the effect rests on, in words."""
        if not self.path:
            return [f"exactly 0 because the graph has no directed path from {self.of!r} to {self.on!r}"]
        names = ", ".join(map(repr, self.adjusted))
        before, after = (f"{arm.rows:.0f}" for arm in self.arms)
        of_clusters = "" if self.clusters is None else f" in {self.clusters} clusters"
        share = f"{100 * self.unsupported:.0f}% of rows have little support"
        return [
            f"adjusted for {names}" if names else "no adjustment is needed",
            f"{self.rows} rows{of_clusters}, effective sample sizes {before} and {after} in the two arms; {share}",
        ]


def _shown(value: object) -> str:
    """A value of the cause: numbers in six digits, text in quotes."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value) if isinstance(value, str) else label_shown(value)
