"""PointMass and Flat in the place of messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.families import Flat, Laplace, MultivariateNormal, Normal, PointMass


def test_point_mass_takes_the_place_of_any_message(family):
    point = PointMass(0.5) if family.event_shape == () else PointMass(np.full(family.event_shape, 0.5), event_axes=1)
    for result in (family * point, point * family, point / family):
        assert isinstance(result, PointMass)
        assert result.shape == (3,)
        np.testing.assert_array_equal(result.mean(), 0.5)
    with pytest.raises(KindError, match="by PointMass: certainty cannot be removed"):
        family / point


def test_flat_is_the_identity(family):
    assert family * Flat() is family
    assert Flat() * family is family
    assert family / Flat() is family
    for a, b in zip((Flat() / family).natural, family.natural, strict=True):
        np.testing.assert_array_equal(a, -b)


def test_algebra_among_themselves():
    point = PointMass([1.0, 2.0])
    assert isinstance(point * point, PointMass)
    assert isinstance(point / point, Flat)
    assert isinstance(point * Flat(), PointMass)
    assert isinstance(point / Flat(), PointMass)
    assert isinstance(Flat() * point, PointMass)
    assert isinstance(Flat() * Flat(), Flat)
    assert isinstance(Flat() / Flat(), Flat)
    assert isinstance(Flat() ** 0.5, Flat)
    assert isinstance(point**2.0, PointMass)
    with pytest.raises(ParameterError, match=r"product of point masses at different points is zero at \[1\]"):
        point * PointMass([1.0, 3.0])
    with pytest.raises(ParameterError, match=r"divided by one at another point at \[0\]"):
        point / PointMass([3.0, 2.0])
    with pytest.raises(ParameterError, match="inside jit, where the points are unknown, point masses cannot"):
        jax.jit(lambda p: p / p)(point)
    with pytest.raises(ParameterError, match="expected a power above 0"):
        point**-1.0
    with pytest.raises(KindError, match="cannot divide Flat by PointMass"):
        Flat() / point
    for limit in (point, Flat()):
        with pytest.raises(KindError, match="and Laplace: messages are families, PointMass or Flat"):
            limit * Laplace()
    with pytest.raises(KindError, match="cannot divide Flat and Laplace"):
        Flat() / Laplace()
    with pytest.raises(ShapeError, match=r"batch shapes \(2,\) and \(3,\) do not broadcast"):
        point * Normal.standard(3)
    with pytest.raises(ShapeError, match=r"differ in dimension: \(\) and \(2,\)"):
        point * PointMass([1.0, 2.0], event_axes=1)


def test_point_mass_reads_as_a_law():
    point = PointMass([[0.2, 0.8]], event_axes=1)
    assert point.shape == (1,)
    assert point.event_shape == (2,)
    w = np.array([1.0, 2.0])
    np.testing.assert_allclose(point.characteristic_function(w), np.exp(1j * 1.8))
    np.testing.assert_allclose(point.characteristic_function(w, "log"), [np.exp(1j * (np.log([0.2, 0.8]) @ w))])
    np.testing.assert_array_equal(point.log_density([[0.2, 0.8], [0.2, 0.7]]), [0.0, -np.inf])
    number = PointMass(0.2)
    assert repr(number) == "PointMass(x=0.2)"
    assert (number.mean(), number.var(), number.cdf(0.1), number.cdf(0.2), number.quantile(0.7)) == (0.2, 0, 0, 1, 0.2)
    np.testing.assert_array_equal(number.sample(3, rng=0), 0.2)
    assert number.variance_in("logit") == 0
    assert jax.jit(lambda p: p.mean())(PointMass(jnp.float32(2.0))).dtype == jnp.float32
    with pytest.raises(ParameterError, match="event_axes is 2"):
        PointMass(1.0, event_axes=2)
    with pytest.raises(KindError, match="no closed-form entropy"):
        number.entropy()
    with pytest.raises(ParameterError, match="between 0 and 1 for the coordinate 'logit'"):
        PointMass(1.0).mean_in("logit")


def test_flat_is_no_law():
    assert repr(Flat()) == "Flat()"
    assert jax.tree.leaves(Flat()) == []
    assert not Flat().is_proper()
    for action in (lambda: Flat().mean(), lambda: Flat().log_density(0.0), lambda: Flat().sample(1)):
        with pytest.raises(ParameterError, match="this Flat is improper, so it has no"):
            action()
    np.testing.assert_array_equal(Flat().log_unnormalised([1.0, 2.0]), 0)
    assert isinstance(MultivariateNormal.standard(2) * Flat(), MultivariateNormal)
