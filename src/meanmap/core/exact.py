"""Integers beyond 2^53, which float64 cannot represent: neighbouring ones would become equal."""

import re
from collections.abc import Iterable

import numpy as np

from meanmap.core.door import is_concrete
from meanmap.core.errors import KindError
from meanmap.core.types import Array

__all__ = ["MOST_EXACT", "check_exact", "check_exact_words"]

# From here on float64 skips integers.
MOST_EXACT = 2.0**53
DIGITS = re.compile(r"\s*[-+]?\d{16,}\s*")


def check_exact(values: Array, argument: str, column: object = None) -> None:
    """Refuse integers that lose digits as float64; `column` is their name in `kinds=`.

    Examples
    --------
    >>> check_exact(np.array([2**60, 2**53 - 1]), "x")
    >>> check_exact(np.array([2**60 + 1]), "x")
    Traceback (most recent call last):
    ...
    meanmap.core.errors.KindError: x holds whole numbers beyond 2^53, such as 1152921504606846977, ...
    """
    if getattr(values.dtype, "kind", "?") not in "iu" or values.dtype.itemsize < 8 or not is_concrete(values):
        return
    whole = np.asarray(values)
    if not whole.size or (whole.max() <= MOST_EXACT and whole.min() >= -MOST_EXACT):
        return
    size = np.where(whole < 0, np.uint64(0) - whole.astype(np.uint64), whole.astype(np.uint64))
    # All digits are held if no more than 53 binary ones are left without the zeros at the end.
    last = size & (np.uint64(0) - size)
    lost = size // np.maximum(last, np.uint64(1)) > np.uint64(MOST_EXACT)
    if lost.any():
        raise _beyond(int(whole[lost][0]), int(whole.min()), argument, column)


def check_exact_words(words: Iterable[str], argument: str) -> None:
    """As `check_exact`, of whole numbers that are written as text."""
    whole = [int(word) for word in words if DIGITS.fullmatch(word)]
    for number in whole:
        if int(float(number)) != number:
            raise _beyond(number, min(whole), argument)


def _beyond(example: int, least: int, argument: str, column: object = None) -> KindError:
    labels = f"kinds={{{column!r}: 'label'}}" if column is not None else ".astype(str)"
    return KindError(
        f"{argument} holds whole numbers beyond 2^53, such as {example}, whose last digits are lost in floating "
        f"point. If they are numbers, subtract a constant from all of them, in all samples, such as the smallest one "
        f"here: - {least}. If they are labels, declare it: {labels}."
    )
