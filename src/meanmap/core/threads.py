"""One BLAS thread where products are small."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's linear algebra run on one thread.

    Threads that wait for each other's share of a small product spin. Where they outnumber the processors that they may
    use (in containers with a share of a machine, beside other programs) that was measured to cost ten times what the
    product does, and on idle machines products of a few hundred rows gain nothing from a second thread.

    Examples
    --------
    >>> with one_blas_thread():
    ...     inverse = np.linalg.inv(np.eye(3))
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Finding the libraries takes milliseconds, so that it is done once, when both are loaded."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
