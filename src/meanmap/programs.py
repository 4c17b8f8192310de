"""Compiled programs kept on disk, so that the next process need not compile them again."""

import os
import platform
import sys
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["keep_programs"]

# A program takes ten to fifty kilobytes; a process that uses everything compiles about a thousand of them.
MOST_BYTES = 256 * 2**20

# Anything that takes longer to compile than to read. JAX by itself keeps what takes a second.
SHORTEST_SECONDS = 0.01


def keep_programs() -> Path | None:
    """Keep compiled programs in the user's cache from now on: first calls in later processes take a fraction.

    JAX compiles a program the first time that a function meets arrays of new shapes, and forgets it when Python ends.
    After this call it reads and writes programs in a folder of the user's cache (below that of `MEANMAP_CACHE`, if this
    environment variable is set). The command line does it by itself.

    Returns
    -------
    pathlib.Path or None
        The folder. None if it cannot be written, in which case nothing changes. A folder that is already chosen, by
        JAX's `jax_compilation_cache_dir` or the environment variable `JAX_COMPILATION_CACHE_DIR`, stays as it is; with
        `JAX_ENABLE_COMPILATION_CACHE=false` nothing is kept.

    Notes
    -----
    The folder is that of this machine, since programs are for its processor, and may be deleted at any time. When it
    has grown above 256 MiB the programs that were written first are removed, down to half of that.

    Examples
    --------
    >>> import meanmap as mm
    >>> folder = mm.keep_programs()  # the first line of a script
    """
    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if "jax" in sys.modules:
        import jax

        chosen = jax.config.values["jax_compilation_cache_dir"]
    if chosen:
        return Path(chosen)
    folder = Path(os.environ.get("MEANMAP_CACHE") or user_cache_path("meanmap")) / "programs" / platform.node()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            return None
        _make_room(folder)
    except OSError:
        return None
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": SHORTEST_SECONDS,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    if "jax" in sys.modules:
        import jax
        from jax.experimental.compilation_cache.compilation_cache import reset_cache

        for name, value in settings.items():
            jax.config.update(name, value)
        reset_cache()  # once something was compiled, JAX would not look at its settings again
    else:  # it is not loaded for this: it reads them when it is
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
    return folder


def _make_room(folder: Path) -> None:
    """Remove what was written first, if there is too much: half of it, so that this is rarely needed."""
    files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(folder))
    excess = sum(size for _, size, _ in files)
    if excess <= MOST_BYTES:
        return
    excess -= MOST_BYTES // 2
    for _, size, path in files:
        if excess <= 0:
            return
        Path(path).unlink(missing_ok=True)  # another process may have been first
        excess -= size
