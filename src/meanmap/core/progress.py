"""Progress of long loops: a rich bar on a terminal, silence anywhere else."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["track"]

Item = TypeVar("Item")

# A bar that flashes by is noise: nothing is drawn for loops shorter than this.
PATIENCE_SECONDS = 1.0


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over `items`, drawing a progress bar on standard error once the loop has run for a second.

    Nothing is printed when standard error is not a terminal, and the bar is removed when the loop ends or is
    interrupted.

    Examples
    --------
    >>> sum(track(range(4), "adding"))
    6
    """
    if sys.stderr is None or not sys.stderr.isatty():  # None: a program without a console
        yield from items
        return
    if total is None:
        total = len(items) if hasattr(items, "__len__") else None  # pyright: ignore[reportArgumentType]
    bar = task = None
    start = time.monotonic()
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() - start > PATIENCE_SECONDS:
                bar = _bar()
                bar.start()
                task = bar.add_task(description, total=total, completed=done)
            elif bar is not None and task is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()


def _bar():
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True)
