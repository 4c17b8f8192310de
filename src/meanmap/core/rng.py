"""Randomness by SPEC 7: `rng=None | int | numpy.random.Generator | JAX key`, always with a seed to repeat the run."""

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import is_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type

__all__ = ["Rng"]


@dataclass(frozen=True)
class Rng:
    """One source of randomness: a NumPy generator and a JAX key, from one 64-bit seed.

    `seed` repeats the run: `rng=result.seed` draws the same numbers again, whatever was passed the first time. It is
    `None` only for a traced JAX key, whose value cannot be known inside `jit`.
    """

    seed: int | None
    traced_key: Any = None

    @classmethod
    def of(cls, rng: object = None) -> "Rng":
        """Read the public `rng` argument.

        `None` draws fresh entropy. An integer is used as the seed. A generator draws one integer (so it advances, and
        two calls with it differ). A JAX key is used unchanged; its seed is the integer made of its two words.

        Examples
        --------
        >>> Rng.of(7).generator.integers(100) == Rng.of(7).generator.integers(100)
        np.True_
        """
        match rng:
            case None:
                return cls(secrets.randbits(53))
            case Rng():
                return rng
            case bool():
                raise KindError(
                    f"rng is {rng!r}; expected None, an integer, a numpy Generator or a JAX key: type rng=0."
                )
            case int() | np.integer():
                if not 0 <= rng < 2**64:
                    raise ParameterError(f"rng is {rng}; an integer seed must be between 0 and 2**64 - 1.")
                return cls(int(rng))
            case np.random.Generator():
                return cls(int(rng.integers(2**53)))
            case jax.Array():
                return cls._of_key(rng)
        raise KindError(
            f"rng is {a_type(rng)}; expected None, an integer, a numpy Generator or a JAX key: "
            "type rng=0, rng=numpy.random.default_rng(0) or rng=jax.random.key(0)."
        )

    @classmethod
    def _of_key(cls, key: jax.Array) -> "Rng":
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        words = jax.random.key_data(key) if typed else key
        if words.shape != (2,) or words.dtype != np.uint32:
            raise KindError(
                f"rng is a JAX array of {key.dtype} and shape {key.shape}; "
                "expected one key, as jax.random.key(0) makes."
            )
        if not is_concrete(words):
            return cls(None, jax.random.wrap_key_data(words, impl="threefry2x32"))
        high, low = (int(word) for word in np.asarray(words))
        return cls(high << 32 | low)

    @cached_property
    def key(self) -> jax.Array:
        """The JAX key of this seed."""
        if self.seed is None:
            return self.traced_key
        words = np.array([self.seed >> 32, self.seed & 0xFFFFFFFF], dtype=np.uint32)
        with jax.ensure_compile_time_eval():  # it is kept, so it must not be a tracer of the `jit` that asks first
            return jax.random.wrap_key_data(jax.device_put(words), impl="threefry2x32")

    @cached_property
    def generator(self) -> np.random.Generator:
        """The NumPy generator of this seed."""
        if self.seed is None:
            raise KindError(
                "this function draws on the host and cannot run under jit with a traced JAX key: "
                "call it outside jit, or pass an integer seed."
            )
        return np.random.default_rng(self.seed)
