"""The effect of each piece of evidence on an answer."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.errors import InputError, KindError
from meanmap.core.values import Value, frame_of

__all__ = ["Sensitivity", "sensitivity"]

# Distribution functions of numbers are compared at this many levels.
LEVELS = 199


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Value):
    """How much the belief about a target changes when a piece of evidence is left out.

    Attributes
    ----------
    target : name
    moved : dict
        For each piece of evidence: of a number the mean distance between quantiles with it and without it, in standard
        deviations of the belief with all evidence (Wasserstein's distance); of labels the probability that moves to
        others.
    alone : float
        The same without any evidence.
    """

    target: Any
    moved: Mapping[Hashable, float]
    alone: float

    def to_frame(self) -> Any:
        """A pandas frame with the column `moved`, and a row for each piece of evidence by its name."""
        return frame_of({"moved": list(self.moved.values())}, list(self.moved))

    def __str__(self) -> str:
        ranked = sorted(self.moved.items(), key=lambda each: -each[1])
        lines = [f"the belief about {self.target!r} moves by"]
        lines += [f"  {distance:.2g} without {name!r}" for name, distance in ranked]
        return "\n".join([*lines, f"  {self.alone:.2g} without any evidence"])


def sensitivity(model: Any, evidence: Mapping[Any, Any], target: Hashable, **settings: object) -> Sensitivity:
    """Leave out one piece of evidence at a time, and measure how far a belief moves.

    Parameters
    ----------
    model : fitted model
        Any with `query`: of `mm.KernelGraph`, `mm.KernelField`, `mm.bp.BayesianNetwork` and so on.
    evidence : mapping from names to single values
        As for `query`.
    target : name
        A number or a label.
    **settings
        Other arguments of `query`. If it draws, pass a seed, `rng=0`, so that all answers use the same draws.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.normal(size=(3, 300))
    >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": b, "y": a + 0.1 * b + 0.3 * c})
    >>> found = sensitivity(model, {"a": 1.5, "b": 0.0}, "y")
    >>> bool(found.moved["a"] > 5 * found.moved["b"])
    True
    """
    if not isinstance(evidence, Mapping) or not evidence:
        raise InputError(f"evidence is {evidence!r}; expected a mapping from names to values, such as {{'dose': 1.0}}.")

    def belief(known: Mapping[Any, Any]) -> Any:
        return model.query(known, [target], **settings)[target]

    whole = belief(evidence)
    moved = {
        name: _distance(whole, belief({other: value for other, value in evidence.items() if other != name}), target)
        for name in evidence
    }
    return Sensitivity(target, moved, _distance(whole, belief({}), target))


def _distance(whole: Any, other: Any, target: Hashable) -> float:
    if isinstance(whole, LabelBelief):
        first, second = whole.probabilities(), other.probabilities()
        return float(sum(abs(first.get(label, 0.0) - second.get(label, 0.0)) for label in {**first, **second}) / 2)
    if isinstance(whole, np.ndarray):
        return float(np.abs(whole - other).sum() / 2)
    if np.ndim(whole.mean()):
        raise KindError(f"{target!r} is neither a single number nor a label; expected one of these as target.")
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    gap = np.mean(np.abs(np.asarray(whole.quantile(levels)) - np.asarray(other.quantile(levels))))
    return float(gap / max(float(whole.sd()), np.finfo(float).tiny))
