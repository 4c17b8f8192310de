"""Gaussian mixtures as messages: products, draws from products, reductions and bandwidths."""

from meanmap.bp.mixtures.gibbs import Gibbs
from meanmap.bp.mixtures.mixtures import Mixtures
from meanmap.bp.mixtures.multiscale import Multiscale
from meanmap.bp.mixtures.products import Draws, ProductSampler, product, sample_product

__all__ = ["Draws", "Gibbs", "Mixtures", "Multiscale", "ProductSampler", "product", "sample_product"]
