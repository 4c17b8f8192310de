"""Options of the compiler, outside and inside of other programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core.compiling import compiled_quickly

pytestmark = pytest.mark.oldest


@compiled_quickly("power")
def raised(x, power):
    if power < 0:
        raise ValueError("no negative powers")
    return jnp.sum(x**power)


def test_the_same_answers_outside_and_inside():
    x = np.arange(3.0, dtype=np.float32)
    assert raised(x, power=3) == 9
    assert jax.jit(lambda x: raised(x, power=3) + 1)(x) == 10
    assert jax.jit(lambda y: raised(x, power=3) + y)(2.0) == 11  # nothing but constants
    assert jax.grad(lambda x: raised(x, power=3))(x).tolist() == [0, 3, 12]
    assert jax.vmap(lambda x: raised(x, power=3))(x[:, None]).tolist() == [0, 1, 8]


def test_errors_of_the_function_stay():
    with pytest.raises(ValueError, match="no negative powers"):
        raised(np.ones(2), power=-1)
