"""The mean-variance kernel: distributions as points of R^P."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.types import Array, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.domain import Messages, label, named, per_variable, settings, variables
from meanmap.kernels.distributions.laws import moments, resolve_coordinate
from meanmap.kernels.distributions.scales import in_places, median_of_pairs, spread_out
from meanmap.kernels.spectral import Spectral, normal_frequencies
from meanmap.kernels.stationary import RBF

__all__ = ["MeanVariance"]


class MeanVariance(DistributionKernel, Spectral):
    """κ = Π_l exp(−(m_l − m′_l)²/2w_l²) exp(−(v_l − v′_l)²/2u_l²) of the means and variances of the variables.

    It ignores all but two moments, and is cheap: an RBF kernel on R^P, with the features of `mm.features.Fourier.draw`.

    Parameters
    ----------
    mean_width, variance_width : float or array (d,), or a tuple or mapping of them
        w and u: one for all variables, or one for each.
    coordinate : str, or a tuple or mapping of them
        The coordinate of the moments, as for `ExpectedProduct`.

    Notes
    -----
    Jitkrittum et al. (2015), draft, appendix B.2.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> MeanVariance(1.0, 2.0)(Normal([0.0, 1.0], [1.0, 3.0])).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    mean_width: Any
    variance_width: Any
    coordinate: Any = eqx.field(static=True)
    names: tuple[Any, ...] | None = eqx.field(static=True)

    def __init__(self, mean_width: object = 1.0, variance_width: object = 1.0, coordinate: object = "x"):
        read = []
        for value, name in ((mean_width, "mean_width"), (variance_width, "variance_width")):
            given, keys = (value, None) if isinstance(value, list) else settings(value, name)
            one = not isinstance(given, tuple)
            read.append((parameter(given, name) if one else tuple(parameter(v, name) for v in given), keys))
        (self.mean_width, first), (self.variance_width, second) = read
        self.coordinate, third = settings(coordinate, "coordinate")
        keys = [k for k in (first, second, third) if k is not None]
        if any(k != keys[0] for k in keys):
            raise ParameterError(f"the settings are given for different variables: {', '.join(map(str, keys))}.")
        self.names = keys[0] if keys else None

    @classmethod
    def at_scale_of(cls, messages: object, coordinate: object = "auto") -> "MeanVariance":
        """Widths at the median distance between means, and between variances, column by column."""
        with Door(messages) as door:
            names, laws, places = in_places(spread_out(Messages().read(messages, "messages", door)), coordinate)
            means, spreads = [], []
            for law, place, name in zip(laws, places, names, strict=True):
                mean, variance = moments(law, place)
                means.append(_median_columns(mean, f"a width for the mean of {label('messages', name)}"))
                spreads.append(_median_columns(variance, f"a width for the variance of {label('messages', name)}"))
            return cls(*(named(tuple(values), names) for values in (means, spreads, places)))

    def _variables(self, points: Points, argument: str) -> list[tuple[Any, ...]]:
        names, laws = variables(points)
        given = [
            per_variable(value, self.names, names, setting, argument)
            for value, setting in (
                (self.mean_width, "mean_width"),
                (self.variance_width, "variance_width"),
                (self.coordinate, "coordinate"),
            )
        ]
        return list(zip(names, laws, *given, strict=True))

    def check_variables(self, points: Points, argument: str) -> None:
        """Require widths that fit the dimension of each variable, in a coordinate that the variable has."""
        for name, law, mean_width, variance_width, place in self._variables(points, argument):
            resolve_coordinate(place, law, name)
            d = law.dimension
            for width, setting in ((mean_width, "mean_width"), (variance_width, "variance_width")):
                if np.size(width) not in (1, d):
                    raise ShapeError(
                        f"{setting} has {np.size(width)} entries but {label(argument, name)} has {d} columns; "
                        "expected one number, or one per column."
                    )

    def coordinates(self, x: Points) -> jax.Array:
        """All means and variances divided by their widths, side by side."""
        columns = []
        for name, law, mean_width, variance_width, place in self._variables(x, "x"):
            mean, variance = moments(law, resolve_coordinate(place, law, name))
            columns += [jnp.asarray(mean / mean_width), jnp.asarray(variance / variance_width)]
        return jnp.concatenate(columns, axis=1)

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Draws of a standard normal distribution, whose transform is the profile."""
        return normal_frequencies(key, n, self.coordinates(like))

    @property
    def is_radial(self) -> bool:
        """True, in its coordinates."""
        return True

    def prepared(self, x: Points, y: Points = None) -> tuple[Kernel, Any, Any]:
        """An RBF kernel on the coordinates."""
        return RBF(1.0), self.coordinates(x), None if y is None else self.coordinates(y)


def _median_columns(values: Array, what: str) -> Any:
    library = library_of(values)
    columns = (values[:, d] for d in range(values.shape[1]))
    return library.stack([median_of_pairs(abs(column[:, None] - column[None, :]), what) for column in columns])
