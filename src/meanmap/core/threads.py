"""A single BLAS thread for small products."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["blas_threads_for", "one_blas_thread"]

# Products and factorisations of this many operations gain more from other threads than these cost while they wait.
_LARGE = 2e9


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run NumPy's and SciPy's linear algebra on one thread, except where `blas_threads_for` allows more.

    Threads that wait for each other's share of a small product spin. Where they outnumber the processors that they may
    use (in containers with a share of a machine, beside other programs) that was measured to cost ten times what the
    product does, and on idle machines products of a few hundred rows gain nothing from a second thread.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     inverse = np.linalg.inv(np.eye(3))
    """
    _limit.open()
    try:
        yield
    finally:
        _limit.close()


@contextmanager
def blas_threads_for(operations: float) -> Iterator[None]:
    """As many threads as before `one_blas_thread` for one large product or factorisation."""
    lifted = operations >= _LARGE and _limit.lift()
    try:
        yield
    finally:
        if lifted:
            _limit.lower()


class _Limit:
    """The number of threads is global to the process: the first scope sets it to one, the last restores it."""

    def __init__(self) -> None:
        self.lock, self.users, self.lifted, self.limiter = Lock(), 0, 0, None

    def open(self) -> None:
        with self.lock:
            self.users += 1
            self._settle()

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            self._settle()

    def lift(self) -> bool:
        with self.lock:
            if not self.users:
                return False
            self.lifted += 1
            self._settle()
            return True

    def lower(self) -> None:
        with self.lock:
            self.lifted -= 1
            self._settle()

    def _settle(self) -> None:
        wanted = self.users > 0 and not self.lifted
        if wanted and self.limiter is None:
            self.limiter = _controller().limit(limits=1, user_api="blas")
        elif not wanted and self.limiter is not None:
            self.limiter.restore_original_limits()
            self.limiter = None


_limit = _Limit()


def _controller() -> Any:
    """Of the libraries that are loaded: SciPy has a BLAS of its own, which a first test does not need."""
    return _found("scipy.linalg" in sys.modules)


@cache
def _found(both: bool) -> Any:
    """Finding the libraries takes milliseconds, so it is done once for NumPy alone, and once for `both`."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
