"""The engine: from a graph, operators and own factors to messages, beliefs and a report. It does not see data."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
