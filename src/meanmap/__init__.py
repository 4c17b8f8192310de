"""meanmap: a probability distribution is an element of a Hilbert space."""

__version__ = "0.1.0"
