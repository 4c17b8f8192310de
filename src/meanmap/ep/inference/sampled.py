"""What sampling leaves in beliefs: the standard errors of their means, and the effective numbers of draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.ep.factor import Factor
from meanmap.ep.oracles.sampling import FEW, Sampler
from meanmap.ep.sweeps.plan import fetched
from meanmap.ep.sweeps.sweep import Happened
from meanmap.ep.variables import Selection
from meanmap.families import Family

__all__ = ["LARGE", "Sampled"]

# A standard error of more of a standard deviation is large: it is that of 400 independent draws (Vehtari et al. 2021).
LARGE = 0.05


@dataclass(frozen=True)
class Sampled:
    """Errors of sampling in a run.

    Attributes
    ----------
    standard_errors : dict
        By variable, that of its mean, in the shape of the mean.
    effective : dict
        By factor, the least effective sample size of its members.
    log_evidence : number
        The standard error of the log evidence; 0 where no factor is sampled.
    more : str
        The oracle with four times the points of the first sampled factor, as it is typed; empty for other oracles.
    """

    standard_errors: dict[str, np.ndarray] = field(default_factory=dict)
    effective: dict[str, float] = field(default_factory=dict)
    log_evidence: float = 0.0
    more: str = ""

    @classmethod
    def of(cls, factors: tuple[Factor, ...], happened: tuple[Happened, ...]) -> "Sampled":
        """After the last sweep. Errors of members of a plate, and of factors, are independent: their squares add up."""
        squares: dict[str, np.ndarray] = {}
        effective, evidence, more = {}, 0.0, ""
        for factor, one in zip(factors, happened, strict=True):
            if one.effective is not None:
                size = np.asarray(_real(one.effective, factor))
                effective[factor.name] = float(size.min())
                oracle = getattr(factor, "oracle", None)
                if isinstance(oracle, Sampler):
                    evidence += float((1 / size).sum())
                    more = more or f"ep.{type(oracle).__name__}({4 * oracle.points:_})"
            for argument, error in zip(factor.arguments, one.mean_errors or (), strict=False):
                if error is not None:
                    before = squares.get(argument.name, 0.0)
                    squares[argument.name] = before + _summed(np.asarray(_real(error, factor)) ** 2, argument, factor)
        return cls({name: np.sqrt(square) for name, square in squares.items()}, effective, evidence**0.5, more)

    @property
    def few(self) -> bool:
        """Whether some message is made of so few effective draws that standard errors say little."""
        return any(size < FEW for size in self.effective.values())

    def in_deviations(self, found: Mapping[str, Family]) -> dict[str, float]:
        """By variable, the largest standard error in standard deviations of beliefs."""
        proper = (name for name in self.standard_errors if np.all(fetched(found[name].is_proper())))
        shares = {name: self.standard_errors[name] / fetched(found[name].sd()) for name in proper}
        return {name: float(np.max(share)) for name, share in shares.items()}

    def measures(self, shares: Mapping[str, float]) -> dict[str, float]:
        """For the report."""
        found = {f"{name}: effective sample size": size for name, size in self.effective.items()}
        found |= {
            f"{name}: standard error of its mean by sampling, in standard deviations": share
            for name, share in shares.items()
        }
        return found | ({"log evidence: standard error by sampling": self.log_evidence} if self.log_evidence else {})

    def notes(self, shares: Mapping[str, float]) -> list[str]:
        """Which errors are large, and what to type."""
        large = {name: share for name, share in shares.items() if share > LARGE}
        if not large:
            return []
        listed = ", ".join(f"{name!r} by {share:.2g}" for name, share in large.items())
        said = f"sampling leaves means uncertain, in standard deviations: {listed}"
        points = f"Four times the points, messages={self.more}," if self.more else "Four times the draws"
        return [f"{said}. {points} halve that"]


def _real(value: Any, factor: Factor) -> Any:
    """Of the members that are real."""
    return fetched(value)[: factor.plate] if factor.plate else value


def _summed(square: np.ndarray, argument: Any, factor: Factor) -> np.ndarray:
    """Squares of the members of a factor for the members of a variable."""
    if isinstance(argument, Selection):
        total = np.zeros((*argument.variable.shape, *square.shape[1:]))
        np.add.at(total, argument.index, square)
        return total
    return square.sum(0) if factor.plate is not None and argument.variable.plate is None else square
