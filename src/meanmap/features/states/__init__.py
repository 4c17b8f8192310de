"""Sums of features over rows of any number, wherever they lie: for tests and regressions."""
