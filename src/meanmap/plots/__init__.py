"""Pictures and pages of results."""

from meanmap.plots.page import Section, render, write_page

__all__ = ["Section", "render", "write_page"]
