"""Gaussian mixtures as messages: products, draws from products, reductions and bandwidths."""

from meanmap.bp.sampled.mixtures.gibbs import Gibbs
from meanmap.bp.sampled.mixtures.mixtures import Mixtures
from meanmap.bp.sampled.mixtures.multiscale import Multiscale
from meanmap.bp.sampled.mixtures.products import Draws, ProductSampler, product, sample_product

__all__ = ["Draws", "Gibbs", "Mixtures", "Multiscale", "ProductSampler", "product", "sample_product"]
