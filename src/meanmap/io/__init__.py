"""Saving what was learned, and loading it: arrays as safetensors, everything else as JSON in the header. No pickle."""

from meanmap.io.files import FORMAT, FileFormatError, load, save

__all__ = ["FORMAT", "FileFormatError", "load", "save"]
