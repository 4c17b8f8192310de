"""Factors that are exact for Gaussian messages: linear maps, sums, and Gaussians of known precision."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_not_tiny, read_matrix
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Numbers
from meanmap.ep.factor import Answer, Factor, check_family, common_plate, replaced
from meanmap.ep.variables import Argument, Given, Variable, read_argument, read_given, refuse_dates
from meanmap.families import MultivariateNormal, Normal

__all__ = ["Dot", "Sum"]

HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)

# Rows of a piece that stays in a cache while it is weighted and multiplied, and pieces from which that pays: it takes
# half of the time of a product of whole matrices.
_PIECE, _PIECES = 1024, 8
# Used in place of a standard deviation of zero.
SURE = 1e-6


class Dot(Factor):
    """zᵢ = xᵢᵀw for the rows xᵢ of a matrix: all messages of a linear map at once.

    Parameters
    ----------
    X : array_like (n, d)
        One row for each member of z.
    w : Variable
        One MultivariateNormal of length d.
    z : Variable
        A plate of n Normals.

    Notes
    -----
    With the incoming messages from z as natural parameters (νᵢ, τᵢ), the message to w is (Xᵀν, XᵀTX), and the message
    to zᵢ is the marginal of xᵢᵀw divided by the message from zᵢ: no d × d matrix is kept for a row. Cost n d² + d³ per
    sweep. For a row of zeros zᵢ is 0, which is represented by a standard deviation of a millionth of the widest row's.

    Examples
    --------
    >>> from meanmap import ep
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> z = ep.Variable("z", ep.Normal, plate=3)
    >>> ep.Dot([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], w, z)
    Dot(w, z)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    # Equal parts of the rows, each on a device of its own.
    parts: int = eqx.field(static=True)
    whole: ClassVar[tuple[int, ...]] = (1,)

    @own_words
    def __init__(self, X: Data, w: Argument, z: Argument, name: str | None = None):
        with Door() as door:
            matrix = read_matrix(X, "X", door, sparse=False)
        refuse_dates(X, "X")
        check_not_tiny(matrix, "X")
        w, z = read_argument(w, "w"), read_argument(z, "z")
        label = name or f"Dot({w.name}, {z.name})"
        check_family(label, "w", w, MultivariateNormal)
        check_family(label, "z", z, Normal)
        if not isinstance(w, Variable) or w.plate is not None:
            raise ShapeError(f"w of {label} has a plate; expected one vector of weights, shared by all rows.")
        if z.plate != matrix.shape[0]:
            has = "no plate" if z.plate is None else f"a plate of {z.plate}"
            expected = f"expected a member for each row, plate={matrix.shape[0]}"
            raise ShapeError(f"X of {label} has {matrix.shape[0]} rows and {z.name!r} has {has}; {expected}.")
        if w.dimension != matrix.shape[1]:
            raise ShapeError(f"X of {label} has {matrix.shape[1]} columns and {w.name!r} has length {w.dimension}.")
        self.arguments = (Given(matrix, "X"), w, z)
        self.name, self.parts = label, 1

    def in_parts(self, number: int) -> Factor:
        """With rows on this many devices."""
        return replaced(self, parts=number)

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Messages by one Cholesky factor of the precision of w."""
        del power, key
        x, w, z = incoming
        linear = _product(z.precision_mean, x)
        square = _square(x, z.precision) if self.parts == 1 else _product(x.T * z.precision, x)
        joint = MultivariateNormal.from_natural(w.precision_mean + linear, w.precision + (square + square.T) / 2)
        factor = jnp.linalg.cholesky(joint.precision)
        white = jax.scipy.linalg.solve_triangular(factor, jnp.eye(x.shape[1], dtype=x.dtype), lower=True)
        mean = _product(x, _product(white.T, _product(white, joint.precision_mean)))
        variance = (_product(x, white.T) ** 2).sum(-1)
        # A row of zeros says that zᵢ is 0, and no Normal is that sure: it is, a millionth of the widest row.
        widest = variance.max()
        precision = 1 / jnp.where(variance > 0, variance, SURE**2 * jnp.where(widest > 0, widest, 1.0))
        return Answer(
            (
                None,
                MultivariateNormal.from_natural(linear, (square + square.T) / 2),
                Normal.from_natural(mean * precision - z.precision_mean, precision - z.precision),
            ),
            joint.log_normaliser,
        )


class Sum(Factor):
    """out = Σₖ aₖ xₖ + noise, for each member of a plate of Normals.

    Parameters
    ----------
    *terms : Variable or array_like
        The xₖ: Normals, or known numbers.
    out : Variable or array_like
        The sum: a Normal, or an observation of it.
    weights : sequence of numbers, optional
        The aₖ; all 1 by default, and (1, −1) is a difference.
    precision : array_like, optional
        Of the noise; without it there is none.

    Notes
    -----
    The messages are convolutions: to the sum, N(Σ aₖ mₖ, Σ aₖ² vₖ + 1/precision); to a term, the sum minus the other
    terms.

    Examples
    --------
    >>> from meanmap import ep
    >>> a, b = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "ab")
    >>> model = ep.FactorGraph(ep.Sum(a, b, out=3.0, weights=(1, -1), precision=4.0))
    >>> post = ep.infer(model)
    >>> float(post["a"].mean().round(10)), float(post["b"].mean().round(10))
    (1.3333333333, -1.3333333333)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    weights: Any

    @own_words
    def __init__(
        self,
        *terms: Argument,
        out: Argument,
        weights: Array | None = None,
        precision: Argument = None,
        name: str | None = None,
    ):
        if not terms:
            raise ShapeError("Sum has no terms; expected at least one: Sum(a, b, out=c).")
        read = [read_argument(term, f"term {at}") for at, term in enumerate(terms)]
        target = read_argument(out, "out")
        label = name or f"Sum({', '.join(a.name for a in (*read, target))})"
        for at, argument in enumerate(read):
            check_family(label, f"term {at}", argument, Normal, given=True)
        check_family(label, "out", target, Normal, given=True)
        extra = () if precision is None else (read_precision(precision, label),)
        if all(a.known for a in (*read, target)):
            raise KindError(f"{label} has no variable: everything in it is given.")
        unknown = [a.name for a in (*read, target) if not a.known]
        if len(unknown) == 1 and precision is None:
            raise KindError(
                f"{label} without noise says exactly what {unknown[0]!r} is: write that number in its place, or pass "
                "precision."
            )
        coefficients = np.ones(len(read)) if weights is None else read_given(weights, "weights").values
        if coefficients.shape != (len(read),) or (coefficients == 0).any():
            raise ParameterError(
                f"weights of {label} are {weights!r}, {coefficients.size} of them; expected {len(read)} numbers other "
                "than 0, one for each term."
            )
        self.arguments = (target, *read, *extra)
        roles = {f"argument {at}": argument for at, argument in enumerate(self.arguments)}
        common_plate(label, roles)
        self.name, self.weights = label, coefficients

    @property
    def has_noise(self) -> bool:
        """Whether the sum holds but for noise."""
        return len(self.arguments) > len(self.weights) + 1

    @property
    def constant(self) -> bool:
        """With one variable, and all else given."""
        return sum(not argument.known for argument in self.arguments) == 1

    @property
    def has_density(self) -> bool:
        """If there is noise."""
        return self.has_noise

    def log_density(self, *numbers: Any) -> jax.Array:
        """The log density of the noise."""
        out, *terms, precision = numbers
        off = out - sum(a * x for a, x in zip(self.weights, terms, strict=True))
        return jnp.log(precision) / 2 - precision * off**2 / 2 - HALF_LOG_TWO_PI

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Convolutions of Normals, member by member."""
        del power, key
        count = self.weights.shape[0]
        out, terms = incoming[0], incoming[1 : count + 1]
        noise = 1 / incoming[count + 1] if len(incoming) > count + 1 else jnp.zeros(())
        means, variances = zip(*(_moments(term) for term in terms), strict=True)
        mean = sum(a * m for a, m in zip(self.weights, means, strict=True))
        variance = sum(a * a * v for a, v in zip(self.weights, variances, strict=True)) + noise
        total, spread = _moments(out)
        # For each argument: its role, its incoming message, the distribution implied by the others, and its weight.
        met = [(out, mean, variance, 1.0)]
        for at, term in enumerate(terms):
            others = [k for k in range(count) if k != at]
            a = self.weights[at]
            rest = total - sum((self.weights[k] * means[k] for k in others), start=0.0)
            left = spread + noise + sum((self.weights[k] ** 2 * variances[k] for k in others), start=0.0)
            met.append((term, rest / a, left / a**2, a))
        messages = [_normal(m, v) if isinstance(message, Normal) else None for message, m, v, _ in met]
        messages += [None] * (len(incoming) - len(messages))
        return Answer(tuple(messages), _log_integral(met))


def _moments(message: Normal | jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of the incoming message: (0, ∞) where it is flat, (x, 0) for a given x."""
    if not isinstance(message, Normal):
        return message, jnp.zeros(())
    known = message.precision != 0
    precision = jnp.where(known, message.precision, 1.0)
    return jnp.where(known, message.precision_mean / precision, 0.0), jnp.where(known, 1 / precision, jnp.inf)


def _log_overlap(message: Normal | jax.Array, mean: Array, variance: Array) -> Array:
    """log ∫ exp(ν x − τ x²/2) N(x; mean, variance) dx; for given numbers x, log N(x; mean, variance)."""
    if not isinstance(message, Normal):
        return -((message - mean) ** 2 / variance + jnp.log(variance)) / 2 - HALF_LOG_TWO_PI
    nu, tau = message.precision_mean, message.precision
    widened = 1 + tau * variance
    return (nu * mean + (nu * nu * variance - tau * mean * mean) / 2) / widened - jnp.log(widened) / 2


def _log_integral(met: list[tuple[Any, Any, Any, Any]]) -> jax.Array:
    """log ∫ of a sum's density and all that comes in, over every argument.

    All but one are integrated as distributions, and that one against the distribution which the others send it. It is
    the one with the least precision, which may be none or negative: one improper message is no harm where the belief is
    proper.
    """
    normals = [one for one in met if isinstance(one[0], Normal)]
    least, value = None, jnp.zeros(())
    for at, (message, mean, variance, weight) in enumerate(normals):
        others = sum((other.log_normaliser for k, (other, *_) in enumerate(normals) if k != at), start=jnp.zeros(()))
        pivoted = others + _log_overlap(message, mean, variance) - jnp.log(jnp.abs(weight))
        if least is None:
            least, value = message.precision, pivoted
        else:
            value = jnp.where(message.precision < least, pivoted, value)
            least = jnp.minimum(message.precision, least)
    return value


def read_precision(value: object, label: str) -> Given:
    """Known precisions, above 0."""
    given = read_given(value, "precision")
    if not (given.values > 0).all():
        raise ParameterError(f"precision of {label} is {given.values.min():g} at least; expected values above 0.")
    return given


def _normal(mean: Numbers, variance: Array) -> Normal:
    """A message with this mean and variance; flat if the variance is infinite."""
    precision = 1 / variance
    mean, precision = jnp.broadcast_arrays(mean, precision)
    return Normal.from_natural(jnp.where(precision == 0, 0.0, mean * precision), precision)


def _square(x: jax.Array, weights: jax.Array) -> jax.Array:
    """Xᵀ W X, of many rows piece by piece."""
    rows, width = x.shape
    if rows % _PIECE or rows < _PIECES * _PIECE:
        return _product(x.T * weights, x)

    def add(total, piece):
        part, own = piece
        return total + _product(part.T * own, part), None

    pieces = x.reshape(-1, _PIECE, width), weights.reshape(-1, _PIECE)
    return jax.lax.scan(add, jnp.zeros((width, width), x.dtype), pieces)[0]


def _product(a: Array, b: Array) -> jax.Array:
    return jnp.matmul(a, b, precision="highest")
