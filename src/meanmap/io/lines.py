"""The lines of text files; files that only look like tables of text are refused, with what to do."""

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from meanmap.core.errors import InputError
from meanmap.core.language import in_python

__all__ = ["check_no_json", "lines_of"]

# A file that begins like this is not text, whatever its name.
FOREIGN = {
    b"\x1f\x8b": "is compressed with gzip. Unpack it first",
    b"PK\x03\x04": "is an archive, as .xlsx and .npz files are. Save a sheet as CSV, or call arrays .npz",
    b"\xd0\xcf\x11\xe0": "looks like an Excel sheet. Save it as CSV",
    b"PAR1": "looks like Parquet. Call it .parquet",
    b"\x93NUM": "looks like an array of NumPy. Call it .npy",
    b"\xff\xfe": "is not UTF-8 text; it looks like UTF-16. Save it as UTF-8",
    b"\xfe\xff": "is not UTF-8 text; it looks like UTF-16. Save it as UTF-8",
}
# How the first line of JSON begins: no name of a column does.
JSON = re.compile(r"""\s*(\{\s*("|\}|$)|\[\s*([\[{\]]|$))""")


def lines_of(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text without its byte order mark."""
    with io.BytesIO(sys.stdin.buffer.read()) if str(path) == "-" else Path(path).open("rb") as file:
        start = file.read(4)
        for begin, what in FOREIGN.items():
            if start.startswith(begin):
                raise InputError(f"{path} {what}.")
        if b"\0" in start:
            raise InputError(f"{path} is not UTF-8 text; it looks like UTF-16. Save it as UTF-8.")
        file.seek(0)
        try:
            with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
                for number, line in enumerate(text, 1):
                    # NumPy drops them at the end of a text: "2\0" would be a 2.
                    if "\0" in line:
                        raise InputError(
                            f"{path} has a NUL character in line {number}, as in files that were not written "
                            "completely. Write it again, or remove that line."
                        )
                    yield line
        except UnicodeDecodeError as problem:
            raise InputError(
                f"{path} is not UTF-8 text ({problem.reason} at byte {problem.start}). Save it as UTF-8: "
                f"iconv -f WINDOWS-1252 -t UTF-8 {path} > utf-8-{Path(path).name}, if it was written on Windows."
            ) from None


def check_no_json(first: str, path: str | Path) -> None:
    """Refuse a text that begins as JSON does."""
    if JSON.match(first):
        advice = in_python("read it with pandas.read_json and pass the table", "save the table as CSV")
        raise InputError(f"{path} looks like JSON; expected a header and rows: {advice}.")
