"""Batches, printing, draws and the door."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import ParameterError, ShapeError
from meanmap.families import Beta, Gamma, Mixture, MultivariateNormal, Normal


def test_indexing(law):
    assert law.shape == (3,)
    assert len(law) == 3
    assert law[1].shape == ()
    np.testing.assert_array_equal(law[-1].mean(), law.mean()[-1])
    np.testing.assert_array_equal(law[[2, 0]].mean(), law.mean()[[2, 0]])
    np.testing.assert_array_equal(law[1:].mean(), law.mean()[1:])
    np.testing.assert_array_equal(law[np.array([True, False, True])].mean(), law.mean()[[0, 2]])
    assert law[None].shape == (1, 3)
    assert law[..., None].shape == (3, 1)
    assert [member.shape for member in law] == [(), (), ()]
    for wrong in (3, (0, 0), (slice(None), 0)):
        with pytest.raises(IndexError):
            law[wrong]
    with pytest.raises(TypeError, match="a single distribution, not a batch"):
        len(law[0])


def test_reshaping(law):
    wide = law.broadcast_to((2, 3))
    assert wide.shape == (2, 3)
    np.testing.assert_array_equal(wide.mean()[1], law.mean())
    np.testing.assert_array_equal(wide.reshape(6).mean()[3:], law.mean())
    assert law[0].broadcast_to(4).shape == (4,)
    with pytest.raises(ShapeError, match=r"batch shape \(3,\) cannot be broadcast to \(2,\)"):
        law.broadcast_to(2)


def test_indexing_jax_leaves_checks_the_range():
    batch = jax.tree.map(jnp.asarray, Normal.standard(3))
    assert isinstance(batch[0].mean(), jax.Array)
    with pytest.raises(IndexError, match="index 3 is out of range for a batch of 3"):
        batch[3]
    assert len(list(batch)) == 3


def test_printing():
    assert repr(Normal(1.0, 4.0)) == "Normal(mean=1, sd=2)"
    assert repr(Beta(0.3, 4.0)) == "Beta(a=0.3, b=4, mean=0.06977, sd=0.1107)"
    assert repr(Gamma(2.0, 4.0)) == "Gamma(shape=2, rate=4, mean=0.5, sd=0.3536)"
    assert repr(Normal([0.0, 1.0], 1.0)) == "Normal(shape=(2,))"
    assert repr(Normal.from_natural(1.0, -2.0)) == "Normal(improper, natural=1, -2)"
    assert repr(Normal.from_natural(np.zeros(9), 0.0)).endswith("improper at [0], [1], [2], [3], [4] and 4 more)")
    seen = []
    jax.jit(lambda f: seen.append(repr(f)) or f.mean())(Normal(1.0, 4.0))
    assert seen == ["Normal(shape=(), traced)"]
    assert repr(jax.tree.map(lambda leaf: None, Normal())) == "Normal(...)"
    assert (
        repr(MultivariateNormal.standard(9)) == "MultivariateNormal(mean=array of shape (9,), sd=array of shape (9,))"
    )


def test_the_door():
    normal = Normal([0.0, 1.0], 2.0)
    assert isinstance(normal.mean(), np.ndarray)
    assert isinstance(normal[0].mean(), np.float64)
    followed = normal.log_density(jnp.float32(0.5))
    assert isinstance(followed, jax.Array)
    assert followed.dtype == jnp.float32
    assert (normal * jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), normal)).precision.dtype == jnp.float32
    assert Normal(jnp.float32(1.0), 2.0).precision.dtype == jnp.float32
    assert Normal(jnp.array([1, 2]), 2).precision.dtype == jnp.float32
    assert not jax.config.jax_enable_x64
    assert isinstance(normal.characteristic_function(jnp.ones(2, jnp.float32)), jax.Array)
    leaf = normal.mean()
    leaf[0] = 5.0  # results can be written to, and values stay what they are
    assert normal.mean()[0] == 0


def test_gradients_through_constructors():
    slope = jax.grad(lambda m: Normal(m, 2.0).kl(Normal(0.0, 1.0)))(3.0)
    assert slope == pytest.approx(3.0)
    slopes = jax.grad(lambda ab: Beta(ab[0], ab[1]).mean())(jnp.array([2.0, 3.0]))
    np.testing.assert_allclose(slopes, [3 / 25, -2 / 25], rtol=1e-5)
    draws = jax.grad(lambda v: Normal(0.0, v).sample(1000, rng=0).std())(4.0)
    assert draws == pytest.approx(0.25, rel=0.1)  # d√v/dv


@pytest.mark.slow
def test_gradients_through_gamma_draws():
    slope = jax.grad(lambda a: Gamma(a, 1.0).sample(2000, rng=0).mean())(4.0)
    assert slope == pytest.approx(1.0, abs=0.2)


def test_draws():
    normal = Normal.standard()
    assert isinstance(normal.sample(2, rng=jax.random.key(0)), np.ndarray)
    np.testing.assert_array_equal(normal.sample(2, rng=jax.random.key(7)), normal.sample(2, rng=7))
    assert not np.array_equal(normal.sample(2), normal.sample(2))
    traced = jax.jit(lambda key: normal.sample(2, rng=key))(jax.random.key(0))
    np.testing.assert_allclose(traced, traced)
    assert traced.dtype == jnp.float32
    assert normal.sample(0, rng=0).shape == (0,)
    for n in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="expected a whole number of at least 0"):
            normal.sample(n)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_parameters_draw_inside_the_open_support(dtype):
    library = np if dtype is np.float64 else jnp
    beta = jax.tree.map(lambda leaf: library.asarray(leaf, dtype), Beta([0.01, 0.02, 0.01], [0.01, 0.01, 5.0]))
    draws = beta.sample(10_000, rng=0)
    assert draws.dtype == dtype
    assert ((draws > 0) & (draws < 1)).all()


def test_coordinates():
    gamma = Gamma([2.0, 30.0, 4.0], 3.0)
    draws = np.log(gamma.sample(10_000, rng=0))
    np.testing.assert_allclose(gamma.mean_in("log"), draws.mean(0), atol=5 * np.sqrt(0.65 / 10_000))
    np.testing.assert_allclose(gamma.variance_in("log"), draws.var(0), rtol=0.1)
    np.testing.assert_array_equal(gamma.mean_in(), gamma.mean())
    mixture = Mixture(gamma, [0.5, 0.5, 0.0])
    assert mixture.coordinates == ("x", "log")
    assert mixture.mean_in("log") == pytest.approx(gamma.mean_in("log")[:2].mean())
