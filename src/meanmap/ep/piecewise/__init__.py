"""Functions as far as they are known: values that were paid for, polynomials between, and errors of these."""
