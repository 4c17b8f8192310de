"""Messages of factors on many variables to each of them, from those of the others.

A table that is written out is summed over the variables of one half of its scope, then of the other, and each half is
taken apart in the same way: all d messages cost about two sums over the whole table instead of d. A table that only
asks for the sum of states is a chain: sums of those before, and what those behind still allow, meet at each variable.
"""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.products import UNROLLED, scaled

__all__ = ["Like", "Sums", "Tables"]


class Like(eqx.Module):
    """F factors on d variables each, whose tables have one shape; those with the same table share it.

    Attributes
    ----------
    values : array (U, ...)
        The different tables.
    which : array (F,)
        The table of each factor.
    variables : int
        d.
    maximum : bool
        Max-product.
    """

    values: Any
    which: Any
    variables: int = eqx.field(static=True)
    maximum: bool = eqx.field(static=True)

    @abstractmethod
    def send(self, heard: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Messages (F, d, B, L) from what variables say (F, d, B, L), and the logarithm of their scale (F, d, B)."""

    def _over(self, values: jax.Array, axis: int) -> jax.Array:
        return jnp.max(values, axis=axis) if self.maximum else jnp.sum(values, axis=axis)


class Tables(Like):
    """Tables that are written out, (U, k_1, ..., k_d)."""

    def send(self, heard: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Messages to all variables: tables are summed over half of the variables at a time."""
        shape = self.values.shape[1:]
        said = [heard[:, i, :, :k] for i, k in enumerate(shape)]
        sent: list[Any] = [None] * len(shape)

        def without(table: jax.Array, slots: range, others: range) -> jax.Array:
            """The table (F, B, ...) on `slots` and `others`, which lie side by side, summed over the others."""
            for i in reversed(others) if others.start >= slots.stop else others:
                axis = table.ndim - 1 if others.start >= slots.stop else 2
                wide = (
                    slice(None),
                    slice(None),
                    *(None,) * (axis - 2),
                    slice(None),
                    *(None,) * (table.ndim - axis - 1),
                )
                table = self._over(table * said[i][wide], axis)
            return table

        def halve(table: jax.Array, slots: range) -> None:
            if len(slots) == 1:
                missing = heard.shape[-1] - table.shape[-1]
                sent[slots.start] = jnp.pad(table, ((0, 0), (0, 0), (0, missing)))
                return
            first, second = slots[: len(slots) // 2], slots[len(slots) // 2 :]
            halve(without(table, first, second), first)
            halve(without(table, second, first), second)

        halve(self.values[self.which][:, None], range(len(shape)))
        return jnp.stack(sent, axis=1), jnp.zeros(heard.shape[:-1], heard.dtype)


class Sums(Like):
    """Tables of sums, (U, M): ψ(x) = values[Σ x], modulo M where they are cyclic."""

    cyclic: bool = eqx.field(static=True)

    def send(self, heard: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Forwards and backwards along the variables."""
        size, states = self.values.shape[1], heard.shape[-1]
        sums, more = np.arange(size)[:, None], np.arange(states)
        slots = jnp.moveaxis(heard, 1, 0)
        unroll = len(slots) if len(slots) <= UNROLLED else 1

        def at(values: jax.Array, index: np.ndarray) -> jax.Array:
            """Values at sums (M, L); none beyond the ends."""
            if self.cyclic:
                return values[..., index % size]
            inside = (index >= 0) & (index < size)
            return jnp.where(inside, values[..., np.where(inside, index, 0)], 0)

        def along(state: Any, said: jax.Array, index: np.ndarray) -> tuple[Any, Any]:
            values, log_scale = state
            new, more_scale = scaled(self._over(at(values, index) * said[..., None, :], -1))
            return (new, log_scale + more_scale), state

        none = jnp.zeros(heard.shape[::2], heard.dtype)
        begin = jnp.zeros((*none.shape, size), heard.dtype).at[..., 0].set(1)
        end = jnp.broadcast_to(self.values[self.which][:, None], begin.shape)
        _, (before, log_before) = jax.lax.scan(partial(along, index=sums - more), (begin, none), slots, unroll=unroll)
        _, (behind, log_behind) = jax.lax.scan(
            partial(along, index=sums + more), (end, none), slots, reverse=True, unroll=unroll
        )
        sent = self._over(at(behind, sums + more) * before[..., None], -2)
        return jnp.moveaxis(sent, 0, 1), jnp.moveaxis(log_before + log_behind, 0, 1)
