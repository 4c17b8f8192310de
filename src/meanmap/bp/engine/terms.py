"""The fixed inputs of a run."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.bp.engine.messages import Given, Settings

__all__ = ["Terms"]


class Terms(eqx.Module):
    """The constants of a run: layout, operators, own factors of nodes, given messages, and settings.

    Attributes
    ----------
    layout : Layout
        Or another object with `silence`, `send_all` and, for single nodes, `send_from`.
    operators : EdgeOperators
    own : array (n, B, L)
    given : Given or None
        A row for each directed edge, or as `by_row` places it.
    settings : Settings
    """

    layout: Any
    operators: Any
    own: jax.Array
    given: Given | None
    settings: Settings

    def silence(self) -> jax.Array:
        """Uninformative messages, except for those that are given."""
        return self.layout.silence(self.own, self.given)

    def send_all(self, messages: jax.Array) -> jax.Array:
        """Update all messages in parallel."""
        return self.layout.send_all(messages, self.own, self.operators, self.given, self.settings)

    def send_from(self, nodes: jax.Array, messages: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The messages from some nodes (W,): rows (W · D,) and values."""
        return self.layout.send_from(nodes, messages, self.own, self.operators, self.given, self.settings)

    def by_row(self) -> "Terms":
        """The terms with given messages of directed edges at the rows where they are received."""
        if self.given is None:
            return self
        row, rows = self.layout.row, len(self.layout.reverse)
        known = jnp.zeros((rows, *self.given.known.shape[1:]), bool).at[row].set(self.given.known)
        values = jnp.ones((rows, *self.given.values.shape[1:]), self.given.values.dtype).at[row].set(self.given.values)
        return Terms(self.layout, self.operators, self.own, Given(known, values), self.settings)
