"""Data that need not fit in memory: read in pieces from files, or held by Dask's workers."""
