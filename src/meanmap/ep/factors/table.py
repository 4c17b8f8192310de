"""A factor between unknown labels, given as a table: hidden Markov models, mixtures of known components, logic."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from meanmap.core.arrays import as_array, check_finite
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data
from meanmap.ep.factor import Answer, Factor, check_family, common_plate
from meanmap.ep.variables import Given, concrete, read_argument
from meanmap.families import Bernoulli, Categorical

__all__ = ["Table"]

# The logarithm that stands for probability zero. Infinity could not be divided out of a belief again, and a smaller
# number can be outweighed by data: a hundred labels of log odds 7 outweighed e⁻⁷⁰⁰. Eleven digits are left.
_NEVER = -1e5


class Table(Factor):
    """f(x₁, ..., xₘ) = table[x₁, ..., xₘ] for labels 0, 1, ..., for each member of a plate.

    Parameters
    ----------
    table : array_like (k₁, ..., kₘ), or (n, k₁, ..., kₘ)
        Numbers, 0 or more, not all 0: one table for all members, or one for each of n.
    *labels : Variable
        Categoricals, as many as the table has axes.

    Notes
    -----
    The message to a label is the sum of the table times all other messages (sum-product). Probabilities are exact where
    tables join labels without loops; in loops they are approximate, as the status says. An observed label is a
    slice: the factor of observation y given hidden state i is `Table(emission[:, y].T, state)`. Cost: the size of the
    table for each member.

    Examples
    --------
    A hidden Markov model of two states that seldom change, each with its own coin:

    >>> import numpy as np
    >>> from meanmap import ep
    >>> y = np.array([1, 1, 1, 0, 0, 0])
    >>> state = ep.Variable("state", ep.Categorical, plate=6, dimension=2)
    >>> steps = np.arange(5)
    >>> model = ep.FactorGraph(
    ...     ep.Table([0.5, 0.5], state[[0]], name="start"),
    ...     ep.Table([[0.9, 0.1], [0.1, 0.9]], state[steps], state[steps + 1], name="steps"),
    ...     ep.Table(np.array([[0.8, 0.2], [0.2, 0.8]])[:, y].T, state, name="seen"),
    ... )
    >>> post = ep.infer(model)
    >>> post["state"].mean()[:, 1].round(3).tolist(), round(post.log_evidence, 4)
    ([0.899, 0.888, 0.764, 0.236, 0.112, 0.101], -4.0457)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    shared: Any

    @own_words
    def __init__(self, table: Data, *labels: Data, name: str | None = None):
        read = [read_argument(label, f"label {at}") for at, label in enumerate(labels)]
        if not read:
            raise ShapeError("Table has no labels; expected Categorical variables after the table.")
        title = name or f"Table({', '.join(label.name for label in read)})"
        for at, label in enumerate(read):
            if not label.known and label.variable.family is Bernoulli:
                size = "" if label.variable.plate is None else f", plate={label.variable.plate}"
                raise KindError(
                    f"{label.name!r} of {title} is a Bernoulli; expected a Categorical, where 1 is the second label: "
                    f"ep.Variable({label.name!r}, ep.Categorical, dimension=2{size})."
                )
            check_family(title, f"label {at}", label, Categorical)
        plate = common_plate(title, {f"label {at}": label for at, label in enumerate(read)})
        with concrete("table"):
            values = np.array(as_array(table, "table"), np.float64)
        sizes = tuple(int(label.variable.dimension or 0) for label in read)
        each = values.ndim == len(sizes) + 1
        if values.shape[each:] != sizes or (each and values.shape[0] != plate):
            whole = f", or {(plate, *sizes)} with one table for each member" if plate is not None else ""
            if plate is None and each and values.shape[1:] == sizes:
                first = next(label.name for label in read if not label.known)
                whole = (
                    f". For {len(values)} tables make each label a plate, such as {first} = ep.Variable({first!r}, "
                    f"ep.Categorical, plate=1, dimension={sizes[0]}), and name its member once for each table: "
                    f"{first}[[0] * {len(values)}]"
                )
            raise ShapeError(f"the table of {title} has shape {values.shape}; expected {sizes}{whole}.")
        check_finite(values, "table")
        if (values < 0).any() or not (values.reshape(-1, int(np.prod(sizes))).sum(1) > 0).all():
            raise ParameterError(
                f"the table of {title} holds {values.min():g}; expected numbers, 0 or more, not all 0."
            )
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(values), _NEVER)
        self.arguments, self.name = ((*read, Given(logs, "log table")) if each else tuple(read)), title
        self.shared = None if each else logs

    @property
    def constant(self) -> bool:
        """A table of one label sends a constant message."""
        return sum(not argument.known for argument in self.arguments) == 1

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Sums over all other labels."""
        del power, key
        laws, batch, joint = self._joint(incoming)
        count = len(laws)
        messages: list[Any] = []
        for at, law in enumerate(laws):
            others = tuple(batch + k for k in range(count) if k != at)
            total = jax.nn.logsumexp(joint, others) if others else joint
            rest = total - law.logits
            # Logits have an arbitrary constant, which would double from sweep to sweep round loops.
            messages.append(Categorical.from_natural(rest - rest.max(-1, keepdims=True)))
        messages += [None] * (len(incoming) - len(laws))
        return Answer(tuple(messages), jax.nn.logsumexp(joint, tuple(range(batch, batch + count))))

    @property
    def forbids(self) -> bool:
        """Whether some entry of the table is 0."""
        return bool((self._table(self.arguments) <= _NEVER).any())

    def forbidden_share(self, incoming: tuple[Any, ...]) -> np.ndarray:
        """The share of each member's weight that lies on entries of 0."""
        _, batch, joint = self._joint(incoming)
        axes = tuple(range(batch, joint.ndim))
        joint = np.asarray(joint)
        weights = np.exp(joint - joint.max(axes, keepdims=True))
        return np.where(self._table(incoming) <= _NEVER, weights, 0.0).sum(axes) / weights.sum(axes)

    def _table(self, arguments: tuple[Any, ...]) -> Any:
        return getattr(arguments[-1], "values", arguments[-1]) if self.shared is None else self.shared

    def _joint(self, incoming: tuple[Any, ...]) -> tuple[tuple[Any, ...], int, Any]:
        """The distributions of the labels, how many axes are the plate's, and the log weight of all labels together."""
        laws = incoming[:-1] if self.shared is None else incoming
        batch, count = laws[0].logits.ndim - 1, len(laws)

        def along(law: Any, at: int) -> jax.Array:
            shape = law.logits.shape
            return law.logits.reshape(*shape[:batch], *(shape[-1] if k == at else 1 for k in range(count)))

        return laws, batch, self._table(incoming) + sum(along(law, at) for at, law in enumerate(laws))
