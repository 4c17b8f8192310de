"""Progress of long loops: a bar on a terminal if rich is installed, silence anywhere else."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar

__all__ = ["beside", "track", "waiting"]

Item = TypeVar("Item")

# A bar that only flashes is a distraction: none is drawn for shorter work.
PATIENCE_SECONDS = 1.0
# The lines on the screen, and the display that shows them.
_drawn: dict[Any, "_Line"] = {}
_screen: list[Any] = []
_lock = threading.Lock()


def track(
    items: Iterable[Item], description: str, total: int | None = None, size: Callable[[Item], int] | None = None
) -> Iterator[Item]:
    """Iterate over `items`, drawing a progress bar on standard error once the loop has run for a second.

    Nothing is printed when standard error is not a terminal, or rich (extra `cli`) is not installed; the bar is removed
    when the loop ends or is interrupted. A loop inside a loop that has a bar draws none. Items may count for more than
    one: `total` is then the sum of their sizes.

    Examples
    --------
    >>> sum(track(range(4), "adding"))
    6
    """
    if total is None:
        total = len(items) if hasattr(items, "__len__") else None  # pyright: ignore[reportArgumentType]
    if total == 1 or not _can_draw():
        yield from items
        return
    line, done = _Line(description, total), 0
    try:
        for item in items:
            line.advance(done)
            yield item
            done += 1 if size is None else size(item)
    finally:
        line.close()


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """A status line for work whose progress is unknown, such as one compiled call; a loop inside it may show progress.

    Examples
    --------
    >>> with waiting("adding"):
    ...     total = 1 + 2
    """
    if not _can_draw():
        yield
        return
    line = _Line(description, None)
    try:
        yield
    finally:
        line.close()


def beside(words: str) -> None:
    """Show words after the description of the bar that is drawn, until its next step: how slow work inside a step goes.

    Nothing is shown where no bar is.

    Examples
    --------
    >>> beside("60 calls, 1.2 s each")
    """
    with _lock:
        for task, line in list(_drawn.items())[:1]:
            _screen[0].update(task, description=f"{line.description}: {words}")


class _Line:
    """One line of the display, which appears by itself after a second: the first step of a loop may be the long one."""

    def __init__(self, description: str, total: int | None):
        self.description, self.total, self.done = description, total, 0
        self.task: Any = None
        self.timer = threading.Timer(PATIENCE_SECONDS, self._show)
        self.timer.daemon = True
        self.timer.start()

    def advance(self, done: int) -> None:
        self.done = done
        if self.task is not None:
            _screen[0].update(self.task, completed=done, description=self.description)

    def close(self) -> None:
        self.timer.cancel()
        self.timer.join()
        if self.task is None:
            return
        with _lock:
            _screen[0].remove_task(self.task)
            del _drawn[self.task]
            if not _drawn:
                _screen.pop().stop()

    def _show(self) -> None:
        with _lock:
            if _drawn and (self.total is None or any(line.total is not None for line in _drawn.values())):
                return
            if not _screen:
                from rich.console import Console
                from rich.progress import Progress

                # What is printed meanwhile goes to the usual place.
                console = Console(stderr=True)
                _screen.append(Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False))
                _screen[0].start()
            self.task = _screen[0].add_task(self.description, total=self.total, completed=self.done)
            _drawn[self.task] = self


def _can_draw() -> bool:
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None: a program without a console
    return terminal and find_spec("rich") is not None
