"""Options of the compiler, outside and inside of other programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import compiling
from meanmap.core.compiling import compiled_quickly
from meanmap.core.points import on_device

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


def test_arrays_come_to_the_device_without_a_program():
    programs = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, _, **about: programs.append((event, about)))
    tree = {"a": np.arange(37.0), "b": [np.arange(41), 2.0, None], "c": jnp.ones(2)}
    programs.clear()
    found = on_device(tree)
    assert not [about for event, about in programs if event == "/jax/core/compile/backend_compile_duration"]
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(found))
    assert jax.tree.all(jax.tree.map(lambda new, old: bool(np.all(new == old)), found, tree))
    assert found["c"] is tree["c"]
    assert jax.grad(lambda x: on_device({"x": x, "y": np.ones(1)})["x"])(1.0) == 1


def test_an_option_that_this_version_does_not_have_is_left_out(monkeypatch):
    monkeypatch.setitem(compiling.QUICK, "xla_option_of_another_version", False)
    monkeypatch.setattr(compiling, "_offered", [*compiling._offered, "xla_option_of_another_version"])
    traced = []

    @compiled_quickly()
    def doubled(x):
        traced.append(x.shape)
        return 2 * x

    assert doubled(np.ones(3)).tolist() == [2, 2, 2]
    assert doubled(np.ones(2)).tolist() == [2, 2]
    assert traced in ([(3,), (2,)], [(3,), (3,), (2,)])
    assert "xla_option_of_another_version" not in compiling._offered
    assert compiling._offered
