"""What became of classes that files of earlier versions name."""

from types import MappingProxyType

__all__ = ["MOVED"]

MOVED = MappingProxyType({"meanmap.core.column.Column": "meanmap.core.tables.column.Column"})
