"""Results that write a page about themselves, and that notebooks draw."""

from abc import ABC, abstractmethod
from pathlib import Path

from meanmap.plots.facts import Page
from meanmap.plots.page import fragment, made_by, write_page

__all__ = ["Paged"]


class Paged(ABC):
    """A result with a page: `result.page("result.html")`."""

    def page(self, path: str | Path) -> Path:
        """Write one self-contained HTML page about the result, and return its path.

        It works without a network: charts to point at with the mouse or the arrow keys, tables to sort, and all facts
        as JSON inside. A file that exists is only replaced if it is such a page.
        """
        return write_page(path, self._as_page(), made_by())

    @abstractmethod
    def _as_page(self, brief: bool = False) -> Page:
        """What the page shows; brief: what a notebook shows, without long computations."""

    def _repr_html_(self) -> str:
        """The representation in notebooks."""
        return fragment(self._as_page(brief=True))
