"""Natural to mean parameters and back over extreme ranges: to 1e-10, or to what one rounding of a mean leaves known.

E[log x] and log E[x] of a Gamma of shape a differ by 1/(2a), so a rounding of either moves the shape by 2a roundings of
itself, whatever the method: beyond shapes of 10⁵ no inverse can reach 1e-10 in double precision. The same holds for
Beta and Dirichlet parameters, and for a Normal whose mean is many standard deviations. Each case measures that: moments
are moved by one spacing, and the round trip may miss no more than the largest change of the parameters that follows.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import ParameterError
from meanmap.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Family,
    Flat,
    Gamma,
    MultivariateNormal,
    Normal,
    PointMass,
)

PARAMETERS = {
    Normal: lambda p: (p.mean() / p.sd(), p.var()),
    Gamma: lambda p: (p.shape_parameter, p.rate),
    Beta: lambda p: (p.a, p.b),
    Dirichlet: lambda p: tuple(p.concentration.T),
    Bernoulli: lambda p: (p.logit,),
}


def missed(first, second):
    """The largest relative error of parameters, for each member."""
    pairs = zip(PARAMETERS[type(first)](first), PARAMETERS[type(second)](second), strict=True)
    with np.errstate(invalid="ignore"):
        return np.max([np.abs(a - b) / np.maximum(np.abs(b), 1e-300) for a, b in pairs], axis=0)


def of_one_rounding(kind, moments, count):
    """How far parameters move when one moment moves to the next number, for each member; ∞ where none is left."""
    base = kind.from_moments(*moments)
    worst = np.zeros(count)
    for at in range(len(moments)):
        columns = np.ndindex(moments[at].shape[1:])
        for column in columns:
            for towards in (np.inf, -np.inf):
                moved = [np.array(m) for m in moments]
                moved[at][(slice(None), *column)] = np.nextafter(moved[at][(slice(None), *column)], towards)
                for member in range(count):
                    try:
                        other = kind.from_moments(*(m[[member]] for m in moved))
                        change = missed(other, base[[member]])[0]
                    except ParameterError:
                        change = np.inf
                    worst[member] = max(worst[member], change)
    return worst


SHAPES, RATES = (grid.ravel() for grid in np.meshgrid([1e-3, 0.05, 1, 30, 5e4, 1e6, 1e9], [3e-3, 1.0, 2e4]))
COUNTS = np.array([[0.3, 4], [2000, 3000], [1e-2, 1e-2], [1e-2, 1e5], [1e5, 1e5], [1e6, 1e6], [1e6, 3], [300, 700]])
MEANS, VARIANCES = (grid.ravel() for grid in np.meshgrid([1e-3, 1.0, 1e3], [1e-6, 0.012, 1.0, 1e5]))


@pytest.mark.parametrize(
    "family",
    [
        Gamma(SHAPES, RATES),
        Beta(*COUNTS.T),
        Dirichlet(np.array([[1e-2, 1.0, 5.0], [10, 1e3, 5e3], [1e4, 1e6, 5e6]])),
        Normal(MEANS, VARIANCES),
        Bernoulli.from_natural(np.array([-30.0, -1.0, 2.0, 30.0])),
    ],
    ids=lambda family: type(family).__name__,
)
def test_round_trips_keep_all_that_moments_know(family):
    count = family.shape[0]
    kind, moments = type(family), [np.atleast_1d(m) for m in family.expected_statistics]
    there = [missed(kind.from_natural(*family.natural), family)]
    assert np.max(there) == 0
    known = of_one_rounding(kind, moments, count)
    error = missed(kind.from_moments(*moments), family)
    assert (error <= np.maximum(1e-10, known)).all(), (error, known)
    # Where moments know the parameters to 1e-11, the round trip has to reach 1e-10; most cases are such.
    assert (error[known < 1e-11] < 1e-10).all()
    assert (known < 1e-11).mean() > 0.4


def test_other_ways_in_have_no_such_limit():
    shapes = 10.0 ** np.arange(-2, 13)
    by_variance = Gamma.from_mean_variance(Gamma(shapes, 2.0).mean(), Gamma(shapes, 2.0).var())
    np.testing.assert_allclose(by_variance.shape_parameter, shapes, rtol=1e-14)
    betas = Beta(shapes[2:], 3.0 * shapes[2:])
    np.testing.assert_allclose(Beta.from_mean_variance(betas.mean(), betas.var()).a, betas.a, rtol=1e-9)
    # A sample knows its gap by itself: points 1 ± h have shape 1/(2 · gap) + 1/6 + ... to ten digits.
    h = 1e-5
    sample = Gamma.from_weighted_samples(np.array([1 - h, 1 + h]), np.zeros(2))
    gap = -np.log1p(-h * h) / 2
    assert sample.shape_parameter == pytest.approx(1 / (2 * gap) + 1 / 6, rel=1e-10)


def matrix(condition, d=4):
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))
    return rotation @ np.diag(np.geomspace(1, 1 / condition, d)) @ rotation.T


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_matrices_come_back_within_their_condition(condition):
    covariance = matrix(condition)
    law = MultivariateNormal(np.arange(4.0), covariance)
    back = MultivariateNormal.from_moments(*law.expected_statistics)
    # Relative to the largest eigenvalue; inverses twice, and a difference of moments of size 10.
    np.testing.assert_allclose(back.cov(), covariance, atol=1e-10)
    np.testing.assert_allclose(back.mean(), law.mean(), atol=1e-10)


def test_categories_come_back():
    law = Categorical(np.array([1e-12, 0.3, 0.7 - 1e-12]))
    np.testing.assert_allclose(Categorical.from_moments(*law.expected_statistics).mean(), law.mean(), rtol=1e-12)


GRADIENTS = [
    Normal(np.array([0.0, 1e6, -3.0]), np.array([1e-8, 1.0, 1e8])),
    MultivariateNormal(np.zeros((1, 4)), matrix(1e6)[None]),
    Gamma(np.array([1e-3, 1.0, 1e9]), np.array([3e-3, 1.0, 2e4])),
    Beta(np.array([1e-2, 300.0, 1e6]), np.array([1e5, 700.0, 1e6])),
    Bernoulli.from_natural(np.array([-700.0, 0.0, 700.0])),
    Categorical(np.array([[1e-12, 0.3, 0.7 - 1e-12]])),
    Dirichlet(np.array([[1e-2, 1.0, 1e6]])),
]


@pytest.mark.slow
@pytest.mark.parametrize("family", GRADIENTS, ids=lambda family: type(family).__name__)
def test_gradients_are_finite_at_the_extremes(family):
    kind = type(family)
    with jax.enable_x64(True):
        natural = tuple(map(jnp.asarray, family.natural))

        def total(*eta):
            law = kind.from_natural(*eta)
            value = law.log_normaliser.sum() + law.kl(jax.lax.stop_gradient(law)).sum()
            return value + sum(
                (m * jnp.cos(jnp.arange(m.size).reshape(m.shape))).sum() for m in law.expected_statistics
            )

        for slope in jax.grad(total, argnums=tuple(range(len(natural))))(*natural):
            assert np.isfinite(slope).all()


FAMILIES = (Normal, MultivariateNormal, Gamma, Beta, Bernoulli, Categorical, Dirichlet)


def some(kind):
    return {
        Normal: lambda: Normal(0.5, 2.0),
        MultivariateNormal: lambda: MultivariateNormal(np.ones(2), np.eye(2) * 2.0),
        Gamma: lambda: Gamma(2.0, 3.0),
        Beta: lambda: Beta(2.0, 3.0),
        Bernoulli: lambda: Bernoulli(0.3),
        Categorical: lambda: Categorical(np.array([0.2, 0.3, 0.5])),
        Dirichlet: lambda: Dirichlet(np.array([0.5, 2.0, 3.0])),
    }[kind]()


@pytest.mark.parametrize("kind", FAMILIES, ids=lambda kind: kind.__name__)
def test_ratios_may_be_improper_and_are_known_to_be(kind):
    law = some(kind)
    inverse = law / (law * law)
    assert isinstance(inverse, Family)
    for eta, own in zip(inverse.natural, law.natural, strict=True):
        np.testing.assert_allclose(eta, -own, atol=1e-12)
    if kind not in (Bernoulli, Categorical):  # on finitely many points every message is a law
        assert not inverse.is_proper() or kind is Beta
        improper = law / (law**3.0) if kind is not Beta else law / (law**5.0)
        assert not improper.is_proper()
        with pytest.raises(ParameterError, match="improper"):
            improper.mean()
        restored = improper * (law**3.0 if kind is not Beta else law**5.0)
        np.testing.assert_allclose(restored.mean(), law.mean(), rtol=1e-12)
    # Points and nothing at all are limits of every family.
    point = PointMass(law.mean(), event_axes=len(law.event_shape) if kind is not Categorical else 1)
    assert (law * point) is not None
    assert isinstance(point * law, PointMass)
    assert law * Flat() is law
    assert not Flat().is_proper()
