"""The file with which `meanmap drift` continues an earlier run."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meanmap.cli.options import refused

__all__ = ["Kept"]

FIELDS = ("monitor", "batches", "values", "asked", "reference", "seen")


@dataclass(frozen=True)
class Kept:
    """The monitor after some batches, the results for these, and the settings.

    Files are identified by their content, so that those of an earlier run are not counted twice.
    """

    monitor: Any
    batches: list[dict[str, Any]]
    values: list[dict[str, Any]]
    asked: Mapping[str, Any]
    seen: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path, reference: str, asked: Mapping[str, Any]) -> "Kept | None":
        """Read a state file, None if there is none; settings that differ from those of the first run are refused."""
        import meanmap as mm

        if not path.exists():
            return None
        held = mm.load(path)
        if not isinstance(held, dict) or set(held) != set(FIELDS):
            raise refused(
                f"{path} is not a state file of meanmap drift; expected one written by --state, or a new name"
            )
        if held["reference"] != _digest(reference):
            raise refused(f"{path} was written with a reference other than {reference}; use another --state file")
        for name, value in asked.items():
            if held["asked"][name] != value:
                raise refused(
                    f"{path} was written with {name.replace('_', ' ')} {held['asked'][name]!r}, now it is {value!r}; "
                    "repeat the earlier setting, or use another --state file"
                )
        return cls(held["monitor"], held["batches"], held["values"], asked, tuple(held["seen"]))

    def unseen(self, paths: Sequence[str], notes: list[str]) -> list[str]:
        """The files that no earlier run has read; a note reports the others."""
        left = [path for path in paths if _digest(path) not in self.seen]
        if len(left) < len(paths):
            known = len(paths) - len(left)
            notes.append(f"{known} file{'s were' if known > 1 else ' was'} read by an earlier run and skipped")
        return left

    def write(self, path: Path, reference: str, before: "Kept | None", paths: Sequence[str]) -> None:
        """Write the state file."""
        import meanmap as mm

        seen = [*(before.seen if before else ()), *map(_digest, paths)]
        values = self.monitor, self.batches, self.values, dict(self.asked), _digest(reference), seen
        mm.save(dict(zip(FIELDS, values, strict=True)), path)


def _digest(path: str) -> str:
    """A checksum of the content of a file; for standard input and folders, the name."""
    if path == "-" or Path(path).is_dir():
        return path
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
