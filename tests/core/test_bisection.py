"""Where functions are 0: secants and Brent's method beside bisection and SciPy."""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from meanmap.core.bisection import bisect, crossing, zero


def test_secants_find_quantiles_of_mixtures_as_bisection_does_with_fewer_evaluations():
    """Narrow and wide parts far apart, where distribution functions are flat for long."""
    rng = np.random.default_rng(18_000_000)
    means, sds = 10 * rng.normal(size=(200, 5)), np.exp(rng.uniform(-6, 2, (200, 5)))
    shares, p = rng.dirichlet(np.full(5, 0.3)), rng.uniform(0.01, 0.99, 200)
    calls = []

    def beyond(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return ndtr((x[:, None] - means) / sds) @ shares - p

    low, high = (means - 9 * sds).min(1), (means + 9 * sds).max(1)
    found = crossing(beyond, low, high, 1e-10)
    assert np.abs(beyond(found)).max() <= 1e-10
    assert len(calls) < 60
    below, above = bisect(lambda x: beyond(x) < 0, low, high, 80)
    # A distribution function that is nearly flat leaves the place open.
    steep = (np.exp(-(((found[:, None] - means) / sds) ** 2) / 2) / sds) @ shares > 1e-4
    np.testing.assert_allclose(found[steep], ((below + above) / 2)[steep], atol=1e-5)
    assert steep.sum() > 100


def test_a_zero_is_where_scipy_finds_it_among_several():
    rng, compared = np.random.default_rng(30_000_000), 0
    for a, b, c, d in rng.normal(size=(300, 4)).tolist():

        def value(x: float, a=a, b=b, c=c, d=d) -> float:
            return a + b * x + c * math.sin(9 * x) + d * x**3

        if value(-2.0) * value(3.0) < 0:
            compared += 1
            known: Any = brentq(value, -2.0, 3.0)
            assert abs(zero(value, -2.0, 3.0, 2e-12) - known) < 1e-13
    assert compared > 100
