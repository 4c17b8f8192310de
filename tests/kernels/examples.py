"""Every kind of kernel with a way to draw points for it and an independent formula for its Gram matrix."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation as ScipyRotation

from meanmap import kernels
from meanmap.kernels import Kernel

CITIES = ["Graz", "Lyon", "Oslo", "Turin"]
SYLLABLES = ["ab", "ba", "cd", "aa", "bcd"]
MATRIX = np.cov(np.random.default_rng(5).normal(size=(7, 20)))
PROJECTION = np.random.default_rng(6).normal(size=(3, 6)) / math.sqrt(3)


@dataclass(frozen=True)
class Example:
    """A kernel with what the laws need to know about it.

    `draw(rng, n)` gives n points as a user would pass them; `reference(x, y)` is their Gram matrix by NumPy, SciPy or
    plain Python; `to_jax` the same points as JAX arrays (`None` where they have none). `differentiable` says whether
    points have derivatives, `smooth` whether they have them where two coincide too. `hostile` is a strategy for
    difficult points.
    """

    name: str
    kernel: Kernel
    draw: Callable[[np.random.Generator, int], Any]
    reference: Callable[[Any, Any], np.ndarray]
    to_jax: Callable[[Any], Any] | None = jnp.asarray
    differentiable: bool = True
    smooth: bool = True
    hostile: Callable[[int], st.SearchStrategy] | None = None

    def __repr__(self) -> str:
        return self.name

    def points(self, most: int = 12) -> st.SearchStrategy:
        """Points for a property test: difficult ones, or random ones."""
        drawn = st.builds(
            lambda seed, n: self.draw(np.random.default_rng(seed), n), st.integers(0, 2**32 - 1), st.integers(1, most)
        )
        return drawn if self.hostile is None else drawn | self.hostile(most)


def normal(dim):
    return lambda rng, n: rng.normal(size=(n, dim))


def awkward(dim):
    """Strategy for matrices with zeros, repeated rows and numbers of very different size."""
    number = st.integers(-30_000_000, 30_000_000).map(lambda n: n / 1e6) | st.sampled_from([0.0, 1.0, -1e-9])
    return lambda most: st.integers(1, most).flatmap(lambda n: arrays(np.float64, (n, dim), elements=number))


def real(name, kernel, dim, reference, **options):
    return Example(name, kernel, normal(dim), reference, hostile=awkward(dim), **options)


def smoothed(scale, width):
    """∫ exp(−(x − u)²/2ℓ² − (u − y)²/2ℓ² − u²/2η²) du for each column, by completing the square."""
    a = 2 / scale**2 + 1 / width**2

    def reference(x, y):
        x, y = x[:, None, :], y[None, :, :]
        exponent = ((x + y) / scale**2) ** 2 / a - (x**2 + y**2) / scale**2
        return np.prod(np.sqrt(2 * np.pi / a) * np.exp(exponent / 2), axis=-1)

    return reference


def of_distance(profile, scale=1.0, metric="euclidean"):
    return lambda x, y: profile(cdist(x / scale, y / scale, metric))


def matern32(r):
    return (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r)


def matern52(r):
    return (1 + math.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-math.sqrt(5) * r)


def gaussian(scale):
    return of_distance(lambda r: np.exp(-(r**2) / 2), scale)


def cosine(x, y):
    """Angles one by one; a zero vector has none."""
    out = np.zeros((len(x), len(y)))
    for i, j in product(range(len(x)), range(len(y))):
        lengths = np.linalg.norm(x[i]), np.linalg.norm(y[j])
        if min(lengths) > 0:
            out[i, j] = (x[i] / lengths[0]) @ (y[j] / lengths[1])
    return out


def pairwise(function):
    return lambda x, y: np.array([[function(a, b) for b in y] for a in x], dtype=float)


def torus(scale):
    return lambda x, y: np.exp(-((1 - np.cos(x[:, None] - y[None])) / scale**2).sum(axis=2))


def rotations(rng, n):
    return ScipyRotation.random(n, random_state=rng.integers(2**32)).as_matrix()


def rotation_by_angle(scale):
    """‖R − R′‖² = 4 (1 − cos θ), with θ the angle of R⁻¹ R′."""

    def gram(x, y):
        first, second = ScipyRotation.from_matrix(x), ScipyRotation.from_matrix(y)
        angles = np.array([[(a.inv() * b).magnitude() for b in second] for a in first])
        return np.exp(-4 * (1 - np.cos(angles)) / (2 * scale**2))

    return gram


def spectrum(length, normalise):
    def count(text):
        return Counter(text[i : i + length] for i in range(len(text) - length + 1))

    def inner(a, b):
        return sum(a[piece] * b[piece] for piece in a)

    def value(a, b):
        a, b = count(a), count(b)
        return inner(a, b) / math.sqrt(inner(a, a) * inner(b, b)) if normalise else inner(a, b)

    return pairwise(value)


def texts(rng, n):
    return ["".join(rng.choice(SYLLABLES, size=rng.integers(2, 7))) for _ in range(n)]


def cities(rng, n):
    return [str(city) for city in rng.choice(CITIES, size=n)]


def codes(dim):
    return lambda rng, n: rng.integers(-1, 3, size=(n, dim))


def hamming(scale):
    return pairwise(lambda a, b: math.exp(-np.mean(np.asarray(a) != np.asarray(b)) / scale))


def table(rng, n):
    return {"height": rng.normal(size=n), "city": cities(rng, n), "weight": rng.normal(size=n)}


def table_in_jax(data):
    return {name: column if name == "city" else jnp.asarray(column) for name, column in data.items()}


def on(column, reference):
    """A reference on one column of a table."""

    def pick(data):
        return np.asarray(data[column])[:, None] if column != "city" else data[column]

    return lambda x, y: reference(pick(x), pick(y))


EQUAL = pairwise(lambda a, b: np.array_equal(a, b))
HEIGHT_AND_CITY = kernels.OnColumns(kernels.RBF(0.8), "height") + kernels.OnColumns(kernels.Delta(), "city")


def height_and_city(x, y):
    return on("height", gaussian(0.8))(x, y) + on("city", EQUAL)(x, y)


EXAMPLES = [
    real("rbf", kernels.RBF(0.7), 2, gaussian(0.7)),
    real("rbf, five columns", kernels.RBF(1.9), 5, gaussian(1.9)),
    real(
        "rbf, a lengthscale per column", kernels.RBF([0.5, 2.0, 1.0, 3.0]), 4, gaussian(np.array([0.5, 2.0, 1.0, 3.0]))
    ),
    real("matern 1/2", kernels.Matern(0.9, 0.5), 2, of_distance(lambda r: np.exp(-r), 0.9), smooth=False),
    real("matern 3/2", kernels.Matern(0.9, 1.5), 3, of_distance(matern32, 0.9)),
    real("matern 5/2", kernels.Matern([0.9, 1.1], 2.5), 2, of_distance(matern52, np.array([0.9, 1.1]))),
    real(
        "rational quadratic",
        kernels.RationalQuadratic(0.8, 1.3),
        4,
        of_distance(lambda r: (1 + r**2 / 2.6) ** -1.3, 0.8),
    ),
    real("laplace", kernels.Laplace(1.5), 3, of_distance(lambda r: np.exp(-r), 1.5, "cityblock"), smooth=False),
    real(
        "laplace, many columns",
        kernels.Laplace(9.0),
        40,
        of_distance(lambda r: np.exp(-r), 9.0, "cityblock"),
        smooth=False,
    ),
    real("linear", kernels.Linear(), 4, lambda x, y: x @ y.T),
    real("polynomial", kernels.Polynomial(3, 0.5), 3, lambda x, y: (x @ y.T + 0.5) ** 3),
    real("homogeneous polynomial", kernels.Polynomial(2, 0.0), 2, lambda x, y: (x @ y.T) ** 2),
    real("cosine", kernels.Cosine(), 3, cosine),
    real(
        "random projection", kernels.RandomProjection(PROJECTION), 6, lambda x, y: x @ PROJECTION.T @ PROJECTION @ y.T
    ),
    Example("delta", kernels.Delta(), cities, EQUAL, to_jax=None, differentiable=False),
    Example("delta on two columns", kernels.Delta(), codes(2), EQUAL, differentiable=False),
    Example("hamming", kernels.Hamming(0.6), codes(3), hamming(0.6), differentiable=False),
    Example("spectrum", kernels.Spectrum(2), texts, spectrum(2, True), to_jax=None, differentiable=False),
    Example("spectrum of counts", kernels.Spectrum(3, normalise=False), texts, spectrum(3, False), None, False),
    Example(
        "precomputed",
        kernels.Precomputed(MATRIX),
        lambda rng, n: rng.integers(0, 7, size=n),
        lambda x, y: MATRIX[np.ix_(x, y)],
        differentiable=False,
    ),
    Example(
        "torus", kernels.Torus([0.8, 1.4]), lambda rng, n: rng.uniform(-7, 7, size=(n, 2)), torus(np.array([0.8, 1.4]))
    ),
    Example("rotation", kernels.Rotation(1.2), rotations, rotation_by_angle(1.2), differentiable=False),
    Example("smoothed", kernels.Smoothed(kernels.RBF(0.7), 1.3), normal(2), smoothed(0.7, 1.3)),
    real("sum", kernels.RBF(0.7) + kernels.Linear(), 2, lambda x, y: gaussian(0.7)(x, y) + x @ y.T),
    real(
        "product",
        kernels.RBF(1.1) * kernels.Matern(2.0, 1.5),
        2,
        lambda x, y: gaussian(1.1)(x, y) * of_distance(matern32, 2.0)(x, y),
    ),
    real("scaled", 2.5 * kernels.RBF(0.7), 2, lambda x, y: 2.5 * gaussian(0.7)(x, y)),
    real("power", kernels.RBF(1.3) ** 3, 2, gaussian(1.3 / math.sqrt(3))),
    real(
        "on columns",
        kernels.OnColumns(kernels.RBF([0.5, 1.5]), [2, 0]),
        3,
        lambda x, y: gaussian(np.array([0.5, 1.5]))(x[:, [2, 0]], y[:, [2, 0]]),
    ),
    Example(
        "mixed table, product",
        kernels.OnColumns(kernels.RBF(0.8), "height") * kernels.OnColumns(kernels.Delta(), "city"),
        table,
        lambda x, y: on("height", gaussian(0.8))(x, y) * on("city", EQUAL)(x, y),
        to_jax=table_in_jax,
        differentiable=False,
    ),
    Example(
        "mixed table, square of a sum",
        HEIGHT_AND_CITY * HEIGHT_AND_CITY,
        table,
        lambda x, y: height_and_city(x, y) ** 2,
        to_jax=table_in_jax,
        differentiable=False,
    ),
    Example(
        "mixed table, text and scaled members",
        0.5 * kernels.OnColumns(kernels.Spectrum(2), "city")
        + kernels.OnColumns(kernels.Laplace(2.0), ["weight", "height"]) ** 2,
        table,
        lambda x, y: (
            0.5 * on("city", spectrum(2, True))(x, y)
            + np.exp(
                -(abs(np.subtract.outer(x["weight"], y["weight"])) + abs(np.subtract.outer(x["height"], y["height"])))
            )
        ),
        to_jax=None,
        differentiable=False,
    ),
]
IN_JAX = [example for example in EXAMPLES if example.to_jax is not None]
DIFFERENTIABLE = [example for example in EXAMPLES if example.differentiable]


def take(points: Any, index: Any) -> Any:
    """Some of the points, whatever they are held in."""
    if isinstance(points, dict):
        return {name: take(column, index) for name, column in points.items()}
    if isinstance(points, list):
        return [points[int(i)] for i in np.arange(len(points))[index]]
    return points[index]


def size(points: Any) -> int:
    """How many points there are."""
    return len(next(iter(points.values()))) if isinstance(points, dict) else len(points)
