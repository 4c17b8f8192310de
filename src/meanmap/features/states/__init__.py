"""Sums of features over any number of rows, wherever they are stored, for tests and regressions."""
