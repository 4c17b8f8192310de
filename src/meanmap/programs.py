"""Compiled programs kept on disk, so that the next process need not compile them again.

JAX compiles a program the first time that a function meets arrays of new shapes, and forgets it when Python ends. What
the library compiles is therefore kept in the user's own cache, from the first call that computes.
"""

import hashlib
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


# Cached programs are executed, so nobody else may write to the folder.
PRIVATE = 0o700


def keep_programs() -> Path | None:
    """Keep compiled programs in the user's cache from now on, and return the folder.

    Nothing changes, and None is returned, where `JAX_ENABLE_COMPILATION_CACHE=false`, or where the folder cannot be
    written or belongs to someone else. A folder that has been chosen already, by JAX's `jax_compilation_cache_dir` or
    `JAX_COMPILATION_CACHE_DIR`, stays as it is. The cache is below `MEANMAP_CACHE` if that is set. When the folder
    exceeds 256 MiB, the oldest programs are removed until half of that is left.
    """
    chosen = _setting("jax_compilation_cache_dir")
    if chosen:
        return Path(str(chosen))
    if str(_setting("jax_enable_compilation_cache")).lower() in ("false", "0", "no", "off", "n", "f"):
        return None
    folder = Path(os.environ.get("MEANMAP_CACHE") or user_cache_path("meanmap")) / "programs" / _machine()
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if not _is_private(folder) or not os.access(folder, os.W_OK | os.X_OK):
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


def _setting(name: str) -> object:
    """A setting of JAX, which need not be loaded for it."""
    if "jax" not in sys.modules:
        return os.environ.get(name.upper())
    import jax

    return jax.config.values[name]


def _machine() -> str:
    """A name for this machine and what its processor can do: programs are for one processor."""
    name = [platform.machine(), platform.processor()]
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name += [line for line in lines if line.startswith(("model name", "flags", "Features"))][:2]
    except OSError:  # other systems tell all they know above
        pass
    return f"{platform.node()}-{hashlib.sha256(repr(name).encode()).hexdigest()[:12]}"


def _is_private(folder: Path) -> bool:
    """Whether a folder belongs to the user and nobody else can write to it; Windows separates caches by itself."""
    if sys.platform == "win32":
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _make_room(folder: Path) -> None:
    """Remove the oldest files if there are too many: half of them, so that this is rarely needed."""
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
