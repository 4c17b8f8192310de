"""Locates raw files: the user's own folder, the cache, or a public address."""

import os
from importlib.resources import files
from pathlib import Path

from meanmap.core.extras import optional

__all__ = ["DataNotFoundError", "fetched", "own"]


class DataNotFoundError(FileNotFoundError):
    """Data that are neither in the user's folder nor in the cache, and cannot be downloaded."""


def own(name: str) -> Path | None:
    """The file with this name in the folder named by MEANMAP_DATA, if there is one."""
    folder = os.environ.get("MEANMAP_DATA")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.is_file() else None


def fetched(name: str) -> Path:
    """The file with this name in the cache, downloaded first if necessary, with the checksum of the registry."""
    with optional("downloading a data set"):
        import pooch

    checksum, address = _registry()[name]
    cache = Path(os.environ.get("MEANMAP_CACHE") or pooch.os_cache("meanmap"), name).parent
    try:
        return Path(pooch.retrieve(address, None if checksum == "-" else checksum, Path(name).name, cache))
    except OSError as problem:  # pooch passes on errors of requests, which are of this type
        raise DataNotFoundError(
            f"{name} is not in the folder that MEANMAP_DATA names, not in the cache ({cache}), and could not be "
            f"downloaded from {address} ({type(problem).__name__}). With a network, try again; without one, download "
            f"it elsewhere, put it in a folder as {name} and set MEANMAP_DATA to that folder."
        ) from problem


def _registry() -> dict[str, tuple[str, str]]:
    """Checksum and address of each raw file, by its name."""
    lines = files("meanmap.datasets").joinpath("registry.txt").read_text(encoding="utf-8").splitlines()
    entries = (line.split() for line in lines if not line.startswith("#"))
    return {name: (checksum, address) for name, checksum, address in entries}
