"""Gaussian mixtures as messages: products, draws from products, reductions and bandwidths."""

from meanmap_papers.rivals.mixtures.gibbs import Gibbs
from meanmap_papers.rivals.mixtures.mixtures import Mixtures
from meanmap_papers.rivals.mixtures.multiscale import Multiscale
from meanmap_papers.rivals.mixtures.products import Draws, ProductSampler, product, sample_product

__all__ = ["Draws", "Gibbs", "Mixtures", "Multiscale", "ProductSampler", "product", "sample_product"]
