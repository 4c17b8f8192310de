"""Labels as text: equal labels are written in the same way, whatever their type."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.held import holds_floats
from meanmap.core.language import in_python
from meanmap.core.values import label_text

__all__ = ["as_labels", "check_memory", "text_codes"]

# An array of texts gives each the room of the longest one, four bytes a character. Refused are this many bytes, if so
# many times as many as the texts have.
MOST_BYTES, WIDE, WASTE = 2**31, 4, 8


def as_labels(values: np.ndarray, argument: str = "labels") -> np.ndarray:
    """Values as text, so that 7, 7.0 and "7" are one label, and so are accented letters, however composed.

    Examples
    --------
    >>> as_labels(np.array([7, 7.0, "7", 0.5, True], dtype=object)).tolist()
    ['7', '7', '7', '0.5', 'True']
    >>> as_labels(np.array(["caf\\u00e9", "cafe\\u0301"])).tolist()
    ['café', 'café']
    """
    if values.dtype.kind == "S":
        values = np.array([_decoded(value, argument) for value in values.ravel().tolist()]).reshape(values.shape)
    if holds_floats(values):
        values = np.array([label_text(value) for value in values.ravel().tolist()]).reshape(values.shape)
    if values.dtype.kind == "O":
        words = [_text(value, argument) for value in values.ravel().tolist()]
        check_memory(words, argument)
        values = np.array(words, dtype=str).reshape(values.shape)
    return _composed(values.astype(str))


def text_codes(values: np.ndarray) -> np.ndarray:
    """The position of each value among the distinct ones, sorted as text; for any objects, without an array of their
    texts.

    Examples
    --------
    >>> text_codes(np.array(["b", None, "a", "b"], dtype=object)).tolist()
    [2, 0, 1, 2]
    """
    words = [str(value) for value in values.tolist()]
    places = {word: place for place, word in enumerate(sorted(set(words)))}
    return np.array([places[word] for word in words], int)


def check_memory(words: Sequence[Any], argument: str) -> None:
    """Refuse texts that would not fit in memory as an array, because a few of them are very long."""
    lengths = [len(word) for word in words if isinstance(word, str)]
    longest = max(lengths, default=0)
    room = WIDE * longest * len(words)
    if room > MOST_BYTES and room > WASTE * WIDE * sum(lengths):
        row = next(i for i, word in enumerate(words) if isinstance(word, str) and len(word) == longest)
        raise ShapeError(
            f"{argument} has {len(words)} texts, and that of row {row} has {longest} characters: an array of them "
            f"would take {room / 2**30:.1f} GiB. Shorten long ones"
            f"{in_python(', for example with .str.slice(0, 1000)')}, or leave the column out."
        )


def _text(value: object, argument: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return _decoded(value, argument)
    return label_text(value)


def _decoded(value: bytes, argument: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        how = in_python(", for example with .str.decode('latin-1')")
        raise KindError(
            f"{argument} holds bytes that are not UTF-8 text, first {value[:20]!r}; expected labels: text or numbers. "
            f"Decode them first{how}."
        ) from None


def _composed(words: np.ndarray) -> np.ndarray:
    """Texts in Unicode normal form C, in which an accented letter is one character."""
    if not words.size or not words.dtype.itemsize or np.ascontiguousarray(words).view(np.uint32).max() < 0x300:
        return words
    distinct, places = np.unique(words, return_inverse=True)
    return np.array([unicodedata.normalize("NFC", word) for word in distinct.tolist()])[places].reshape(words.shape)
