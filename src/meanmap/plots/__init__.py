"""Pictures and pages of results."""

from meanmap.plots.page import Section, render

__all__ = ["Section", "render"]
