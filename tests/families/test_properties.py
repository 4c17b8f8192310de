"""Properties that hold for any parameters, searched by Hypothesis (the same examples every time)."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meanmap.families import Beta, Gamma, Normal

searched = settings(derandomize=True, deadline=None, max_examples=40)


def decades(low, high):
    return st.floats(low, high).map(lambda exponent: float(10**exponent))


means = st.floats(-1e3, 1e3)
normals = st.builds(Normal, means, decades(-8, 8))
betas = st.builds(Beta, decades(-2, 5), decades(-2, 5))
gammas = st.builds(Gamma, decades(-1.3, 5), decades(-3, 4.3))
pairs = st.one_of(st.tuples(normals, normals), st.tuples(betas, betas), st.tuples(gammas, gammas))


@searched
@given(pairs)
def test_ratio_undoes_product(pair):
    p, q = pair
    for found, a, b in zip(((p * q) / q).natural, p.natural, q.natural, strict=True):
        # Exact up to rounding of the sum.
        np.testing.assert_allclose(found, a, atol=4e-16 * (abs(a) + abs(b)))


@searched
@given(pairs)
def test_divergence_is_not_negative(pair):
    p, q = pair
    assert p.kl(q) >= 0
    assert p.kl(p) == 0 or p.kl(p) < 1e-12
    assert np.isfinite(p.kl(q))


@searched
@given(pairs)
def test_divergence_grows_along_a_ray(pair):
    # KL(p ‖ ·) is convex in the natural parameters of its second argument and least at p.
    p, q = pair
    half = type(p)._of(tuple((a + b) / 2 for a, b in zip(p.natural, q.natural, strict=True)))
    assert p.kl(half) <= p.kl(q) / 2 * (1 + 1e-9) + 1e-9


@searched
@given(pairs, st.floats(-50, 50))
def test_characteristic_function_is_bounded(pair, w):
    p, _ = pair
    for coordinate in p.coordinates:
        assert abs(p.characteristic_function(w, coordinate)) <= 1 + 1e-12
        assert abs(p.characteristic_function(0.0, coordinate) - 1) < 1e-12


@searched
@given(pairs)
def test_characteristic_function_turns_with_the_mean(pair):
    p, _ = pair
    for coordinate in p.coordinates:
        mean, sd = p.mean_in(coordinate), np.sqrt(p.variance_in(coordinate))
        # φ(h) = 1 + ihm − h²(v + m²)/2 + ..., at a step small beside mean and spread.
        h = 1e-5 / (sd + abs(mean))
        slope = p.characteristic_function(h, coordinate).imag / h
        assert abs(slope - mean) < 1e-8 * (sd + abs(mean))


@searched
@given(pairs)
def test_moments_determine_the_member(pair):
    p, _ = pair
    q = type(p).from_mean_variance(p.mean(), p.var())
    np.testing.assert_allclose(q.mean(), p.mean(), rtol=1e-9)
    np.testing.assert_allclose(q.var(), p.var(), rtol=1e-9)
    if not isinstance(p, Normal):
        moments = p.expected_statistics
        for found, exact in zip(type(p).from_moments(*moments).expected_statistics, moments, strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-12)
