"""Interpolated functions: computed values, the polynomials between them, and error estimates."""
