"""Probability distributions as immutable batches: messages of expectation propagation, elements with exact embeddings.

Exponential families hold natural parameters, so a product is a sum and a ratio a difference, proper or not. Every
distribution has a characteristic function, which is its mean embedding in Fourier form.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
