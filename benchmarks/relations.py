"""Twenty relations of two variables, n points each, d columns: the panel on which tests of independence are compared.

The relations of Vogelstein et al. (2019), "Discovering and deciphering relationships across disparate data
modalities", eLife 8:e41690, supplement, with the noise that the package hyppo gives them. In d columns the weights are
1, 1/2, 1/3, ... The last one is no relation.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["RELATIONS", "STRONGHOLDS", "Relation"]

Pair = tuple[np.ndarray, np.ndarray]
Relation = Callable[[np.random.Generator, int, int], Pair]

# Where the multiscale graph correlation was ahead of kernels of fixed scales.
STRONGHOLDS = ("diamond", "square", "two parabolas", "sine 16π")


def of_projection(function: Callable[[np.ndarray], np.ndarray], noise: float, low: float = -1.0, high: float = 1.0):
    """y = f(wᵀx) + noise, with x uniform on a cube."""

    def draw(rng: np.random.Generator, n: int, d: int) -> Pair:
        x = rng.uniform(low, high, (n, d))
        return x, function(_projected(x)) + noise * rng.normal(size=(n, 1))

    return draw


def joint_normal(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Every column of x correlated with every column of y by 1 / 2d."""
    covariance = np.eye(2 * d)
    covariance[:d, d:] = covariance[d:, :d] = 1 / (2 * d)
    both = rng.multivariate_normal(np.zeros(2 * d), covariance, n)
    return both[:, :d], both[:, d:] + 0.5 * rng.normal(size=(n, 1))


def w_shaped(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Two dips."""
    x, lift = rng.uniform(-1, 1, (n, d)), rng.uniform(0, 1, (n, d))
    return x, 4 * ((_projected(x) ** 2 - 0.5) ** 2 + _projected(lift) / 500) + 0.5 * rng.normal(size=(n, 1))


def spiral(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Radius and angle grow together."""
    u = rng.uniform(0, 5, (n, 1))
    y = u * np.sin(np.pi * u) + 0.4 * d * rng.normal(size=(n, 1))
    return u * _on_sphere(np.repeat(u, d, axis=1)), y


def uncorrelated_bernoulli(rng: np.random.Generator, n: int, d: int) -> Pair:
    """The sign of y is a coin, its size is x."""
    x = rng.integers(0, 2, (n, d)) + 0.5 * rng.normal(size=(n, d))
    return x, rng.choice([-1.0, 1.0], (n, 1)) * _projected(x) + 0.5 * rng.normal(size=(n, 1))


def logarithmic(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Column by column."""
    x = rng.normal(size=(n, d))
    return x, np.log(x**2) + 3 * rng.normal(size=(n, 1))


def sine(frequency: float, noise: float) -> Relation:
    """Column by column, of jittered x."""

    def draw(rng: np.random.Generator, n: int, d: int) -> Pair:
        x = rng.uniform(-1, 1, (n, d)) + 0.02 * d * rng.normal(size=(n, d))
        return x, np.sin(frequency * x) + noise * rng.normal(size=(n, 1))

    return draw


def turned_square(angle: float) -> Relation:
    """A filled square, turned: only its corners depend."""

    def draw(rng: np.random.Generator, n: int, d: int) -> Pair:
        u, v = rng.uniform(-1, 1, (2, n, d))
        x = u * np.cos(angle) + v * np.sin(angle) + 0.05 * d * rng.normal(size=(n, d))
        return x, -u * np.sin(angle) + v * np.cos(angle)

    return draw


def two_parabolas(rng: np.random.Generator, n: int, d: int) -> Pair:
    """One opens upwards, the other downwards."""
    x = rng.uniform(-1, 1, (n, d))
    sign = rng.choice([-0.5, 0.5], (n, 1))
    return x, (_projected(x) ** 2 + 2 * rng.uniform(0, 1, (n, d))) * sign


def ring(radius: float) -> Relation:
    """A circle, or an ellipse, with noise in x."""

    def draw(rng: np.random.Generator, n: int, d: int) -> Pair:
        angles = rng.uniform(-1, 1, (n, d))
        x = radius * (_on_sphere(angles) + 0.4 * rng.normal(size=(n, d)))
        return x, np.repeat(np.sin(np.pi * angles[:, :1]), d, axis=1)

    return draw


def multiplicative_noise(rng: np.random.Generator, n: int, d: int) -> Pair:
    """The spread of y is |x|."""
    x, noise = rng.normal(size=(2, n, d))
    return x, x * noise


def multimodal_independence(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Four clusters, and no relation."""
    noise, side = rng.normal(size=(2, n, d)), rng.integers(0, 2, (2, n, d))
    return noise[0] / 3 + 2 * side[0] - 1, noise[1] / 3 + 2 * side[1] - 1


RELATIONS: dict[str, Relation] = {
    "linear": of_projection(lambda t: t, 1.0),
    "exponential": of_projection(np.exp, 10.0, 0.0, 3.0),
    "cubic": of_projection(lambda t: 116 * (t - 1 / 3) ** 3 + 48 * (t - 1 / 3) ** 2, 80.0),
    "joint normal": joint_normal,
    "step": of_projection(lambda t: (t > 0).astype(float), 1.0),
    "quadratic": of_projection(np.square, 0.5),
    "w": w_shaped,
    "spiral": spiral,
    "uncorrelated Bernoulli": uncorrelated_bernoulli,
    "logarithmic": logarithmic,
    "fourth root": of_projection(lambda t: np.abs(t) ** 0.25, 0.25),
    "sine 4π": sine(4 * np.pi, 1.0),
    "sine 16π": sine(16 * np.pi, 0.5),
    "square": turned_square(-np.pi / 8),
    "two parabolas": two_parabolas,
    "circle": ring(1.0),
    "ellipse": ring(5.0),
    "diamond": turned_square(-np.pi / 4),
    "multiplicative noise": multiplicative_noise,
    "multimodal independence": multimodal_independence,
}


def _projected(x: np.ndarray) -> np.ndarray:
    """wᵀx with weights 1, 1/2, 1/3, ..., as a column."""
    return x @ (1 / np.arange(1, x.shape[1] + 1))[:, None]


def _on_sphere(angles: np.ndarray) -> np.ndarray:
    """Products of cosines, and the last of each with a sine: points of the sphere, from angles in half turns."""
    x = np.zeros_like(angles)
    x[:, 0] = np.cos(np.pi * angles[:, 0])
    for i in range(angles.shape[1] - 1):
        x[:, i + 1] = x[:, i] * np.cos(np.pi * angles[:, i + 1])
        x[:, i] = x[:, i] * np.sin(np.pi * angles[:, i + 1])
    return x
