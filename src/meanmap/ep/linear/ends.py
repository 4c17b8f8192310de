"""How uncertain ends of intervals are that come from weighted draws."""

from collections.abc import Iterable

import numpy as np

from meanmap.core.language import in_digits, with_and
from meanmap.ep.linear.mixtures import quantiles

__all__ = ["error_of_end", "uncertain_ends"]

# Standard errors of so many standard deviations are worth a note, which names at most so many components. A density is
# that of the draws between two quantiles, this much of the probability below and above.
_UNCERTAIN, _NAMED, _BESIDE = 0.1, 4, 0.0125


def error_of_end(values: np.ndarray, shares: np.ndarray, p: float) -> float:
    """The standard error of the p-quantile of weighted draws (n,), in their standard deviations.

    It is that of the share of the draws below the quantile, divided by the density there.
    """
    below, at, above = quantiles(values, shares, np.array([p - _BESIDE, p, p + _BESIDE]))
    of_share = np.sqrt(shares**2 @ ((values <= at) - p) ** 2)
    sd = np.sqrt(shares @ (values - shares @ values) ** 2)
    return float(of_share * (above - below) / (2 * _BESIDE * sd))


def uncertain_ends(components: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> tuple[str, ...]:
    """A note on the components, with weighted draws of each, whose 95% intervals have uncertain ends; or none."""
    errors, number = dict[str, float](), 0
    for name, values, shares in components:
        errors[name], number = max(error_of_end(values, shares, p) for p in (0.025, 0.975)), len(values)
    found = sorted((name for name in errors if errors[name] > _UNCERTAIN), key=lambda name: -errors[name])
    if not found:
        return ()
    named = [f"{name} {in_digits(errors[name], 2)}" for name in found[:_NAMED]]
    named += [f"{len(found) - _NAMED} more"] * (len(found) > _NAMED)
    said = f"components of variance come from {number} weighted draws: ends of their 95% intervals have standard errors"
    return (f"{said}, in posterior standard deviations, of up to: {with_and(named)}",)
