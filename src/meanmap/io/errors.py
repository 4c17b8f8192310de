"""What is wrong with a file."""

__all__ = ["FileFormatError"]


class FileFormatError(ValueError):
    """A file that is not one of ours, or is no longer what was written."""
