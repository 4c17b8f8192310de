"""The door: what comes in goes out, and whatever happens behind it leaves JAX as it was."""

import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap import kernels
from meanmap.core import Door, ForkError
from meanmap.core.door import is_concrete, is_enclosed
from meanmap.core.errors import KindError

pytestmark = pytest.mark.oldest


def state():
    return jax.config.jax_enable_x64, jnp.zeros(1).dtype


def test_plain_data_are_computed_in_64_bits_and_only_inside():
    before = state()
    with Door([1.0], np.ones(2), "text", None) as door:
        assert (door.follows, door.dtype) == (False, np.float64)
        assert jnp.zeros(1).dtype == jnp.float64
    assert state() == before == (False, jnp.float32)


def test_products_of_matrices_on_gpus_keep_the_digits_of_float32(monkeypatch):
    a = jnp.ones((2, 2))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for inputs, said in (((a,), "HIGHEST"), ((), "DEFAULT")):  # NumPy is computed in float64
        with Door(*inputs):
            assert said in jax.jit(lambda x: x @ x).lower(a).as_text()
    assert jax.config.jax_default_matmul_precision is None


def test_a_program_that_is_being_traced_is_told_from_one_that_runs():
    """As a constant that is put on a device tells it: by its own way in each of JAX's transformations."""
    seen = []

    def look(x):
        seen.append((is_enclosed(), not is_concrete(jax.device_put(0.0))))
        return 2 * x

    def known(x):
        with jax.ensure_compile_time_eval():
            return look(x)

    look(1.0)
    jax.vmap(look)(jnp.ones(2))
    jax.grad(look)(1.0)
    jax.jit(look)(1.0)
    jax.jit(jax.vmap(jax.grad(look)))(jnp.ones(2))
    jax.lax.scan(lambda carry, x: (look(carry), x), 1.0, jnp.ones(2))
    jax.jit(known)(1.0)
    answers = [ours for ours, _ in seen]
    assert answers == [theirs for _, theirs in seen]
    assert (answers[:3], all(answers[3:-1]), answers[-1]) == ([False] * 3, True, False)


def test_scope_ends_where_an_error_is_raised():
    before = state()
    with pytest.raises(RuntimeError, match="inside"), Door([1.0]):
        raise RuntimeError("inside")
    assert state() == before
    with pytest.raises(ValueError, match="shape"):
        kernels.RBF(1.0)(np.zeros((2, 2, 2)))
    assert state() == before


def test_doors_nest():
    with Door([1.0]):
        with Door(jnp.zeros(1, jnp.float32)) as following:
            assert (following.follows, following.dtype) == (True, np.float32)
            with Door([2.0]) as inner:
                assert inner.dtype == np.float64
        assert jnp.zeros(1).dtype == jnp.float64
    assert state() == (False, jnp.float32)


def test_scope_belongs_to_its_thread():
    seen = []
    with Door([1.0]):
        thread = threading.Thread(target=lambda: seen.append(jnp.zeros(1).dtype))
        thread.start()
        thread.join()
    assert seen == [jnp.float32]


def test_door_never_switches_off_what_the_user_switched_on():
    with jax.enable_x64(True):
        with Door([1.0]):
            pass
        with Door(jnp.zeros(1, jnp.float32)) as door:
            assert door.dtype == np.float32
        assert state() == (True, jnp.float64)


@pytest.mark.parametrize(
    ("inputs", "dtype"),
    [
        ([np.ones(2), jnp.ones(2, jnp.float32)], np.float32),
        ([jnp.ones(2, jnp.float16)], np.float16),
        ([jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.float32)], np.float32),
        ([jnp.arange(2)], np.float32),
        ([{"a": [1.0], 3: jnp.ones(2)}], np.float32),
        ([[1.0, jnp.ones(())]], np.float32),
    ],
)
def test_one_jax_array_anywhere_is_followed(inputs, dtype):
    with Door(*inputs) as door:
        assert door.follows
        assert door.dtype == dtype


def test_keys_of_a_mapping_need_no_order():
    with Door({1: [0.0], "a": [1.0], None: [2.0]}) as door:
        assert not door.follows


def test_leave_hands_back_arrays_that_can_be_written_to():
    with Door([1.0]) as door:
        out = door.leave({"a": jnp.ones(3), "b": "text", "c": None})
    assert type(out["a"]) is np.ndarray
    assert out["a"].dtype == np.float64
    out["a"][0] = 5.0
    assert (out["b"], out["c"]) == ("text", None)
    following = jnp.ones(3)
    with Door(following) as door:
        assert door.leave(following) is following


def test_cast_changes_hyperparameters_only():
    with Door(jnp.zeros(1, jnp.float32)) as door:
        tree = door.cast({"real": np.ones(2), "whole": np.arange(2), "text": "a", "jax": jnp.arange(2)})
    assert (tree["real"].dtype, tree["whole"].dtype, tree["text"]) == (np.float32, np.arange(2).dtype, "a")


def test_numpy_data_inside_jit_are_computed_at_once():
    """Inside an enclosing `jit` a NumPy sample is a constant; its Gram matrix comes back as NumPy and can be used."""
    x = np.random.default_rng(0).normal(size=(5, 2))
    gram = kernels.RBF(1.0)(x)
    seen = []

    def function(scale):
        inside = kernels.RBF(1.0)(x)
        seen.append(type(inside))
        return scale * inside.sum()

    np.testing.assert_allclose(jax.jit(function)(2.0), 2 * gram.sum(), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(function)(2.0), gram.sum(), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(function)(jnp.arange(3.0)), gram.sum() * np.arange(3), rtol=1e-6)
    assert set(seen) == {np.ndarray}
    assert state() == (False, jnp.float32)


def test_jax_data_that_jit_closes_over_are_checked_and_used():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
    ours = jax.jit(lambda scale: kernels.RBF(scale)(x))(0.7)
    np.testing.assert_allclose(ours, kernels.RBF(0.7)(x), rtol=1e-6)
    holed = x.at[1, 0].set(jnp.nan)
    with pytest.raises(ValueError, match=r"x holds 1 value that is not finite: nan at row 1, column 0"):
        jax.jit(lambda scale: kernels.RBF(scale)(holed))(0.7)


def test_concrete():
    seen = []
    jax.jit(lambda a: seen.append(is_concrete(a)))(1.0)
    assert seen == [False]
    assert is_concrete(jnp.ones(1))
    assert is_concrete(1.0)


def test_a_forked_child_says_so_instead_of_hanging(monkeypatch):
    mm.kernels.RBF(1.0)([0.0])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ForkError, match=r"forked from one that had used meanmap.*get_context\('spawn'\)"):
        mm.kernels.RBF(1.0)([0.0])


FORKED = """
import multiprocessing, sys, warnings
import meanmap as mm

def work(_):
    try:
        return float(mm.two_sample_test([0.0] * 10 + [1.0] * 10, [0.5] * 20, n_permutations=19, rng=0).pvalue)
    except Exception as problem:
        return type(problem).__name__

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    work(0)
    answers = []
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            answers += pool.map_async(work, [0]).get(timeout=120)
    print(answers)
"""


@pytest.mark.slow
def test_children_are_spawned_or_told(tmp_path):
    (tmp_path / "forked.py").write_text(FORKED)
    found = subprocess.run([sys.executable, tmp_path / "forked.py"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("['ForkError', 0.")


@pytest.mark.parametrize(
    "function",
    [
        mm.embed,
        mm.default_kernel,
        mm.Table.of,
        mm.DriftMonitor.of,
        lambda x: mm.two_sample_test(x, np.ones(9)),
        lambda x: mm.condition(x, np.ones(9)),
        lambda x: mm.k_sample_test([x, np.ones(9)]),
    ],
)
@pytest.mark.parametrize(("data", "came"), [(None, "is None"), (object(), "is of the kind object")])
def test_what_is_no_sample_is_called_what_it_is(function, data, came):
    with pytest.raises(KindError, match=rf"^[a-z\[\]0]+ {came}; expected points: a list, an array or a table"):
        function(data)


def test_constants_of_a_program_are_compiled_with_it(caplog):
    """Behind the door, too, where they were computed at once: each `jnp.eye` was a program of its own to compile."""
    with Door(np.ones(3)), jax.log_compiles(), caplog.at_level("WARNING"):
        jax.jit(lambda x: jax.lax.map(lambda t: jnp.eye(13) @ jnp.arange(13.0) + t, x))(np.ones(3))
    assert sum(record.message.startswith("Compiling") for record in caplog.records) == 1
