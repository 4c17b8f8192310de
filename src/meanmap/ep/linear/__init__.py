"""Linear predictors as one unknown: a joint Gaussian of all effects, and likelihoods of η = A θ row by row."""

from meanmap.ep.linear.by_formula import fit

__all__ = ["fit"]
