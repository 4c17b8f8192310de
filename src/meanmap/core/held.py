"""What an array holds according to its dtype, in words instead of the letters of NumPy's kinds."""

from typing import Protocol, TypeGuard

import numpy as np

__all__ = [
    "counts_as_numbers",
    "holds_floats",
    "holds_labels",
    "holds_numbers",
    "holds_text",
    "holds_times",
    "holds_truth",
    "holds_whole",
    "is_plain",
]


class Typed(Protocol):
    """An array, of NumPy or of JAX."""

    @property
    def dtype(self) -> np.dtype:
        """The type of its entries."""
        ...


def holds_floats(array: Typed) -> bool:
    """Floating-point numbers, in which NaN may mean a missing value."""
    return array.dtype.kind == "f"


def holds_whole(array: Typed) -> bool:
    """Integers, signed or unsigned."""
    return array.dtype.kind in "iu"


def holds_numbers(array: Typed) -> bool:
    """Numbers, but not truth values."""
    return array.dtype.kind in "fiu"


def counts_as_numbers(array: Typed) -> bool:
    """Numbers or truth values, which count as 0 and 1."""
    return array.dtype.kind in "fiub"


def is_plain(data: object) -> TypeGuard[np.ndarray]:
    """Whether data are numbers or truth values in an array of NumPy: nothing else has to be asked about these."""
    return type(data) is np.ndarray and counts_as_numbers(data)


def holds_truth(array: Typed) -> bool:
    """Truth values, but not numbers."""
    return array.dtype.kind == "b"


def holds_text(array: Typed) -> bool:
    """Text, the type of columns of labels after reading."""
    return array.dtype.kind == "U"


def holds_labels(array: Typed) -> bool:
    """Text of any kind, bytes, or Python objects."""
    return array.dtype.kind in "SUOT"


def holds_times(array: Typed) -> bool:
    """Times or durations."""
    return array.dtype.kind in "mM"
