"""Standard deviations and correlations of group effects, and parameters of likelihoods, on the whole line."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln

from meanmap.ep.linear.predictor import Prior

__all__ = ["Components", "GammaLog", "HalfStudent"]


@dataclass(frozen=True)
class HalfStudent:
    """A positive number distributed as |t| with these degrees of freedom and this scale; parametrised by its log."""

    degrees: float
    scale: float

    def log_density(self, log: np.ndarray) -> np.ndarray:
        """Of the log."""
        nu, square = self.degrees, (np.exp(log) / self.scale) ** 2
        constant = np.log(2) + gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu * np.pi) / 2 - np.log(self.scale)
        return constant - (nu + 1) / 2 * np.log1p(square / nu) + log

    def slope(self, log: np.ndarray) -> np.ndarray:
        """Derivative of the log density by the log."""
        square = (np.exp(log) / self.scale) ** 2
        return 1 - (self.degrees + 1) * square / (self.degrees + square)


@dataclass(frozen=True)
class GammaLog:
    """A number with a Gamma distribution, parametrised by its log."""

    shape: float
    rate: float

    def log_density(self, log: np.ndarray) -> np.ndarray:
        """Of the log."""
        return self.shape * (np.log(self.rate) + log) - gammaln(self.shape) - self.rate * np.exp(log)

    def slope(self, log: np.ndarray) -> np.ndarray:
        """Derivative of the log density by the log."""
        return self.shape - self.rate * np.exp(log)


@dataclass(frozen=True)
class Components:
    """The parts of a vector φ: for each set of correlated effects log sds and atanh of partial correlations; then logs.

    Correlations have the uniform prior over correlation matrices (Lewandowski, Kurowicka & Joe 2009, with η = 1), whose
    partial correlations are independent.

    Attributes
    ----------
    fixed : tuple of (mean, covariance)
        Of the first blocks, which are known.
    sets : tuple of tuples of int
        For each of the other blocks, how many effects vary together: (2, 1) is a pair, and one by itself.
    scales : tuple of HalfStudent
        Priors of all sds, in order.
    parameters : tuple
        Priors of the parameters of the likelihood.
    """

    fixed: tuple[tuple[np.ndarray, np.ndarray], ...]
    sets: tuple[tuple[int, ...], ...]
    scales: tuple[HalfStudent, ...]
    parameters: tuple[HalfStudent | GammaLog, ...]

    @property
    def size(self) -> int:
        """Numbers in φ."""
        return sum(k + k * (k - 1) // 2 for sets in self.sets for k in sets) + len(self.parameters)

    def parts(self) -> list[tuple[int, int, int]]:
        """Block, width and place in φ of each set."""
        found, start = [], 0
        for block, sets in enumerate(self.sets):
            for k in sets:
                found.append((block, k, start))
                start += k + k * (k - 1) // 2
        return found

    def fewer(self, what: str) -> str:
        """How to have fewer, after these words; empty if there is only one factor without slopes."""
        if max((k for sets in self.sets for k in sets), default=0) > 1:
            return f"{what}: (1 + x || g) has no correlations, (1 | g) no slopes"
        if max(map(len, self.sets), default=0) > 1:
            return f"{what}: (1 | g) has no slopes"
        return f"{what}: leave out a factor" if len(self.sets) > 1 else ""

    @property
    def logs_of_sds(self) -> np.ndarray:
        """Places in φ of the logs of standard deviations of effects."""
        return np.array([at for _, width, start in self.parts() for at in range(start, start + width)], int)

    def likelihood(self, phi: np.ndarray) -> np.ndarray:
        """The parameters of the likelihood; of many φ along the last axis."""
        return phi[..., phi.shape[-1] - len(self.parameters) :]

    def covariances(self, phi: np.ndarray) -> list[np.ndarray]:
        """Of the effects of a group, block by block; of many φ along the last axis."""
        found = [np.zeros((*phi.shape[:-1], sum(sets), sum(sets)), phi.dtype) for sets in self.sets]
        filled = [0] * len(self.sets)
        for block, k, start in self.parts():
            here = slice(filled[block], filled[block] + k)
            partial = phi[..., start + k : start + k + k * (k - 1) // 2]
            found[block][..., here, here] = covariance(phi[..., start : start + k], partial)
            filled[block] += k
        return found

    def prior(self, phi: np.ndarray) -> Prior:
        """Of all effects, given φ."""
        groups = self.covariances(phi)
        means = [*(mean for mean, _ in self.fixed), *(np.zeros(len(each)) for each in groups)]
        return Prior(tuple(means), (*(covariance for _, covariance in self.fixed), *groups))

    def log_density(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of φ a priori, and its gradient; of many φ along the last axis."""
        total, gradient, scale = np.zeros(phi.shape[:-1]), np.zeros(phi.shape), iter(self.scales)
        for _, k, start in self.parts():
            for at in range(start, start + k):
                law = next(scale)
                total = total + law.log_density(phi[..., at])
                gradient[..., at] = law.slope(phi[..., at])
            at = start + k
            for i in range(1, k):
                for level in range(i):
                    # Beta(b, b) on (−1, 1), and dρ/dz = 1 − ρ².
                    b = 1 + (k - 2 - level) / 2
                    total = total - 2 * b * _log_cosh(phi[..., at]) - _log_beta(b)
                    gradient[..., at] = -2 * b * np.tanh(phi[..., at])
                    at += 1
        for at, law in enumerate(self.parameters, start=phi.shape[-1] - len(self.parameters)):
            total = total + law.log_density(phi[..., at])
            gradient[..., at] = law.slope(phi[..., at])
        return total, gradient

    def chain(self, phi: np.ndarray, by_covariance: Sequence[np.ndarray]) -> np.ndarray:
        """The gradient by φ of a function of the covariances, from its derivative by each; of many φ along the last
        axis.
        """
        size = phi.shape[-1]
        gradient, count = np.zeros(phi.shape), size - len(self.parameters)
        # A complex step this small is a derivative without rounding.
        moved = self.covariances(phi[..., None, :] + 1e-30j * np.eye(size)[:count])
        for by, each in zip(by_covariance, moved, strict=True):
            gradient[..., :count] += (by[..., None, :, :] * np.imag(each)).sum((-2, -1)) / 1e-30
        return gradient


def covariance(logs: np.ndarray, partial: np.ndarray) -> np.ndarray:
    """From log sds, and atanh of partial correlations row by row."""
    k, at = logs.shape[-1], 0
    root = np.zeros((*logs.shape, k), np.result_type(logs, float))
    for i in range(k):
        left = np.ones(logs.shape[:-1], root.dtype)
        for j in range(i):
            root[..., i, j] = np.tanh(partial[..., at]) * np.sqrt(left)
            left = left - root[..., i, j] ** 2
            at += 1
        root[..., i, i] = np.sqrt(left)
    scaled = np.exp(logs)[..., None] * root
    return scaled @ np.swapaxes(scaled, -1, -2)


def _log_cosh(z: np.ndarray) -> np.ndarray:
    return np.abs(z) + np.log1p(np.exp(-2 * np.abs(z))) - np.log(2)


@cache
def _log_beta(b: float) -> float:
    """log ∫ (1 − ρ²)^(b − 1) dρ over (−1, 1)."""
    return float((2 * b - 1) * np.log(2) + 2 * gammaln(b) - gammaln(2 * b))
