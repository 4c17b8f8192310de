"""A message to a Normal as derivatives of the log normaliser: what to learn, because no division amplifies its error.

With a cavity N(m, v) and Z = ∫ f(x) N(x; m, v) dx, α = ∂ log Z/∂m and β = −∂² log Z/∂m² (Minka 2001). The tilted
distribution has mean m + v α and variance v − v² β; its ratio to the cavity has precision β/(1 − v β), also where that
is improper.
"""

from typing import Any

from meanmap.core.types import Array
from meanmap.families import Normal

__all__ = ["from_log_z_derivatives", "log_z_derivatives"]


def log_z_derivatives(cavity: Normal, message: Normal) -> tuple[Any, Any]:
    """α = ∂ log Z/∂m and β = −∂² log Z/∂m² of the factor that answers a cavity N(m, v) by a message.

    Examples
    --------
    >>> from meanmap import ep
    >>> cavity = ep.Normal(0.0, 4.0)
    >>> message = ep.extending.ask(ep.Probit(ep.Variable("z", ep.Normal), observed=1), cavity).messages[0]
    >>> alpha, beta = ep.extending.log_z_derivatives(cavity, message)
    >>> round(float(alpha), 6), round(float(beta), 6)  # φ(0)/Φ(0)/√5 and its square
    (0.356825, 0.127324)
    >>> ep.extending.from_log_z_derivatives(cavity, alpha, beta).precision.round(6) == message.precision.round(6)
    np.True_
    """
    left = 1 + message.precision * cavity.var()
    return (message.precision_mean - message.precision * cavity.mean()) / left, message.precision / left


def from_log_z_derivatives(cavity: Normal, first: Array, second: Array) -> Normal:
    """The message of a factor with these α and β: `log_z_derivatives` undone; β < 1/v, or no tilted distribution
    exists.
    """
    precision = second / (1 - cavity.var() * second)
    return Normal.from_natural(first * (1 + precision * cavity.var()) + precision * cavity.mean(), precision)
