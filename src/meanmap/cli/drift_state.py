"""The file that lets `meanmap drift` go on where an earlier run stopped."""

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
    """The monitor after some batches, what was found in these, and what was asked.

    Batches are known by their content, so that files of an earlier run are not counted twice.
    """

    monitor: Any
    batches: list[dict[str, Any]]
    values: list[dict[str, Any]]
    asked: Mapping[str, Any]
    seen: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path, reference: str, asked: Mapping[str, Any]) -> "Kept | None":
        """What a file holds; None where there is no file. Other settings than those of the first run are refused."""
        import meanmap as mm

        if not path.exists():
            return None
        held = mm.load(path)
        if not isinstance(held, dict) or set(held) != set(FIELDS):
            raise refused(f"{path} is no state of meanmap drift; expected a file that --state wrote, or a new name")
        if held["reference"] != _digest(reference):
            raise refused(f"{path} was begun with another reference than {reference}; name another file with --state")
        for name, value in asked.items():
            if held["asked"][name] != value:
                raise refused(
                    f"{path} was begun with {name.replace('_', ' ')} {held['asked'][name]!r}, and now it is {value!r}; "
                    "ask as before, or name another file with --state"
                )
        return cls(held["monitor"], held["batches"], held["values"], asked, tuple(held["seen"]))

    def unseen(self, paths: Sequence[str], notes: list[str]) -> list[str]:
        """The files that no earlier run has seen, with a note on the others."""
        left = [path for path in paths if _digest(path) not in self.seen]
        if len(left) < len(paths):
            known = len(paths) - len(left)
            notes.append(f"{known} file{'s were' if known > 1 else ' was'} seen by an earlier run and not read again")
        return left

    def write(self, path: Path, reference: str, before: "Kept | None", paths: Sequence[str]) -> None:
        """Write all of it."""
        import meanmap as mm

        seen = [*(before.seen if before else ()), *map(_digest, paths)]
        values = self.monitor, self.batches, self.values, dict(self.asked), _digest(reference), seen
        mm.save(dict(zip(FIELDS, values, strict=True)), path)


def _digest(path: str) -> str:
    """What a file holds in short; of standard input and folders their name."""
    if path == "-" or Path(path).is_dir():
        return path
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
