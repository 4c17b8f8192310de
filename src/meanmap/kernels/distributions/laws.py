"""Properties of distributions, families or bags, for kernels on distributions: coordinate, moments, characteristic
function.
"""

from typing import Any

import numpy as np

from meanmap.core.door import is_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.types import Array
from meanmap.families import Categorical, Mixture, PointMass
from meanmap.families.base import Distribution
from meanmap.families.beta import Beta
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.domain import label

__all__ = ["TRACED_FREQUENCY", "characteristic", "moments", "resolve_coordinate"]

# With traced frequencies, the characteristic function of a Beta in x is computed up to this frequency.
TRACED_FREQUENCY = 256.0


def resolve_coordinate(coordinate: str, law: Distribution | Bags, name: object = None) -> str:
    """A checked coordinate; "auto" becomes "log" for a Gamma, "logit" for a Beta and "x" for most others."""
    known = law.coordinates
    if coordinate == "auto":
        return "x" if isinstance(law, PointMass) else known[-1]
    if coordinate not in known:
        listed = ", ".join(map(repr, known))
        hint = " Transform the samples instead." if isinstance(law, Bags) else ""
        raise ParameterError(
            f"the coordinate of {label('x', name)} is {coordinate!r}; {type(law).__name__} has {listed}.{hint}"
        )
    return coordinate


def moments(law: Distribution | Bags, coordinate: str) -> tuple[Any, Any]:
    """Mean and variance of each distribution in a coordinate, (N, d) each."""
    mean, variance = law.mean_in(coordinate), law.variance_in(coordinate)
    if np.ndim(mean) == 1:
        return mean[:, None], variance[:, None]
    return mean, variance


def characteristic(law: Distribution | Bags, w: Array, coordinate: str) -> Any:
    """E exp(i w·X) of each distribution at frequencies w (D, d), complex (N, D)."""
    vectors = bool(law.event_shape) or isinstance(law, Categorical)
    return law.characteristic_function(w if vectors else w[:, 0], coordinate)


def check_traced_frequency(law: object, coordinate: str, largest: Any, name: Any, argument: str) -> None:
    """Refuse a Beta in x at frequencies above those computed inside `jit`."""
    inner = law.components if isinstance(law, Mixture) else law
    if isinstance(inner, Beta) and coordinate == "x" and is_concrete(largest) and float(largest) > TRACED_FREQUENCY:
        raise ParameterError(
            f"the frequencies of {label(argument, name)} reach {float(largest):.3g}, where a Beta in the coordinate "
            f"'x' is computed up to {TRACED_FREQUENCY:g}: use coordinate 'logit', or a longer lengthscale."
        )


def check_distribution(law: object, action: str) -> None:
    """Refuse vector distributions without a closed form."""
    if isinstance(law, Distribution) and law.event_shape:
        raise KindError(
            f"{type(law).__name__} has no exact {action} under an RBF kernel in several dimensions: use random "
            "features, mm.features.TwoStage.draw(kernel, like=messages), or bags of samples."
        )
