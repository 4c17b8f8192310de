"""One batch of three of every distribution, and the laws that hold for all of them."""

import numpy as np
import pytest

from meanmap.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    PointMass,
    Uniform,
)

COVARIANCES = np.array([[[1.0, 0.3], [0.3, 0.5]], [[2.0, -0.4], [-0.4, 1.0]], [[0.1, 0.0], [0.0, 4.0]]])

FAMILIES = {
    "Normal": lambda: Normal([0.0, 1.0, -3.0], [1.0, 0.2, 4.0]),
    "MultivariateNormal": lambda: MultivariateNormal([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], COVARIANCES),
    "Beta": lambda: Beta([2.0, 1.5, 20.0], [3.0, 4.0, 5.0]),
    "Gamma": lambda: Gamma([2.0, 1.5, 30.0], [1.0, 4.0, 10.0]),
    "Bernoulli": lambda: Bernoulli([0.3, 0.5, 0.9]),
    "Categorical": lambda: Categorical([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
    "Dirichlet": lambda: Dirichlet([[2.0, 3.0, 1.5], [1.0, 1.0, 1.0], [20.0, 5.0, 9.0]]),
}
LAWS = FAMILIES | {
    "Laplace": lambda: Laplace([0.0, 1.0, -2.0], [1.0, 0.5, 2.0]),
    "Uniform": lambda: Uniform([0.0, -1.0, 2.0], [1.0, 3.0, 2.5]),
    "PointMass": lambda: PointMass([0.2, 0.5, 0.9]),
    "Mixture": lambda: Mixture(
        Beta([[2.0, 5.0], [1.5, 1.0], [3.0, 30.0]], [[3.0, 1.0], [4.0, 2.0], [3.0, 9.0]]), [0.3, 0.7]
    ),
}


# What compiles for seconds a law is judged on these by day, an inverted and a vector family, and on all by night.
DAILY = ("Beta", "MultivariateNormal")


def _others_by_night(names):
    return [name if name in DAILY else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(autouse=True, scope="module")
def _forget_compilations():
    """Keep compiled programs, unlike other folders: they are small, and the files here share most of them."""


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]()


@pytest.fixture(params=LAWS)
def law(request):
    return LAWS[request.param]()


@pytest.fixture(params=_others_by_night(FAMILIES))
def costly_family(request):
    return FAMILIES[request.param]()


@pytest.fixture(params=_others_by_night(LAWS))
def costly_law(request):
    return LAWS[request.param]()


@pytest.fixture
def frequencies():
    """Frequencies of the right kind for a law: (5,), or (5, d) for vectors."""

    def of(distribution, n=5):
        grid = np.linspace(-3.0, 4.0, n)
        name = type(distribution).__name__
        d = {"MultivariateNormal": 2, "Categorical": 3, "Dirichlet": 3}.get(name)
        return grid if d is None else np.stack([grid * (0.5 + j) for j in range(d)], -1)

    return of
