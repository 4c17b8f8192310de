"""The command line, `meanmap`, which comes with the extra `cli`."""

import io
import os
import sys
import warnings

from meanmap.core.errors import MissingPackageError
from meanmap.core.extras import optional
from meanmap.programs import keep_programs

__all__ = ["main"]


def main() -> None:
    """Entry point of the `meanmap` command."""
    try:
        with optional("the meanmap command"):
            from meanmap.cli.commands import app
    except MissingPackageError as error:
        print(f"meanmap: {error}", file=sys.stderr)
        sys.exit(2)
    keep_programs()  # each command is a process of its own
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")  # then it is compiled
    os.environ["MPLBACKEND"] = "agg"  # pictures are only written to files, so no window is needed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # do not fail in terminals that cannot show arrows
    app()
