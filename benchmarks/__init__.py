"""Benchmarks: the library beside its usual alternatives, in the same run."""
