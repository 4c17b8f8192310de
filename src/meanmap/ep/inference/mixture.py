"""Student distributions around draws, from which further draws are made whose density is known."""

from math import lgamma
from typing import NamedTuple

import numpy as np

__all__ = ["Mixture", "root_of", "spread_of", "systematic"]

# The most distributions, their degrees of freedom, and the shares of the draws, the nearest ones, of which each may
# have the covariance: small shares follow curved ridges.
_KERNELS, _NU, _NEAR = 512, 6.0, (1 / 16, 1 / 40, 1 / 100)


class Mixture(NamedTuple):
    """Student distributions around draws: of these, divided by a common root, centres and roots of scales."""

    root: np.ndarray
    centres: np.ndarray
    roots: np.ndarray

    @classmethod
    def around(cls, draws: np.ndarray, generator: np.random.Generator) -> "Mixture":
        """Around some of the draws, each as wide as those that are nearest.

        The share that is nearest is the one by which half of the draws makes the other half most probable.
        """
        root = root_of(draws)
        units = np.linalg.solve(root, generator.permutation(np.unique(draws, axis=0)).T).T
        middle = len(units) // 2
        other = units[middle : middle + middle // 128 * 128]

        def within(units: np.ndarray, share: float) -> Mixture:
            return cls(np.eye(len(root)), units[:_KERNELS], spread_of(units, units[:_KERNELS], share))

        def probable(share: float) -> float:
            return float(within(units[:middle], share).log_density(other).mean())

        return within(units, max(_NEAR, key=probable) if len(other) else _NEAR[0])._replace(root=root)

    def draws(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """As many of each, and the logs of their density."""
        size = self.centres.shape[1]
        own = generator.permutation(np.arange(count) % len(self.centres))
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
        for some in np.split(units, max(len(units) // 128, 1)):
            away = np.matmul(some - self.centres[:, None], inverse.transpose(0, 2, 1))
            # NumPy's log and exp are several times as fast as its log1p and logaddexp.
            each = constant[:, None] - (_NU + size) / 2 * np.log(1 + np.einsum("kni,kni->kn", away, away) / _NU)
            top = each.max(axis=0)
            logs.append(top + np.log(np.exp(each - top).sum(axis=0)))
        return np.concatenate(logs)


def spread_of(units: np.ndarray, centres: np.ndarray, share: float) -> np.ndarray:
    """Roots of covariances of the share of draws that is nearest to each of some centres."""
    from scipy.spatial import KDTree

    size = units.shape[1]
    count = min(max(int(share * len(units)), 5 * size), len(units) - 1)
    near = units[KDTree(units).query(centres, count)[1]]
    off = near - near.mean(1, keepdims=True)
    scales = np.matmul(off.transpose(0, 2, 1), off) / count
    wide = 1e-9 * np.trace(scales, axis1=1, axis2=2) + 1e-18
    return np.linalg.cholesky(scales + wide[:, None, None] * np.eye(size))


def root_of(draws: np.ndarray) -> np.ndarray:
    """A root of the covariance of draws."""
    covariance = np.cov(draws.T).reshape(draws.shape[1], -1)
    return np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(len(covariance)))


def systematic(shares: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Rows, as often as their shares say."""
    places = (np.arange(count) + generator.random()) / count
    return np.searchsorted(np.cumsum(shares), places).clip(max=len(shares) - 1)
