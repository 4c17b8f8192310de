"""The measurements of a long experiment so far, in a file, so that a stopped run can be resumed."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Parts"]

Value = TypeVar("Value")


class Parts:
    """Measured parts by name: a line of JSON for each, with its processor seconds.

    Attributes
    ----------
    seconds : float
        Processor seconds of the parts that were read.
    """

    def __init__(self, path: Path):
        self.path, self.seconds = path, 0.0
        self._known: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                name, value, seconds = json.loads(line)
            except ValueError:
                continue  # a kill cut it short
            self._known[name] = value
            self.seconds += seconds

    def measured(self, name: str, measure: Callable[[], Value]) -> Value:
        """The stored value of a name, or the result of `measure`, which is then stored."""
        if name not in self._known:
            start = time.process_time()
            self._known[name] = measure()
            line = json.dumps([name, self._known[name], time.process_time() - start])
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}")  # a partial line left by a kill stays on its own line
        return self._known[name]
