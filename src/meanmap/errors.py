"""The errors that meanmap raises, to catch them: `except meanmap.errors.ColumnError`.

All of those about what was passed are a `ValueError` (`InputError` and its kinds) or a `TypeError` (`KindError`).
"""

from meanmap.core.errors import (
    ColumnError,
    EmptyError,
    FileFormatError,
    ForkError,
    InputError,
    KindError,
    MissingPackageError,
    NonFiniteError,
    ParameterError,
    PrecisionError,
    ShapeError,
)

__all__ = [
    "ColumnError",
    "EmptyError",
    "FileFormatError",
    "ForkError",
    "InputError",
    "KindError",
    "MissingPackageError",
    "NonFiniteError",
    "ParameterError",
    "PrecisionError",
    "ShapeError",
]
