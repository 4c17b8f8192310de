"""Benchmarks: the library next to what a user would otherwise pick, in the same run."""
