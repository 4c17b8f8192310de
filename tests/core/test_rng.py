"""Randomness: every accepted kind of `rng`, and the seed that repeats the run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import KindError, ParameterError, Rng

pytestmark = pytest.mark.oldest


def numbers(rng):
    return rng.generator.normal(size=3), np.asarray(jax.random.normal(rng.key, (3,)))


def assert_same(first, second):
    for a, b in zip(numbers(first), numbers(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_none_draws_fresh_entropy_and_says_which():
    first, second = Rng.of(None), Rng.of()
    assert first.seed != second.seed
    assert_same(first, Rng.of(first.seed))


@pytest.mark.parametrize("seed", [0, 5, 2**31, 2**53 + 1, 2**64 - 1, np.int64(7), np.uint8(3)])
def test_integer_is_the_seed(seed):
    rng = Rng.of(seed)
    assert rng.seed == int(seed)
    assert type(rng.seed) is int
    assert_same(rng, Rng.of(int(seed)))
    assert Rng.of(seed).generator.integers(10**9) == np.random.default_rng(int(seed)).integers(10**9)


def test_small_integers_give_the_key_of_jax():
    np.testing.assert_array_equal(jax.random.key_data(Rng.of(5).key), jax.random.key_data(jax.random.key(5)))


def test_generator_advances():
    generator = np.random.default_rng(3)
    first, second = Rng.of(generator), Rng.of(generator)
    assert first.seed != second.seed
    assert first.seed == Rng.of(np.random.default_rng(3)).seed
    assert_same(first, Rng.of(first.seed))


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_key_goes_round(make):
    rng = Rng.of(make(5))
    assert rng.seed == 5
    np.testing.assert_array_equal(jax.random.key_data(rng.key), jax.random.key_data(jax.random.key(5)))
    child = jax.random.split(jax.random.key(5))[1]
    rng = Rng.of(child)
    assert rng.seed >= 2**32
    np.testing.assert_array_equal(jax.random.key_data(rng.key), jax.random.key_data(child))
    assert_same(rng, Rng.of(rng.seed))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.random.key_data(Rng.of(rng.seed).key), jax.random.key_data(child))


def test_rng_of_rng_is_itself():
    rng = Rng.of(1)
    assert Rng.of(rng) is rng


def test_traced_key_draws_in_jax_only():
    drawn = jax.jit(lambda key: jax.random.normal(Rng.of(key).key, (3,)))(jax.random.key(5))
    np.testing.assert_array_equal(drawn, jax.random.normal(jax.random.key(5), (3,)))
    several = jax.vmap(lambda key: jax.random.normal(Rng.of(key).key))(jax.random.split(jax.random.key(0), 4))
    assert len(set(several.tolist())) == 4
    assert jax.jit(lambda key: Rng.of(key).seed is None)(jax.random.key(0))
    with pytest.raises(KindError, match="cannot run under jit with a traced JAX key: call it outside jit"):
        jax.jit(lambda key: Rng.of(key).generator.normal())(jax.random.key(0))


def test_key_asked_for_inside_jit_does_not_leak():
    rng = Rng.of(3)
    jax.jit(lambda a: a + jax.random.normal(rng.key))(1.0)
    np.testing.assert_array_equal(jax.random.normal(rng.key), jax.random.normal(jax.random.key(3)))


@pytest.mark.parametrize(
    ("rng", "error", "message"),
    [
        (-1, ParameterError, "rng is -1; an integer seed must be between 0 and 2"),
        (2**64, ParameterError, "between 0 and 2"),
        (1.5, KindError, "rng is a float; expected None, an integer, a numpy Generator or a JAX key: type rng=0"),
        ("seed", KindError, "rng is a str"),
        (True, KindError, "rng is True; expected None, an integer"),
        (np.random.RandomState(0), KindError, "rng is a RandomState.*type rng=0, rng=numpy.random.default_rng"),
        ([1, 2], KindError, "rng is a list"),
    ],
)
def test_refused(rng, error, message):
    with pytest.raises(error, match=message):
        Rng.of(rng)


def test_arrays_that_are_no_key_are_refused():
    for array in (jnp.array([1.0, 2.0]), jnp.arange(2), jnp.uint32(5), jax.random.split(jax.random.key(0), 3)):
        with pytest.raises(KindError, match=r"rng is a JAX array of .* expected one key, as jax.random.key\(0\) makes"):
            Rng.of(array)
