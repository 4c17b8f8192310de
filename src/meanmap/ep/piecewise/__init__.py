"""Interpolated functions: values that were computed, polynomials between them, and the errors of these."""
