"""The probability that a noisy Normal falls into an interval, in closed form: probit, ordinal outcomes, rankings."""

from typing import Any, ClassVar, NamedTuple, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array
from meanmap.core.errors import KindError, NonFiniteError, ParameterError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Numbers
from meanmap.core.values import as_tuple
from meanmap.ep.factor import Answer, Factor, check_family, check_observed, common_plate, replaced
from meanmap.ep.factors.gaussian import HALF_LOG_TWO_PI
from meanmap.ep.quadrature.mesh import DEPTH
from meanmap.ep.variables import Argument, Given, Selection, Variable, read_argument, read_given, refuse_dates
from meanmap.families import Normal

__all__ = ["Common", "Interval", "Ordinal", "Probit", "intersected", "is_sharp", "log_difference"]


# Of Gauss and Legendre on [0, 1]: exact to rounding for what falls by e³⁷ over it, and for half of a bell.
_GAUSS = [
    np.asarray(each) / 2 + shift for each, shift in zip(np.polynomial.legendre.leggauss(32), (0.5, 0.0), strict=True)
]


class Interval(Factor):
    """f(z) = P(low < z + noise < high), for each member of a plate.

    Parameters
    ----------
    z : Variable
        A Normal.
    low, high : array_like
        Ends of the interval, −∞ and ∞ allowed.
    noise : number
        Standard deviation of the Gaussian noise; 0 for a sharp interval.

    Notes
    -----
    With a cavity N(m, v), s² = v + noise², a = (low − m)/s and b = (high − m)/s, the normaliser is Z = Φ(b) − Φ(a), and
    the message follows from the derivatives of log Z in m (Minka 2001), with no division of variances. Where the
    interval leaves less than half of the variance these would cancel: narrow intervals and far tails are integrated.

    Sharp intervals of one number (`noise=0`) are one, what they have in common: its message is sent by the first row,
    and those of the others are flat.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> post = ep.infer(ep.FactorGraph(ep.Interval(z, 0.0, noise=0.0)))
    >>> round(float(post["z"].mean()), 6), round(float(post.log_evidence), 6)
    (0.797885, -0.693147)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    noise: Any
    approximate: ClassVar[bool] = True

    @own_words
    def __init__(
        self,
        z: Argument,
        low: Argument = -np.inf,
        high: Argument = np.inf,
        *,
        noise: Numbers = 1.0,
        name: str | None = None,
    ):
        z = read_argument(z, "z")
        label = name or f"Interval({z.name})"
        check_family(label, "z", z, Normal)
        ends = [_read_end(low, "low", label), _read_end(high, "high", label)]
        common_plate(label, {"z": z, "low": ends[0], "high": ends[1]})
        wrong = np.atleast_1d(ends[0].values >= ends[1].values)
        if wrong.any():
            raise ParameterError(f"low of {label} is not below high at {np.argwhere(wrong)[0].tolist()}.")
        if isinstance(noise, Variable | Selection):
            raise KindError(
                f"noise of {label} is the variable {noise.name!r}; expected a number. For unknown noise name what is "
                'noisy: x = ep.Variable("x", ep.Normal), ep.Gaussian(z, x, precision=tau) with a Gamma tau, '
                "ep.Interval(x, low, high, noise=0)."
            )
        noise = read_given(noise, "noise", axes=0).values
        if noise < 0:
            raise ParameterError(f"noise of {label} is {noise:g}; expected a standard deviation, 0 or more.")
        self.arguments, self.name, self.noise = (z, *ends), label, noise

    @property
    def has_density(self) -> bool:
        """It is one of numbers."""
        return True

    @property
    def members(self) -> np.ndarray:
        """Which member of the variable z each row is about."""
        index = self.arguments[0].index
        return np.broadcast_to(index, (self.plate or 1,)) if len(index) == 1 else index

    @property
    def silent(self) -> np.ndarray:
        """Rows without ends."""
        _, low, high = self.arguments
        return np.broadcast_to((low.values == -np.inf) & (high.values == np.inf), (self.plate or 1,))

    def log_density(self, *numbers: Any) -> jax.Array:
        """The log of the probability that z and noise are within."""
        z, low, high = numbers
        scale = jnp.where(self.noise > 0, self.noise, 1.0)
        within = jnp.where((z > low) & (z < high), 0.0, -jnp.inf)
        return jnp.where(self.noise > 0, log_difference((low - z) / scale, (high - z) / scale), within)

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """By the first two derivatives of the log normaliser."""
        del power, key
        z, low, high = incoming
        mean, variance = z.mean(), z.var()
        scale = jnp.sqrt(variance + self.noise**2)
        inside = _truncated((low - mean) / scale, (high - mean) / scale, (high - low) / scale)
        first, second = inside.mean / scale, (1 - inside.variance) / scale**2  # of log Z, the second one negative
        left = (self.noise / scale) ** 2 + variance / scale**2 * inside.variance
        message = Normal.from_natural((second * mean + first) / left, second / left)
        return Answer((message, None, None), inside.log_mass + z.log_normaliser)


@own_words
def Probit(z: Argument, *, observed: Data, name: str | None = None) -> Interval:
    """P(y = 1) = Φ(z), observed: `Interval` with unit noise, above or below zero.

    Parameters
    ----------
    z : Variable
        A Normal.
    observed : array_like
        Zeros and ones.
    name : str, optional
        Of the factor, for reports.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 3.0))
    >>> round(ep.infer(ep.FactorGraph(ep.Probit(z, observed=1))).log_evidence, 9)
    -0.693147181
    """
    y = read_given(observed, "observed")
    label = name or f"Probit({read_argument(z, 'z').name})"
    check_observed(label, y, np.isin(y.values, (0, 1)), "zeros and ones")
    return Interval(z, np.where(y.values == 1, 0.0, -np.inf), np.where(y.values == 1, np.inf, 0.0), name=label)


@own_words
def Ordinal(
    z: Argument, cutpoints: Array, *, observed: Data, noise: Numbers = 1.0, name: str | None = None
) -> Interval:
    """Ordered labels 0, ..., k: z + noise lies between two of k increasing cutpoints.

    Parameters
    ----------
    z : Variable
        A Normal.
    cutpoints : array_like (k,)
        Increasing.
    observed : array_like
        Whole numbers from 0 to k.
    noise : number
        Standard deviation of the noise.
    name : str, optional
        Of the factor, for reports.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    >>> post = ep.infer(ep.FactorGraph(ep.Ordinal(z, [-1.0, 1.0], observed=[0, 1, 2])))
    >>> bool(post["z"].mean()[0] < post["z"].mean()[1] < post["z"].mean()[2])
    True
    """
    label = name or f"Ordinal({read_argument(z, 'z').name})"
    if any(isinstance(cut, Variable | Selection) for cut in as_tuple(cutpoints)):
        raise KindError(
            f"cutpoints of {label} are variables; expected numbers. For unknown cutpoints type "
            "ep.models.ordinal_regression(X, y), which takes those with the largest evidence; or ep.Gaussian(z, x) for "
            "what is compared, and for the cutpoint below it ep.Sum(x, c[below], weights=[1, -1], out=gap) with "
            "ep.Interval(gap, low=0, noise=0), and for the one above the same with high=0 (means are right then, and "
            "standard deviations up to a fifth too small)."
        )
    cuts, y = read_given(cutpoints, "cutpoints").values, read_given(observed, "observed")
    if cuts.ndim != 1 or (np.diff(cuts) <= 0).any():
        raise ParameterError(f"cutpoints of {label} are {cuts.tolist()}; expected increasing numbers.")
    check_observed(label, y, np.isin(y.values, np.arange(len(cuts) + 1)), f"whole numbers from 0 to {len(cuts)}")
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    at = y.values.astype(int)
    return Interval(z, ends[at], ends[at + 1], noise=noise, name=label)


class _Truncated(NamedTuple):
    """log(Φ(b) − Φ(a)), and mean and variance of N(0, 1) within [a, b]."""

    log_mass: jax.Array
    mean: jax.Array
    variance: jax.Array


def _truncated(a: jax.Array, b: jax.Array, width: jax.Array) -> _Truncated:
    """By the closed form where it keeps its digits; the width b − a is given, because the difference may not."""
    log_mass = log_difference(a, b)
    at_a, at_b = (jnp.exp(-x * x / 2 - HALF_LOG_TWO_PI - log_mass) for x in (a, b))
    mean = at_a - at_b
    finite_a, finite_b = (jnp.where(jnp.isfinite(x), x, 0.0) for x in (a, b))
    closed = _Truncated(log_mass, mean, 1 - (mean**2 - (finite_a * at_a - finite_b * at_b)))
    # From the point of the highest density: only where it is above e⁻³⁷ of that, in steps from there.
    top = jnp.clip(0.0, a, b)
    reach = 2 * DEPTH / (jnp.abs(top) + jnp.sqrt(top**2 + 2 * DEPTH))
    behind = jnp.where(top == a, 0.0, jnp.where(top == b, -width, a))
    ahead = jnp.where(top == b, 0.0, jnp.where(top == a, width, b))
    behind, ahead = jnp.maximum(behind, -reach), jnp.minimum(ahead, reach)
    nodes, weights = (each.reshape(-1, *(1,) * jnp.ndim(top)) for each in _GAUSS)
    steps = behind + (ahead - behind) * nodes
    density = weights * jnp.exp(-steps * (2 * top + steps) / 2)
    total = density.sum(0)
    away = (density * steps).sum(0) / total
    variance = (density * (steps - away) ** 2).sum(0) / total
    log_mass = jnp.log(total) + jnp.log(ahead - behind) - top**2 / 2 - HALF_LOG_TWO_PI
    narrow = variance < 0.5
    return _Truncated(*(jnp.where(narrow, x, y) for x, y in zip((log_mass, top + away, variance), closed, strict=True)))


def log_difference(a: Any, b: Any) -> Any:
    """log(Φ(b) − Φ(a)) for a < b, by the tail in which both are small; of NumPy arrays by NumPy."""
    on_host = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if on_host:
        from scipy.special import log_ndtr
    else:
        from jax.scipy.special import log_ndtr
    xp: Any = np if on_host else jnp
    with np.errstate(invalid="ignore", divide="ignore"):
        flip = a + b > 0
        low, high = xp.where(flip, -b, a), xp.where(flip, -a, b)
        upper = log_ndtr(high)
        gap = log_ndtr(low) - upper
        return upper + xp.log(-xp.expm1(xp.where(xp.isfinite(gap), gap, -np.inf)))


def _read_end(value: object, role: str, label: str) -> Given:
    refuse_dates(value, role)
    values = as_array(value, role).astype(np.float64)
    if np.isnan(values).any():
        raise NonFiniteError(f"{role} of {label} holds NaN; expected numbers, or infinity for no end.")
    return Given(values, role)


def intersected(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Factors of an equal model, in which the first of the sharp intervals of one number has the ends of their
    intersection, and the others have none.

    A product of indicators is the indicator of the intersection. As one message it is exact, where a message for each
    would be approximate. Every row keeps its place, so that messages have the shapes of the factors as they were given.
    Intervals that have nothing in common stay as they are.
    """
    sharp = [factor for factor in factors if is_sharp(factor)]
    common = {factor.arguments[0].name: Common(factor.arguments[0].variable.plate or 1) for factor in sharp}
    for factor in sharp:
        common[factor.arguments[0].name].add(factor)
    if any((each.low >= each.high).any() for each in common.values()):
        return factors
    return tuple(
        common[factor.arguments[0].name].given_to(factor) if is_sharp(factor) else factor for factor in factors
    )


def is_sharp(factor: Factor) -> TypeGuard[Interval]:
    """Whether it is an interval without noise."""
    return isinstance(factor, Interval) and factor.noise == 0


class Common:
    """What the sharp intervals of each member of a variable have in common, and how many they are."""

    def __init__(self, members: int):
        self.low, self.high = np.full(members, -np.inf), np.full(members, np.inf)
        self.number, self.given = np.zeros(members, int), np.zeros(members, bool)

    def add(self, factor: Interval) -> None:
        """The ends of one more factor."""
        _, low, high = factor.arguments
        np.maximum.at(self.low, factor.members, low.values)
        np.minimum.at(self.high, factor.members, high.values)
        np.add.at(self.number, factor.members, 1)

    def given_to(self, factor: Interval) -> Interval:
        """The factor with these ends in its first row about a number, unless an earlier factor has them."""
        members = factor.members
        if (self.number[members] == 1).all():
            return factor
        first = np.zeros(len(members), bool)
        first[np.unique(members, return_index=True)[1]] = True
        first &= ~self.given[members]
        self.given[members] = True
        ends = np.where(first, self.low[members], -np.inf), np.where(first, self.high[members], np.inf)
        shape = () if factor.plate is None else (factor.plate,)
        z, *old = factor.arguments
        anew = (Given(end.reshape(shape), each.name) for end, each in zip(ends, old, strict=True))
        return replaced(factor, arguments=(z, *anew))
