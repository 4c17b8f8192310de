"""Writing files so that no half-written one is ever seen."""

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file to a neighbour first, then into place: an interrupt leaves the old file, or none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), "whole").read_text()
    'whole'
    """
    path = Path(path)
    neighbour = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        neighbour.write_bytes(content.encode() if isinstance(content, str) else content)
        neighbour.replace(path)
    except OSError as problem:  # of the file that was asked for, not of its neighbour
        raise type(problem)(problem.errno, problem.strerror, str(path)) from None
    finally:
        neighbour.unlink(missing_ok=True)
    return path
