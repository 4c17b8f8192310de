from .by_formula import fit

__all__ = ["fit"]
