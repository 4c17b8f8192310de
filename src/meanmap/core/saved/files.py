"""Writes files atomically, so that nobody sees a half-written one, and overwrites only regular files."""

import errno
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from meanmap.core.errors import KindError, ParameterError

__all__ = ["to_write", "write_whole"]

# The suffix of unfinished files, and the age in seconds after which one is considered abandoned.
PART, FORGOTTEN = ".part", 3600.0


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file to a neighbour first, then into place: an interrupt leaves the old file, or none.

    Several threads and processes may write to one path: the last one stays, and readers see one of them, whole. A file
    that exists keeps its mode and owner, and a symbolic link stays a link, to the file that is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), "whole").read_text()
    'whole'
    """
    target = to_write(path)
    _sweep(target.parent)
    neighbour = target.with_name(f".{secrets.token_hex(8)}{PART}")
    try:
        with neighbour.open("xb") as file:  # x: never one that is there already
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        _take_after(neighbour, target)
        neighbour.replace(target)
    except OSError as problem:  # of the file that was asked for, not of its neighbour
        raise type(problem)(problem.errno, problem.strerror, str(path)) from None
    finally:
        neighbour.unlink(missing_ok=True)
    return Path(path)


def _sweep(folder: Path) -> None:
    """Remove files that killed writers left in a folder."""
    with suppress(OSError):
        for path in folder.glob(f".{'[0-9a-f]' * 16}{PART}"):
            with suppress(OSError):
                if path.is_file() and time.time() - path.stat().st_mtime > FORGOTTEN:
                    path.unlink()


def to_write(path: str | Path) -> Path:
    """The file that writing to `path` changes, links followed; refused unless it is a file that may be written, or new.

    Examples
    --------
    >>> to_write("/")
    Traceback (most recent call last):
    ...
    meanmap.core.errors.ParameterError: / is a folder; expected the name of a file.
    """
    if not isinstance(path, str | os.PathLike):
        raise KindError(f"path is {path!r}; expected the name of a file.")
    target = Path(os.path.realpath(path))
    try:
        kind = os.stat(path).st_mode  # of the path: where /dev/stdout leads is no name of a file
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(kind) or Path(os.path.abspath(path)).parts[1:2] in (("dev",), ("proc",)):
        what = "a folder" if stat.S_ISDIR(kind) else "a device, a pipe or a socket"
        raise ParameterError(f"{path} is {what}; expected the name of a file.")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return target


def _take_after(neighbour: Path, target: Path) -> None:
    """Give the new file the owner and mode of the old one, if there is one."""
    with suppress(FileNotFoundError):
        old = target.stat()
        if hasattr(os, "chown"):
            with suppress(PermissionError):  # only the superuser gives files away
                os.chown(neighbour, old.st_uid, old.st_gid)
        neighbour.chmod(stat.S_IMODE(old.st_mode))
