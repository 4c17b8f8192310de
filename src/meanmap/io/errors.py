"""What is wrong with a file."""

from meanmap.core.errors import InputError

__all__ = ["FileFormatError"]


class FileFormatError(InputError):
    """A file that is not one of ours, or is no longer what was written."""
