"""Files: what was learned, saved and loaded (safetensors with JSON in the header, no pickle), and tables of users."""

from meanmap.io.files import FORMAT, FileFormatError, load, save
from meanmap.io.tables import read_table

__all__ = ["FORMAT", "FileFormatError", "load", "read_table", "save"]
