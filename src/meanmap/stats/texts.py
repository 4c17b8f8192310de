"""Texts as a few columns of numbers: their principal coordinates under the spectrum kernel."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.arrays import is_categorical
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.held import holds_text
from meanmap.core.tables.kinds import is_text, levels_of
from meanmap.core.tables.table import Table, named_columns
from meanmap.core.tables.written import Written
from meanmap.core.texts import check_memory
from meanmap.core.types import Data
from meanmap.kernels.discrete import Spectrum
from meanmap.learning.default import is_default

__all__ = ["read_texts", "refuse_numbers", "text_coordinates", "texts_as_labels", "texts_of_variables"]

# Substrings of this many characters, this many coordinates, chosen from at most this many rows: their eigenvectors take
# .2 s.
LENGTH, MOST_COORDINATES, MOST_ROWS = 3, 10, 1000
# Coordinates are at most 1 and rounded to this many decimals.
DECIMALS = 10
# The name of texts that have no column name.
TEXT = "text"


def read_texts(
    samples: Sequence[Data], names: Sequence[str], kernel: object = None, kinds: Mapping[str, Any] | None = None
) -> tuple[list[Any], tuple[str, ...]]:
    """Samples in which every column of texts is a block of principal coordinates, and a sentence for each.

    Texts are defined as in `Schema.of`: nearly every row has a different one. Coordinates are computed from all samples
    together, without the labels, so permutations stay exact. Columns listed in `kinds` keep that kind, and with a
    user's kernel everything stays unchanged. Texts that look like numbers or dates are refused.

    Examples
    --------
    >>> reviews = {"review": [f"{word} weather" for word in "abcdefghijklmnopqrstuvwx"], "stars": [1.0, 2.0] * 12}
    >>> (table,), notes = read_texts([reviews], ["x"])
    >>> table["review"].shape, notes[0][:32]
    ((24, 10), "column 'review' of x holds texts")
    """
    samples = list(samples)
    empty = any(isinstance(sample, Mapping) and not sample for sample in samples)
    if empty or not is_default(kernel):
        return samples, ()
    tables, columns = _text_columns(samples, names, kinds)
    _refuse_numbers(columns, names, bool(tables))
    if not columns:
        return samples, ()
    alone = not tables or (len(tables[0]) == 1 and len(names) == 1)
    filled, notes = tables or [{} for _ in samples], []
    for column, parts in columns.items():
        sizes = np.cumsum([len(part) for part in parts])[:-1]
        found = np.split(text_coordinates(np.concatenate(parts), TEXT), sizes)
        of = f" of {names[0]}" if len(names) == 1 else ""
        where = " and ".join(names) if alone else f"column {column!r}{of}"
        notes.append(_told(where, alone and len(names) > 1, found))
        for table, part in zip(filled, found, strict=True):
            table[column] = part
    return (filled if tables else [Table(table) for table in filled]), tuple(notes)


def texts_of_variables(
    variables: Sequence[Data], names: Sequence[str], kernels: Sequence[Any], kinds: Mapping[str, Any] | None
) -> tuple[list[Any], tuple[str, ...]]:
    """As `read_texts` for each variable separately, with the kernel requested for it."""
    read = [read_texts([v], [n], k, kinds) for v, n, k in zip(variables, names, kernels, strict=True)]
    return [part for (part,), _ in read], tuple(note for _, notes in read for note in notes)


def texts_as_labels(
    samples: Sequence[Data], names: Sequence[str], kinds: Collection[str] | None = None
) -> tuple[str, ...]:
    """A note for each column of texts, where a test can only read them as labels.

    Examples
    --------
    >>> texts_as_labels([[f"row {i}" for i in range(30)]], ["x"])[0][:40]
    'nearly every row of x has its own label,'
    """
    tables, columns = _text_columns(samples, names, kinds)
    alone = not tables or len(tables[0]) == 1
    return tuple(
        f"nearly every row of {' and '.join(names) if alone else f'column {column!r}'} has its own label, and labels "
        "are only equal or not: they carry almost no information. For texts pass vectors instead, such as those of an "
        "encoder."
        for column in columns
    )


def refuse_numbers(
    samples: Sequence[Data], names: Sequence[str], kinds: Collection[str] | None = None, kernel: object = None
) -> None:
    """Refuse columns of texts that look like numbers or dates: as texts, or labels, hardly two would be equal.

    With a user's kernel they stay.

    Examples
    --------
    >>> refuse_numbers([{"pay": list(map(str, range(30)))}], ["x"])
    Traceback (most recent call last):
        ...
    meanmap.core.errors.KindError: column 'pay' of x is text that looks like numbers, such as '0': convert it, \
for example with .astype(float), or say so with kinds={'pay': 'number'}. If labels are meant, convert it to \
categories, or say so with kinds={'pay': 'label'}.
    """
    if is_default(kernel):
        tables, columns = _text_columns(samples, names, kinds)
        _refuse_numbers(columns, names, bool(tables))


def _refuse_numbers(columns: Mapping[str, Sequence[np.ndarray]], names: Sequence[str], named: bool) -> None:
    where = " and ".join(names)
    for column, parts in columns.items():
        written = Written.of(np.unique(np.concatenate(parts)).tolist())
        if written is not None:
            called = (f"column {column!r} of {where}", column) if named else (where, None)
            raise KindError(written.refused(*called))


def text_coordinates(texts: np.ndarray, argument: str) -> np.ndarray:
    """The directions in which texts vary most, (n, r), r ≤ 10, by the normalised spectrum kernel.

    Examples
    --------
    >>> found = text_coordinates(np.array(["a cat", "a cat sat", "two dogs", "two dogs ran"]), "x")
    >>> np.sign(found[:, 0] * found[0, 0]).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    from scipy.sparse import csr_array

    kernel = Spectrum(LENGTH)
    with Door() as door:
        # Spaces mark where words begin and end, and no text is too short.
        counts = kernel.domain.read([f"  {text} " for text in texts.tolist()], argument, door)
    names, columns = np.unique(counts.indices, return_inverse=True)
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    shares = csr_array(
        (counts.data / np.repeat(lengths, np.diff(counts.indptr)), columns, counts.indptr), (len(texts), len(names))
    )
    some = shares[:: -(-len(texts) // MOST_ROWS)]
    gram = (some @ some.T).toarray()
    rows = gram.mean(axis=1)
    values, vectors = np.linalg.eigh(gram - rows - rows[:, None] + rows.mean())
    kept = np.flatnonzero(values > 1e-9 * values[-1])[::-1][:MOST_COORDINATES]
    # Vectors of a centred matrix sum to zero, so that the mean of `some` drops out.
    directions = some.T @ (vectors[:, kept] / np.sqrt(values[kept]))
    # Rounding errors are not differences between texts: relative to them a single different text would be 1e14 times as
    # far away.
    found = np.asarray(shares @ directions - np.asarray(some.mean(axis=0)).ravel() @ directions)
    return np.round(found, DECIMALS) + 0.0


def _text_columns(
    samples: Sequence[Data], names: Sequence[str], kinds: Collection[str] | None
) -> tuple[list[dict[str, Any]], dict[str, list[np.ndarray]]]:
    """The samples by column, none unless all have columns, and the parts of each column of texts.

    `TEXT` stands for a column without a name.

    Columns of declared `kinds` are left out, and so is a variable by itself that is called as one of these.
    """
    tables = [dict(named_columns(sample, name) or {}) for sample, name in zip(samples, names, strict=True)]
    tables, declared = tables if all(tables) else [], kinds or ()
    if not tables:
        held = {} if len(names) == 1 and names[0] in declared else {TEXT: list(map(_texts, samples))}
    else:
        held = {c: [_texts(table.get(c)) for table in tables] for c in tables[0] if c not in declared}
    return tables, {column: found for column, parts in held.items() if (found := _together(parts)) is not None}


def _texts(column: Any) -> np.ndarray | None:
    """The values of a column if all of them are strings without an order; None for anything else."""
    if isinstance(column, np.ndarray) and holds_text(column) and column.ndim == 1:
        return column
    dtype = getattr(column, "dtype", None)
    if dtype is None and not isinstance(column, list | tuple):
        return None
    words = dtype is None or is_categorical(column) or str(dtype) == "object" or "str" in str(dtype).lower()
    if not words or len(getattr(column, "shape", (0,))) != 1 or not len(column) or levels_of(column):
        return None
    held = list(column)
    if not all(isinstance(value, str) for value in held):
        return None
    check_memory(held, "a column")
    return np.array(held)


def _together(parts: Sequence[np.ndarray | None]) -> list[np.ndarray] | None:
    """The parts of one column, if all of them are strings and together they are texts."""
    held = [part for part in parts if part is not None]
    if not held or len(held) < len(parts):
        return None
    whole = np.concatenate(held)
    return held if is_text(len(np.unique(whole)), len(whole)) else None


def _told(which: str, several: bool, found: Sequence[np.ndarray]) -> str:
    return (
        f"{which} hold{'' if several else 's'} texts that differ in nearly every row: the test uses their first "
        f"{found[0].shape[1]} principal coordinates by substrings of {LENGTH} characters. Leave out columns that only "
        f"identify rows."
    )
