"""One file for one value: safetensors with the value's description in the header."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.errors import FileFormatError
from meanmap.core.saved.decode import Decoder
from meanmap.core.saved.encode import Encoder
from meanmap.core.saved.files import write_whole

__all__ = ["FORMAT", "FileFormatError", "load", "save"]

FORMAT = 1


def save(value: object, path: str | Path) -> Path:
    """Save fitted objects: kernels, embeddings, models, operators, results, and lists and dictionaries of them.

    Parameters
    ----------
    value : object of meanmap, array, number, text, list, tuple or dict of these
        What to save. Functions, such as a custom kernel given as a lambda, cannot be saved.
    path : path
        The file to write; an existing file is replaced atomically.

    Returns
    -------
    path : Path

    Notes
    -----
    The file is a safetensors file: arrays are stored bit for bit, and its header holds a JSON description with a format
    version and a checksum of everything.

    Results, graphs, tables, kernels, embeddings and posteriors equal (`==`) what they were saved from. Fitted models
    and monitors equal only themselves: compare their answers.

    Examples
    --------
    >>> import tempfile
    >>> import meanmap as mm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mm.save(mm.kernels.RBF(0.3) + mm.kernels.Laplace(2.0), folder + "/kernel.meanmap")
    ...     mm.load(path)
    Sum(members=(RBF(lengthscale=0.3), Laplace(lengthscale=2.0)))
    """
    from safetensors.numpy import save as as_bytes

    encoder = Encoder()
    description = json.dumps({"format": FORMAT, "value": encoder.encode(value)}, allow_nan=False)
    header = {"meanmap": description, "sha256": _checksum(description, encoder.arrays)}
    return write_whole(path, as_bytes(encoder.arrays, header))


def load(path: str | Path) -> Any:
    """Load what `meanmap.save` wrote.

    Parameters
    ----------
    path : path
        A file.

    Returns
    -------
    object
        The value, arrays bit for bit.

    Raises
    ------
    FileFormatError
        If the file was not written by `save`, was truncated or altered, or has a newer format.

    Notes
    -----
    Loading never executes code: a file names only classes of this library, whose fields are set and whose methods are
    not called. Memory is bounded by a hundred times the size of the file plus 64 MiB.

    Examples
    --------
    >>> import tempfile
    >>> import meanmap as mm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     element = mm.load(mm.save(mm.embed([1.0, 2.0, 3.0], mm.kernels.RBF(1.0)), folder + "/element.meanmap"))
    >>> float(element([2.0])[0]) == float(mm.embed([1.0, 2.0, 3.0], mm.kernels.RBF(1.0))([2.0])[0])
    True
    """
    path = Path(path)
    content = path.read_bytes()
    try:
        return _read(content)
    except FileFormatError as problem:
        raise FileFormatError(f"{path} cannot be loaded: {problem}.") from None


def _read(content: bytes) -> Any:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    size = int.from_bytes(content[:8], "little")
    try:
        arrays = from_bytes(content)
        header = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        description = header["meanmap"]
        expected = header["sha256"]
        tree = json.loads(description)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError("it was not written by mm.save, or was truncated") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("format"), int):
        raise FileFormatError("it does not state its format")
    if tree["format"] > FORMAT:
        raise FileFormatError(
            f"it has format {tree['format']}, and this meanmap reads up to {FORMAT}: install a newer one"
        )
    if _checksum(description, arrays) != expected:
        raise FileFormatError("its content was altered (the checksum differs)")
    try:
        return Decoder(arrays, len(content)).decode(tree.get("value"))
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as problem:
        raise FileFormatError(f"its description is inconsistent ({type(problem).__name__}: {problem})") from None


def _checksum(description: str, arrays: dict[str, np.ndarray]) -> str:
    whole = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(f"{name} {array.dtype.str} {array.shape}".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()
