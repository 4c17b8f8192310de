"""Progress of long loops: a rich bar on a terminal, silence anywhere else."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["track", "waiting"]

Item = TypeVar("Item")

# A bar that flashes by is noise: nothing is drawn for loops shorter than this.
PATIENCE_SECONDS = 1.0
# The bar on the screen, if any: a loop inside a loop that has one draws none.
_drawn: list[Any] = []


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over `items`, drawing a progress bar on standard error once the loop has run for a second.

    Nothing is printed when standard error is not a terminal, and the bar is removed when the loop ends or is
    interrupted.

    Examples
    --------
    >>> sum(track(range(4), "adding"))
    6
    """
    if not _on_a_terminal():
        yield from items
        return
    if total is None:
        total = len(items) if hasattr(items, "__len__") else None  # pyright: ignore[reportArgumentType]
    bar: Any = None
    start = time.monotonic()
    try:
        for done, item in enumerate(items):
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
            elif not _drawn and time.monotonic() - start > PATIENCE_SECONDS:
                bar = _show(description, total, done)
            yield item
    finally:
        _remove(bar)


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """The same for work that cannot say how far it is, such as one long compiled call.

    Examples
    --------
    >>> with waiting("adding"):
    ...     total = 1 + 2
    """
    if not _on_a_terminal():
        yield
        return
    found: list[Any] = []
    timer = threading.Timer(PATIENCE_SECONDS, lambda: None if _drawn else found.append(_show(description, None, 0)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        _remove(found[0] if found else None)


def _on_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # None: a program without a console


def _show(description: str, total: int | None, done: int) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(description, total=total, completed=done)
    bar.start()
    _drawn.append(bar)
    return bar


def _remove(bar: Any) -> None:
    if bar is not None:
        _drawn.remove(bar)
        bar.stop()
