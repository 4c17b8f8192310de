"""Draws that go from the priors to the posterior of a few numbers, and then have exact weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import lgamma
from typing import NamedTuple

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.language import with_and
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.ep.weighted_draws import pareto_shape
from meanmap.families import Beta, Normal

__all__ = ["FEW", "MANY", "Drawn", "Effort", "Mixture", "drawn", "refuse_nan", "weighed"]


class Effort(NamedTuple):
    """The number of draws that are made.

    Attributes
    ----------
    draws : int
        So many go to the posterior, a multiple of 128.
    accurate : number
        Draws are added until standard errors of means and standard deviations are this share of a standard deviation.
    most : int
        The mixture gives no more than about this many.
    enough : number
        If they are worth fewer than this the run gives up.
    """

    draws: int
    accurate: float
    most: int
    enough: float


MANY = Effort(2048, 0.008, 131_072, 2000.0)
# Where each call costs.
FEW = Effort(256, 0.016, 16_384, 250.0)
# Draws are moved so often at each temperature.
_MOVES = 6
# Half of the draws are worth as much as all at the next temperature; after so many the run gives up.
_WORTH, _STAGES = 0.5, 60
# A mixture of so many Student distributions with these degrees of freedom, each with the covariance of this share of
# the draws, those nearest to its own.
_KERNELS, _NU, _NEAR = 512, 6.0, 1 / 16
# The mixture is made anew, up to so many times, where its draws are worth less than this share of their number, or
# their weights have a longer tail than this (Vehtari et al. 2024); then so many of the heaviest draws are among its
# centres.
_REFITS, _SHARE, _TAIL, _HEAVIEST = 4, 0.1, 0.3, 64
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
    """

    coordinates: np.ndarray
    values: np.ndarray
    logs: np.ndarray
    undefined: np.ndarray
    stages: int

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
        return max(float((error / self.sd).max()) for error in self.errors)

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
        return np.sqrt(self.shares @ (self.values - self.mean) ** 2)

    @property
    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors of means and of standard deviations."""
        off, sd = self.values - self.mean, self.sd
        return np.sqrt(self.shares**2 @ off**2), np.sqrt(self.shares**2 @ (off**2 - sd**2) ** 2) / (2 * sd)

    def alike(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draws with one weight: coordinates and values, in random order."""
        rows = generator.permutation(_systematic(self.shares, _KEPT, generator))
        return self.coordinates[rows], self.values[rows]


def drawn(model: FewNumbers, generator: np.random.Generator, effort: Effort = MANY) -> Drawn | None:
    """Draws from the posterior; None if they did not get there, or if the density is no number.

    Draws of the priors are weighted, repeated and moved as the other factors come in by powers that rise to one (Del
    Moral et al. 2006). Distributions around these are then what independent draws are from, with exact weights (Cappé
    et al. 2004).
    """
    tempered = _tempered(model, generator, effort.draws)
    if tempered is None:
        return None
    here, stages = tempered
    mixture, found = Mixture.around(here, generator), None
    other = [image for image in _exchanged(model, here) if _is_missed(model, mixture, here, image)]
    if other:
        mixture = Mixture.around(np.concatenate([here, *other]), generator)
    for _ in range(_REFITS):
        found = weighed(model, mixture.draws(4 * effort.draws, generator), stages)
        if found is None or (found.worth > _SHARE * len(found.shares) and pareto_shape(found.logs) < _TAIL):
            break
        heaviest = found.coordinates[np.argsort(found.logs)[-_HEAVIEST:]]
        chosen = found.coordinates[_systematic(found.shares, effort.draws, generator)]
        mixture, found = Mixture.around(chosen, generator, heaviest), None
    while found is not None and found.largest_error > effort.accurate and len(found.shares) < effort.most:
        more = weighed(model, mixture.draws(4 * effort.draws, generator), stages)
        found = None if more is None else found.with_more(more)
    return found if found is not None and found.worth > effort.enough and np.isfinite(found.values).all() else None


def _tempered(model: FewNumbers, generator: np.random.Generator, count: int) -> tuple[np.ndarray, int] | None:
    """Draws from nearly the posterior, in coordinates, and the number of temperatures."""
    here, power = _of_priors(model, generator, count), 0.0
    before, rest, _ = model.logs(here)
    if np.isnan(rest).any() or not np.isfinite(here).all():
        return None
    for stage in range(1, _STAGES + 1):
        if not np.isfinite(rest).any():
            return None
        step = _next(rest, power)
        weights = np.exp(step * (rest - rest.max()))
        chosen = _systematic(weights / weights.sum(), count, generator)
        here, before, rest, power = here[chosen], before[chosen], rest[chosen], power + step
        root = _root(here)
        for _ in range(_MOVES):
            # Steps of many sizes: those that are large for one mode are small for the way between two.
            scale = 2.4 / np.sqrt(here.shape[1]) * 10 ** -generator.uniform(0, 2, size=(count, 1))
            there = here + scale * (generator.normal(size=here.shape) @ root.T)
            prior, likelihood, _ = model.logs(there)
            if np.isnan(likelihood).any():
                return None
            rise = prior - before + power * (np.maximum(likelihood, -1e300) - rest)
            taken = np.log(generator.random(count)) < rise
            here = np.where(taken[:, None], there, here)
            before, rest = np.where(taken, prior, before), np.where(taken, likelihood, rest)
        if power >= 1:
            return here, stage
    return None


def _of_priors(model: FewNumbers, generator: np.random.Generator, count: int) -> np.ndarray:
    """Draws from the priors, in coordinates."""
    columns = []
    for prior in model.priors.values():
        own = prior.coordinates[-1]
        x = np.asarray(prior.sample(count, int(generator.integers(2**31))), float)
        columns.append({"x": lambda x: x, "log": np.log, "logit": lambda x: np.log(x) - np.log1p(-x)}[own](x))
    return np.column_stack(columns)


def refuse_nan(model: FewNumbers, generator: np.random.Generator, count: int) -> None:
    """Raise if functions return no number, for some row, at each of this many draws from the priors."""
    here = _of_priors(model, generator, count)
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


def _is_missed(model: FewNumbers, mixture: "Mixture", here: np.ndarray, image: np.ndarray) -> bool:
    """Whether the posterior has mass at the images of draws where a mixture around the draws has hardly any.

    The mass there, as a multiple of that of the draws, is the mean of p(image) / p(draw).
    """
    own, there = (before + rest for before, rest, _ in (model.logs(x) for x in (here, image)))
    logs = there - own
    excess = (there - mixture.log_density(image)) - np.median(own - mixture.log_density(here))
    missed = np.where((excess > _EXCESS) & np.isfinite(logs), np.exp(np.minimum(logs, 0.0)), 0.0)
    return bool(missed.mean() > _MISSED)


class Mixture(NamedTuple):
    """Student distributions around draws: of these, divided by a common root, centres and roots of scales."""

    root: np.ndarray
    centres: np.ndarray
    roots: np.ndarray

    @classmethod
    def around(cls, draws: np.ndarray, generator: np.random.Generator, also: np.ndarray | None = None) -> "Mixture":
        """Each as wide as the draws that are nearest to its own; around these draws, too."""
        size = draws.shape[1]
        root = _root(draws)
        units = np.linalg.solve(root, draws.T).T
        more = np.zeros((0, size)) if also is None else np.linalg.solve(root, also.T).T
        rows = generator.choice(len(units), min(_KERNELS, len(units)) - len(more), replace=False)
        centres = np.concatenate([more, units[rows]])
        squares = (centres**2).sum(1)[:, None] + (units**2).sum(1) - 2 * centres @ units.T
        count = max(int(_NEAR * len(units)), 10 * size)
        near = units[np.argpartition(squares, count, axis=1)[:, :count]]
        off = near - near.mean(1, keepdims=True)
        scales = np.einsum("kmi,kmj->kij", off, off) / count + 1e-9 * np.eye(size)
        return cls(root, centres, np.linalg.cholesky(scales))

    def draws(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """As many of each, and the logs of their density."""
        size = self.centres.shape[1]
        own = np.tile(np.arange(len(self.centres)), count // len(self.centres))
        noise = generator.normal(size=(count, size)) / np.sqrt(generator.chisquare(_NU, size=(count, 1)) / _NU)
        units = self.centres[own] + np.einsum("nij,nj->ni", self.roots[own], noise)
        x = units @ self.root.T
        return x, self.log_density(x)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """The log of the density at points, a multiple of 128."""
        size, units = self.centres.shape[1], np.linalg.solve(self.root, x.T).T
        inverse = np.linalg.inv(self.roots)
        constant = lgamma((_NU + size) / 2) - lgamma(_NU / 2) - size / 2 * np.log(_NU * np.pi) - np.log(len(inverse))
        constant = (
            constant - np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(1) - np.log(np.diag(self.root)).sum()
        )
        logs = []
        for some in np.split(units, max(len(units) // 512, 1)):
            away = np.einsum("kij,nkj->nki", inverse, some[:, None] - self.centres, optimize=True)
            each = constant - (_NU + size) / 2 * np.log1p((away**2).sum(2) / _NU)
            logs.append(np.logaddexp.reduce(each, axis=1))
        return np.concatenate(logs)


def weighed(model: FewNumbers, draws: tuple[np.ndarray, np.ndarray], stages: int) -> Drawn | None:
    """Draws of a mixture, of which the density is given, with their weights; None if the density is no number."""
    x, density = draws
    before, rest, undefined = model.logs(x)
    logs = np.where(before > -np.inf, before + rest, -np.inf) - density
    if np.isnan(logs).any() or not np.isfinite(logs).any():
        return None
    return Drawn(x, model.points(x), logs, undefined, stages)


def _root(draws: np.ndarray) -> np.ndarray:
    covariance = np.cov(draws.T).reshape(draws.shape[1], -1)
    return np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(len(covariance)))


def _systematic(shares: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Rows, as often as their shares say."""
    places = (np.arange(count) + generator.random()) / count
    return np.searchsorted(np.cumsum(shares), places).clip(max=len(shares) - 1)


def _next(rest: np.ndarray, power: float) -> float:
    """By how much the power rises: until draws are worth a share of what they are."""

    def worth(step: float) -> float:
        weights = np.exp(step * (rest - rest.max()))
        return float(weights.sum() ** 2 / (weights**2).sum() / len(rest))

    low, high = 0.0, 1.0 - power
    if worth(high) >= _WORTH:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) >= _WORTH else (low, middle)
    return max(low, 1e-12)
