"""One file for one value: written whole or not at all, read without running anything."""
