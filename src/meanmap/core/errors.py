"""Named errors. Each message says what came, what was expected and what to type instead."""

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


class InputError(ValueError):
    """The input cannot be used; the base of all value errors about inputs."""


class ShapeError(InputError):
    """An array has the wrong number of axes, rows or columns."""


class EmptyError(InputError):
    """A sample has no points, or fewer than the method needs."""


class NonFiniteError(InputError):
    """Data hold NaN, infinity or missing values."""

    # Whether a function with `missing=` could leave out the rows.
    droppable = False


class ColumnError(InputError):
    """A column of a table is missing, duplicated, constant or of a kind that the method cannot use."""


class ParameterError(InputError):
    """A setting is outside its range, such as a negative lengthscale."""


class PrecisionError(InputError):
    """The floating-point type is not precise enough for the requested solve."""


class FileFormatError(InputError):
    """A file that this library did not write, or that was changed afterwards."""


class KindError(TypeError):
    """Data or a setting is of a type that cannot be read, such as complex numbers or a file name."""


class MissingPackageError(ImportError):
    """A package of one of the extras, or of another library, is needed and not installed."""


class ForkError(RuntimeError):
    """The process was forked from one that had already computed: JAX would wait forever for its threads."""
