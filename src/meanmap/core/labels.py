"""Labels as codes: equal labels get the same two 32-bit words, in every call and without a vocabulary."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_rows, plain, reader_of
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ShapeError
from meanmap.core.foreign import count_missing, readable
from meanmap.core.held import holds_floats, holds_text
from meanmap.core.language import counted, in_python
from meanmap.core.objects import check_cells
from meanmap.core.settings import is_number
from meanmap.core.tables.table import table_in
from meanmap.core.texts import as_labels
from meanmap.core.types import Data

__all__ = ["Labels", "are_codes", "hashes"]


@dataclass(frozen=True)
class Labels:
    """Categories: text, numbers, anything that can be compared for equality. Read as (n, d, 2) integers, two 32-bit
    words a label.

    Text is hashed to 64 bits, so that codes need no vocabulary and mean the same in every call; two of a million
    distinct labels share a code with probability 3e-8.
    """

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Codes of shape (n, d, 2); one axis means n points with one label each."""
        if isinstance(data, str | bytes):
            read = (
                f" To use a file, read it first, for example with {reader_of(data)}." if Path(str(data)).suffix else ""
            )
            raise KindError(f"{argument} is one text, {data!r}; expected a list of labels.{read}")
        if table := table_in(data, argument):
            parts = [_codes(column, f"{argument}[{name!r}]") for name, column in table.columns.items()]
        else:
            parts = [_codes(data, argument)]
        followed = any(isinstance(part, jax.Array) for part in parts)
        codes = parts[0] if len(parts) == 1 else (jnp if followed else np).concatenate(parts, axis=1)
        return jnp.asarray(codes) if door.follows else codes


def _codes(data: Data, argument: str) -> Any:
    """64-bit codes of labels as pairs of int32, (n, d, 2): whole numbers are their own code, anything else is hashed.

    A label's code depends on that label only, so that codes of different calls can be compared.
    """
    labels = data if isinstance(data, jax.Array) else _plain_labels(data, argument)
    if labels.ndim not in (1, 2):
        raise ShapeError(f"{argument} has shape {labels.shape}; expected (n,) or (n, d) labels.")
    check_rows(labels.shape[0], argument)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.shape[1] == 0:
        raise EmptyError(f"{argument} has {labels.shape[0]} rows but no columns.")
    if isinstance(labels, jax.Array):
        return _words_in_jax(labels, argument)
    if labels.dtype.kind in "iub":
        return _words(labels)
    if holds_floats(labels):
        whole = (labels == np.round(labels)) & (np.abs(labels) < 2**53)
        codes = _words(np.where(whole, labels, 0))
        codes[~whole] = hashes(labels[~whole].astype(np.float64))
        return codes
    return hashes(labels)


def _plain_labels(data: Data, argument: str) -> np.ndarray:
    """Labels as numbers or as text; missing ones are refused, and so are mixtures, which NumPy would turn into text."""
    labels = plain(data, argument)
    if labels.dtype.kind == "O" or (holds_text(labels) and isinstance(data, list | tuple)):
        labels = np.asarray(readable(data, argument), dtype=object)
    missing = int(np.isnan(labels).sum()) if holds_floats(labels) else count_missing(data)
    missing = missing or count_missing(labels)
    if missing:
        raise NonFiniteError(
            f"{argument} has {counted(missing, 'missing value')}. Drop those rows, or give missing values a label of "
            "their own."
        )
    if labels.dtype.kind == "O":
        check_cells(labels, argument)
        numbers = all(map(is_number, labels.flat))
        if numbers and not isinstance(data, list | tuple) and not all(label == round(label) for label in labels.flat):
            raise KindError(
                f"{argument} holds numbers as Python objects (dtype object). "
                f"Convert it first{in_python(', for example with .astype(float)')}."
            )
        other = next((label for label in labels.flat if not isinstance(label, str)), None)
        if other is not None and any(isinstance(label, str) for label in labels.flat):
            raise KindError(f"{argument} mixes text with {other!r}; expected one kind of label.")
        labels = np.asarray(labels.tolist())
    if labels.dtype.kind not in "fiubSUT":
        raise KindError(f"{argument} holds {labels.dtype} values; expected labels: text or numbers.")
    return labels


def are_codes(leaf: Any) -> bool:
    """Whether an array of points holds codes of labels: integers, two words per label."""
    return leaf.ndim == 3 and np.issubdtype(leaf.dtype, np.integer)


def as_whole(codes: Any) -> np.ndarray:
    """Codes of two words as one number each, (n, d)."""
    return np.ascontiguousarray(codes).view(np.int64)[..., 0]


def _words(labels: np.ndarray) -> np.ndarray:
    """Integers as low and high 32-bit words."""
    return np.ascontiguousarray(labels.astype(np.int64)).view(np.int32).reshape(*labels.shape, 2)


def _words_in_jax(labels: jax.Array, argument: str) -> jax.Array:
    """The two words of labels in JAX arrays, where 64-bit integers may not exist."""
    if labels.dtype == bool:
        labels = labels.astype(jnp.int32)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise KindError(f"{argument} is a JAX array of {labels.dtype}; expected integer labels.")
    high = labels >> 32 if labels.dtype.itemsize == 8 else jnp.where(labels < 0, -1, 0)
    return jnp.stack([labels.astype(jnp.int32), high.astype(jnp.int32)], axis=-1)


def hashes(labels: np.ndarray) -> np.ndarray:
    """64-bit hashes of labels as text, (..., 2)."""
    distinct, inverse = np.unique(labels if holds_floats(labels) else as_labels(labels), return_inverse=True)
    words = distinct.astype(str).tolist()
    digests = b"".join(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest() for text in words)
    codes = np.frombuffer(digests, dtype="<i4").reshape(-1, 2).astype(np.int32)
    return codes[inverse].reshape(*labels.shape, 2)
