"""Coordinates that separate well identified functions of the standard deviations from poorly identified ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.ep.linear.components import Components

__all__ = ["Coordinates"]

# Parameters of families as powers of the standard deviation of noise.
_NOISE = {"sigma": 1.0, "alpha": -2.0}


@dataclass(frozen=True)
class Coordinates:
    """ψ in place of φ: logs of standard deviations are replaced by the log of the total and logs of successive ratios.

    Data determine the total variance, Σ sd², better than its components: with one row per group only sd(Intercept)² +
    sigma² is identified. There φ lies along a quarter of a circle, whose logs are not Normal; ψ is an identified total
    and a ratio. Slopes are split off first, then intercepts from few groups to many, then noise. φ ↦ ψ has a constant
    volume.

    Attributes
    ----------
    places : tuple of int
        Positions in φ of the split parameters, in this order.
    powers : tuple of number
        Powers of the standard deviations whose logs are there.
    """

    places: tuple[int, ...]
    powers: tuple[float, ...]

    @classmethod
    def of(cls, components: Components, sizes: tuple[int, ...], parameters: tuple[str, ...]) -> "Coordinates":
        """Built from the number of groups in each block, and the names of the family's parameters."""
        count, found = len(components.fixed), []
        for block, width, start in components.parts():
            found += [(sizes[count + block], -at, start + at, 1.0) for at in range(width)]
        found.sort(key=lambda each: (each[0], each[1]))
        first = components.size - len(components.parameters)
        found += [(0, 0, first + at, _NOISE[name]) for at, name in enumerate(parameters) if name in _NOISE]
        return cls(tuple(each[2] for each in found), tuple(each[3] for each in found))

    def candidates(self) -> list["Coordinates"]:
        """Three charts: φ unchanged, with only the last pair split, and with all split."""
        lengths = dict.fromkeys([0, *(n for n in (2, len(self.places)) if n <= len(self.places) and n > 1)])
        return [Coordinates(self.places[len(self.places) - n :], self.powers[len(self.powers) - n :]) for n in lengths]

    def split(self, phi: np.ndarray) -> np.ndarray:
        """ψ of φ, along the last axis."""
        psi = np.array(phi)
        if not self.places:
            return psi
        *first, whole = (phi[..., at] / power for at, power in zip(self.places, self.powers, strict=True))
        for at, one in zip(self.places[-2::-1], first[::-1], strict=True):
            psi[..., at] = one - whole
            whole = np.logaddexp(2 * one, 2 * whole) / 2
        psi[..., self.places[-1]] = whole
        return psi

    def joined(self, psi: np.ndarray) -> np.ndarray:
        """φ of ψ, along the last axis; complex numbers, too."""
        phi = np.array(psi)
        if not self.places:
            return phi
        left = psi[..., self.places[-1]]
        for at, power in zip(self.places[:-1], self.powers, strict=False):
            ratio = psi[..., at]
            # −½ log(1 + e^(2 ratio)), without overflow.
            high = np.real(ratio) > 0
            less = -np.log1p(np.exp(2 * np.where(high, -ratio, ratio))) / 2 - np.where(high, ratio, 0)
            phi[..., at] = (left + ratio + less) * power
            left = left + less
        phi[..., self.places[-1]] = left * self.powers[-1]
        return phi

    def slopes(self, psi: np.ndarray) -> np.ndarray:
        """dφ / dψ at points along the last axis, by complex steps, which have no cancellation."""
        moved = self.joined(psi[..., None, :] + 1e-30j * np.eye(psi.shape[-1]))
        return np.swapaxes(np.imag(moved), -1, -2) / 1e-30

    @cached_property
    def log_volume(self) -> float:
        """The log determinant of dφ / dψ."""
        return float(np.log(np.abs(self.powers)).sum()) if self.places else 0.0
