"""Three ways to apply a learned operator: in full, in low rank, or at a cost that no longer knows the data.

A message from t to s is the regression on x_s of p(x_t), the product of what t knows (Song et al. 2011, section 4).
With m pairs (x_t, x_s), p is needed

- full: at all m points of x_t, and the message is a combination of m functions k(x_s, ·): O(m²);
- linear: at all m points of x_t, and the message is a combination of r features φ(x_s): O(r m);
- constant: at the r' pivots of the tensor kernel k^q of x_t only; by interpolation they determine p elsewhere: O(r r').
"""

from dataclasses import dataclass

from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError

__all__ = ["Constant", "Full", "Linear", "Update"]


@dataclass(frozen=True)
class Update:
    """How messages are computed."""


@dataclass(frozen=True)
class Full(Update):
    """No approximation: O(m²) a message, for up to a few thousand pairs."""


@dataclass(frozen=True)
class Linear(Update):
    """Features φ of low rank, products still at all points: O(r m) a message.

    Parameters
    ----------
    tolerance : float in (0, 1)
        ε: the root mean square of ‖φ(x) − φ̃(x)‖ / ‖φ(x)‖ over the points that were learned from.
    rank : int, optional
        So many features instead.
    """

    tolerance: float = 1e-3
    rank: int | None = None

    def __post_init__(self):
        _check(self.tolerance, self.rank)


@dataclass(frozen=True)
class Constant(Update):
    """Features of low rank and messages at a few learned points: the cost of a message does not depend on the data.

    Parameters
    ----------
    tolerance : float in (0, 1)
        ε, for the features and for the tensor features.
    rank : int, optional
        So many features and landmarks instead.
    power : int
        q: products of so many messages are interpolated from landmarks. On a grid a pixel multiplies three messages
        before it sends; the landmarks of k³ have been measured to do for products of more.
    atoms : int
        The most points on which a belief puts its mass.
    """

    tolerance: float = 1e-2
    rank: int | None = None
    power: int = 3
    atoms: int = 256

    def __post_init__(self):
        _check(self.tolerance, self.rank)
        parameter(self.power, "power", axes=0, integer=True)
        parameter(self.atoms, "atoms", axes=0, integer=True)


def _check(tolerance: float, rank: int | None) -> None:
    parameter(tolerance, "tolerance", axes=0)
    if tolerance >= 1:
        raise ParameterError(f"tolerance is {tolerance}; expected a share below 1, such as 1e-2.")
    if rank is not None:
        parameter(rank, "rank", axes=0, integer=True)
