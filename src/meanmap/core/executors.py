"""Independent pieces of work, done here or by an executor of the user's own."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any

from meanmap.core.errors import KindError
from meanmap.core.language import a_type

__all__ = ["check_executor", "worked"]


def check_executor(executor: object) -> None:
    """Refuse anything that cannot run tasks."""
    if executor is not None and not isinstance(executor, Executor):
        raise KindError(
            f"executor is {a_type(executor)}; expected a concurrent.futures.Executor, such as "
            "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')), or Dask's client.get_executor()."
        )


def worked(function: Callable[[Any], Any], items: Iterable[Any], executor: Executor | None) -> Iterable[Any]:
    """The values of a function for each item, in order, whatever runs it.

    Examples
    --------
    >>> list(worked(abs, [-1, 2], None))
    [1, 2]
    """
    return map(function, items) if executor is None else executor.map(function, items)
