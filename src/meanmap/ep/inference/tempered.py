"""Draws that go from the priors to the posterior of a few numbers, and then have exact weights."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.language import with_and
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.ep.inference.members import all_moved, joined, of_priors, tempered
from meanmap.ep.inference.mixture import Mixture, systematic
from meanmap.families import Beta, Normal

__all__ = ["FEW", "MANY", "Drawn", "Effort", "drawn", "refuse_nan", "weighed"]


class Effort(NamedTuple):
    """The number of draws that are made.

    Attributes
    ----------
    draws : int
        The number of members, a multiple of 128.
    accurate : number
        Draws are added until standard errors of means and standard deviations are this share of a standard deviation.
    most : int
        The mixture gives no more than about this many.
    enough : number
        If they are worth fewer than this the run gives up.
    again : int
        The factor by which there are more members in a second run, if draws may have missed some of the mass.
    """

    draws: int
    accurate: float
    most: int
    enough: float
    again: int


MANY = Effort(2048, 0.008, 131_072, 2000.0, 4)
# Where each call costs.
FEW = Effort(256, 0.016, 16_384, 250.0, 1)
# The number of populations of members; of their moves before a mixture is made around them, and again before they are
# compared with its draws; and the most mixtures that are tried.
_PARTS, _MOVES, _FITS = 4, 8, 3
# There are too few members if this share of the mass has weights that exceed their mean by this factor, as a log.
_HEAVY, _UNEVEN = 0.003, 1.4
# Members are counted where these shares of the mass have the largest weights: a surplus of this many standard errors is
# not due to chance.
_LARGEST, _CHANCE = (0.01, 0.003, 0.001), 5.0
# Images of draws that are more probable than the mixture has it by this factor, as a log, are not covered by it; they
# count if they have more than this share of the mass of the draws.
_EXCESS, _MISSED = 3.0, 1e-3
# Draws that are kept, all with the same weight.
_KEPT = 8192


@dataclass(frozen=True)
class Drawn:
    """Weighted draws from the posterior.

    Attributes
    ----------
    coordinates, values : (draws, numbers) arrays
        In the coordinates of families, and as they are.
    logs : (draws,) array
        The posterior's density, not normalised, over that of the draws.
    undefined : (draws,) array
        Where a function returned no number, and the density counts as zero.
    stages : int
        Temperatures on the way.
    apart : (numbers,) array or None
        Where draws may have missed some of the mass: how far means or standard deviations are from those of members
        that were moved, in standard deviations.
    """

    coordinates: np.ndarray
    values: np.ndarray
    logs: np.ndarray
    undefined: np.ndarray
    stages: int
    apart: np.ndarray | None = None

    def with_more(self, other: "Drawn") -> "Drawn":
        """With further draws of the same mixture."""
        x, values, logs, undefined = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("coordinates", "values", "logs", "undefined")
        )
        return Drawn(x, values, logs, undefined, self.stages)

    @property
    def shares(self) -> np.ndarray:
        """Weights that add up to 1."""
        weights = np.exp(self.logs - self.logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def log_evidence(self) -> float:
        """The log of the mean weight."""
        return float(np.log(np.exp(self.logs - self.logs.max()).mean()) + self.logs.max())

    @property
    def evidence_error(self) -> float:
        """The standard error of the log evidence."""
        return float(self.shares.std() * np.sqrt(len(self.logs)))

    @property
    def largest_error(self) -> float:
        """The largest standard error of a mean or standard deviation, in standard deviations."""
        beside = [] if self.apart is None else [self.apart.max()]
        return float(max(*((error / self.sd).max() for error in self.errors), *beside))

    def height(self, share: float) -> float:
        """The log weight that the largest weights, with this share of the mass, exceed; less that of their mean."""
        order = np.argsort(self.logs)
        at = min(int(np.searchsorted(np.cumsum(self.shares[order]), 1 - share)), len(order) - 1)
        return float(self.logs[order[at]] - self.log_evidence)

    def misses(self, logs: np.ndarray) -> bool:
        """Whether more members than by chance, by their log weights, are where those of draws are largest."""
        for share in _LARGEST:
            bound = self.height(share) + self.log_evidence
            expected = self.shares[self.logs > bound].sum()
            if (logs > bound).mean() - expected > _CHANCE * np.sqrt(max(expected, share) / len(logs)):
                return True
        return False

    def apart_from(self, values: np.ndarray) -> np.ndarray:
        """How far means or standard deviations of the numbers are from those of others, in standard deviations."""
        return np.maximum(np.abs(values.mean(0) - self.mean), np.abs(values.std(0) - self.sd)) / self.sd

    @property
    def worth(self) -> float:
        """The number of independent draws that are as good."""
        return float(1 / (self.shares**2).sum())

    @property
    def mean(self) -> np.ndarray:
        """Of each number."""
        return np.asarray(self.shares @ self.values)

    @property
    def covariance(self) -> np.ndarray:
        """Of all numbers."""
        off = self.values - self.mean
        return np.asarray(off.T @ (self.shares[:, None] * off))

    @property
    def sd(self) -> np.ndarray:
        """Of each number."""
        return np.sqrt(self.shares @ self._off**2)

    @property
    def _off(self) -> np.ndarray:
        """Values less their mean; of draws without weight, whose squares may overflow, 0."""
        return np.where(self.shares[:, None] > 0, self.values - self.mean, 0.0)

    @property
    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors of means and of standard deviations."""
        off, sd = self._off, self.sd
        return np.sqrt(self.shares**2 @ off**2), np.sqrt(self.shares**2 @ (off**2 - sd**2) ** 2) / (2 * sd)

    def alike(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draws with one weight: coordinates and values, in random order."""
        rows = generator.permutation(systematic(self.shares, _KEPT, generator))
        return self.coordinates[rows], self.values[rows]


def drawn(model: FewNumbers, generator: np.random.Generator, effort: Effort = MANY) -> Drawn | None:
    """Draws from the posterior; None if they did not get there, or if the density is no number.

    Draws of the priors are weighted, repeated and moved as the other factors come in by powers that rise to one (Del
    Moral et al. 2006). Distributions around these are then what independent draws are from, with exact weights (Cappé
    et al. 2004). Where the weights of some of the mass are so large that no draw may have met the largest, all is done
    once more with more members.
    """
    found = _drawn(model, generator, effort, 1)
    if found is not None and found.apart is not None and effort.again > 1:
        found = _drawn(model, generator, effort, effort.again)
    return found if found is not None and found.worth > effort.enough else None


def _drawn(model: FewNumbers, generator: np.random.Generator, effort: Effort, times: int) -> Drawn | None:
    """With this many times the members of an effort."""
    parts = _PARTS if effort.draws % (128 * _PARTS) == 0 else 2
    begun = tempered(model, generator, times * effort.draws // parts, parts)
    if begun is None:
        return None
    members, stages = begun
    images: list[np.ndarray] = []
    fits = 0
    while True:
        moved = all_moved(members, model, 1.0, times * _MOVES, generator)
        if moved is None:
            return None
        here = joined(moved).x
        mixture = Mixture.around(np.concatenate([here, *images]), generator)
        if fits == 0:
            images = [image for image in _exchanged(model, here) if _is_missed(model, mixture, here, image)]
            mixture = Mixture.around(np.concatenate([here, *images]), generator) if images else mixture
        found = weighed(model, mixture.draws(4 * effort.draws, generator), stages)
        moved = all_moved(moved, model, 1.0, times * _MOVES, generator)
        if found is None or moved is None:
            return None
        members, beside, fits = moved, joined(moved), fits + 1
        heights = beside.before + beside.rest - mixture.log_density(beside.x)
        if fits == _FITS or not found.misses(heights):
            break
    few = times == 1 and found.height(_HEAVY) > _UNEVEN
    if times < effort.again and (few or found.misses(heights)):
        return replace(found, apart=found.apart_from(model.points(beside.x)))
    while found.largest_error > effort.accurate and len(found.logs) < effort.most:
        more = weighed(model, mixture.draws(4 * effort.draws, generator), stages)
        if more is None:
            return None
        found = found.with_more(more)
    if not np.isfinite(found.values).all():
        return None
    doubted = few or found.misses(heights)
    return replace(found, apart=found.apart_from(model.points(beside.x))) if doubted else found


def refuse_nan(model: FewNumbers, generator: np.random.Generator, count: int) -> None:
    """Raise if functions return no number, for some row, at each of this many draws from the priors."""
    here = of_priors(model, generator, count)
    if model.logs(here)[2].all():
        names = [f"the function of {each.name}" for each in model.factors if isinstance(each, BlackBoxFactor)]
        there = ", ".join(f"{name} = {x:.3g}" for name, x in zip(model.numbers, model.points(here)[0], strict=True))
        raise InputError(
            f"{'one of ' if len(names) > 1 else ''}{with_and(names)} returned no number for some row at each of "
            f"{count:,} draws from the priors, such as {there}: call it there for every row, and correct it. Where "
            "inputs are impossible it may return nan."
        )


def _exchanged(model: FewNumbers, here: np.ndarray) -> Iterator[np.ndarray]:
    """Draws with two numbers of one family exchanged, and with probabilities turned round, too: other modes of a
    mixture.
    """
    own = zip(model.priors.values(), model.sizes, strict=True)
    families = [Normal if prior.event_shape else type(prior) for prior, size in own for _ in range(size)]
    probabilities = [at for at, family in enumerate(families) if family is Beta]
    for i, j in combinations(range(len(families)), 2):
        if families[i] is families[j]:
            image = here.copy()
            image[:, [i, j]] = here[:, [j, i]]
            yield image
            if probabilities:
                turned = image.copy()
                turned[:, probabilities] *= -1
                yield turned


def _is_missed(model: FewNumbers, mixture: Mixture, here: np.ndarray, image: np.ndarray) -> bool:
    """Whether the posterior has mass at the images of draws where a mixture around the draws has hardly any.

    The mass there, as a multiple of that of the draws, is the mean of p(image) / p(draw).
    """
    own, there = (before + rest for before, rest, _ in (model.logs(x) for x in (here, image)))
    logs = there - own
    excess = (there - mixture.log_density(image)) - np.median(own - mixture.log_density(here))
    missed = np.where((excess > _EXCESS) & np.isfinite(logs), np.exp(np.minimum(logs, 0.0)), 0.0)
    return bool(missed.mean() > _MISSED)


def weighed(model: FewNumbers, draws: tuple[np.ndarray, np.ndarray], stages: int) -> Drawn | None:
    """Draws of a mixture, of which the density is given, with their weights; None if the density is no number."""
    x, density = draws
    before, rest, undefined = model.logs(x)
    logs = np.where(before > -np.inf, before + rest, -np.inf) - density
    if np.isnan(logs).any() or not np.isfinite(logs).any():
        return None
    return Drawn(x, model.points(x), logs, undefined, stages)
