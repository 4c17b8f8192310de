"""Graphs: combinatorics only. Nodes and edges, rooted trees, arrows, the order in which messages are sent, files."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
