"""The file with which `meanmap drift` continues an earlier run."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meanmap.cli.options import refused
from meanmap.core.language import in_few_words

__all__ = ["Kept"]

# A note names this many files.
MOST_NAMED = 3
FIELDS = ("monitor", "batches", "asked", "reference", "files")


@dataclass(frozen=True)
class Kept:
    """The monitor after some batches, the results for these, and the settings.

    Files are identified by their content and their path relative to the state file, so that those of an earlier run are
    not counted twice, and copies of them under another name are recognised.
    """

    monitor: Any
    batches: list[dict[str, Any]]
    asked: Mapping[str, Any]
    files: tuple[tuple[str, str], ...] = ()

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
        return cls(held["monitor"], held["batches"], asked, tuple(map(tuple, held["files"])))

    def unseen(self, path: Path, files: Sequence[str], notes: list[str]) -> tuple[list[str], dict[str, str]]:
        """The files that no earlier run has read, and which of them repeat the content of one that was read.

        Notes report the files that were read before, and those that have changed since.
        """
        read, places = set(self.files), dict(reversed(self.files))
        found = {file: (_digest(file), _place(file, path)) for file in files}
        left = [file for file in files if file == "-" or found[file] not in read]
        if len(left) < len(files):
            known = len(files) - len(left)
            notes.append(f"{known} file{'s were' if known > 1 else ' was'} read by an earlier run and skipped")
        known_places = {place for _, place in self.files}
        changed = [file for file in left if file != "-" and found[file][1] in known_places]
        if changed:
            many, names = len(changed) > 1, in_few_words([Path(file).name for file in changed], MOST_NAMED)
            notes.append(
                f"{names} {'have' if many else 'has'} changed since an earlier run read {'them' if many else 'it'}: "
                f"{'they count as new batches' if many else 'it counts as a new batch'} after all others, and the "
                "earlier rows still count. To count the corrected rows alone, in their place, pass all files with "
                "another --state file"
            )
        return left, {file: places[found[file][0]] for file in left if found[file][0] in places}

    def write(self, path: Path, reference: str, before: "Kept | None", files: Sequence[str]) -> None:
        """Write the state file."""
        import meanmap as mm

        read = [(_digest(file), _place(file, path)) for file in files if file != "-"]
        values = self.monitor, self.batches, dict(self.asked), _digest(reference)
        held = dict(zip(FIELDS, (*values, [*(before.files if before else ()), *read]), strict=True))
        mm.save(held, path)


def _place(file: str, state: Path) -> str:
    """The path of a file relative to the state file."""
    place, folder = Path(file).resolve(), state.resolve().parent
    return Path(os.path.relpath(place, folder)).as_posix() if place.drive == folder.drive else place.as_posix()


def _digest(path: str) -> str:
    """A checksum of the content of a file; for standard input and folders, the name."""
    if path == "-" or Path(path).is_dir():
        return path
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
