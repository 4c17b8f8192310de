"""Pages of results: facts, charts as data, still pictures and interactive ones."""

from meanmap.plots.facts import Axis, Chart, Control, Mark, Page, Panel, Section
from meanmap.plots.page import render
from meanmap.plots.paged import Paged

__all__ = ["Axis", "Chart", "Control", "Mark", "Page", "Paged", "Panel", "Section", "render"]
