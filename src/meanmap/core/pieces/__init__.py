"""Data that need not fit in memory: cut into pieces, read from files, or held by Dask's workers."""
