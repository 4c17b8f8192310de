"""Probability rules on embeddings: the sum, chain and Bayes rules with an embedded prior.

Song, Fukumizu & Gretton (2013), "Kernel Embeddings of Conditional Distributions", section 4.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import check_same_columns
from meanmap.core.types import Data
from meanmap.embeddings.bases import PointBasis
from meanmap.embeddings.conditional import condition
from meanmap.embeddings.element import Embedding, check_same_space
from meanmap.embeddings.operators import Operator
from meanmap.embeddings.points import PointEmbedding
from meanmap.features.base import Features
from meanmap.kernels.base import Kernel
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge

__all__ = ["bayes_rule", "chain_rule", "sum_rule"]


def sum_rule(conditional: Operator, prior: Embedding) -> Any:
    """μ_Y = U_{Y|X} μ_X: the embedding of ∫ p(y | x) π(x) dx, the prior predictive.

    Parameters
    ----------
    conditional : Operator
        `condition(x, y)`.
    prior : Embedding
        The embedding of π, in the kernel of x.

    Examples
    --------
    >>> import numpy as np, meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=400)
    >>> op = mm.condition(x, 2 * x, kernel_x=mm.kernels.RBF(1.0))
    >>> prior = mm.embed(rng.normal(0.5, 0.5, size=400), mm.kernels.RBF(1.0))
    >>> bool(abs(sum_rule(op, prior).mean() - 1.0) < 0.1)
    True
    """
    return conditional.apply(prior)


def chain_rule(conditional: Operator, prior: Embedding) -> Operator:
    """C_YX = U_{Y|X} C_XX^π: the joint embedding of p(y | x) π(x), an operator from the RKHS of x to that of y.

    C_XX^π = Σⱼ γⱼ φ(x̃ⱼ) ⊗ φ(x̃ⱼ) for a prior Σⱼ γⱼ k(x̃ⱼ, ·).

    Examples
    --------
    >>> import meanmap as mm
    >>> k = mm.kernels.RBF(1.0)
    >>> op = mm.condition([0.0, 1.0, 2.0], [0.0, 2.0, 4.0], kernel_x=k, kernel_y=k, ridge=1e-6)
    >>> chain_rule(op, mm.embed([0.0, 2.0], k))
    Operator(2 points -> 3 points)
    """
    points = _points(prior, "prior")
    conditional.input.check_space(prior.space, "the chain rule")
    check_same_columns(conditional.input.schema, prior.schema, "the chain rule")
    basis = PointBasis(points.kernel, points.points, points.flat, schema=points.schema)
    with Door(prior, conditional) as door:
        weights = jnp.asarray(points.weights) if door.follows else np.asarray(points.weights)
        diagonal = (jnp if door.follows else np).diag(weights)
    return conditional @ Operator(basis, basis, diagonal)


@own_words
def bayes_rule(
    x: Data,
    y: Data,
    prior: Embedding,
    *,
    kernel_x: Kernel | str | None = None,
    kernel_y: Kernel | None = None,
    ridge: float | None = None,
) -> Operator:
    """The kernel Bayes rule: from x to the embedding of the posterior p(x | y) π(y) / ∫ p(x | y) π(y) dy.

    Only the likelihood p(x | y) is learned from the pairs: their y need not be draws from π.

    Parameters
    ----------
    x, y : points
        n pairs, at most 6000.
    prior : Embedding
        The embedding of π on points, in `kernel_y`.
    kernel_x, kernel_y : Kernel, optional
        As in `condition`; `kernel_y` defaults to the prior's kernel.
    ridge : float, optional
        λ of both steps; by default each is chosen by leave-one-out.

    Notes
    -----
    Fukumizu, Song & Gretton (2013) transfer the prior to the sample by the sum rule, which gives each pair a weight w,
    and condition on x under those weights. Some w are negative, and their rule squares the operator to make it
    invertible. Here, as in Xu, Chen & Doucet (2022), the weights are importance weights of a ridge regression, and
    negative ones are set to zero: β(x) = √w (√w K √w + n λ I)⁻¹ √w k(X, x), whose ridge can be chosen from the data.

    Examples
    --------
    >>> import numpy as np, meanmap as mm
    >>> rng = np.random.default_rng(1)
    >>> y = rng.uniform(-3, 3, size=400)                       # design points, not the prior
    >>> x = y + 0.5 * rng.normal(size=400)
    >>> k = mm.kernels.RBF(0.7)
    >>> prior = mm.embed(rng.normal(0, 0.5, size=400), k)
    >>> op = bayes_rule(x, y, prior, kernel_x=k, kernel_y=k)
    >>> bool(abs(op([1.0])[0].mean() - 0.5) < 0.15)            # equal variances: halfway between 0 and 1
    True
    """
    points = _points(prior, "prior")
    kernel_y = points.kernel if kernel_y is None else kernel_y
    if isinstance(kernel_x, Features):
        raise KindError("kernel_x is features; the Bayes rule needs points: pass a kernel.")
    check_same_space(kernel_y, prior.space, "the Bayes rule")
    with Door(x, y, prior, kernel_x, kernel_y) as door:
        library = jnp if door.follows else np
        carry = condition(y, x, kernel_x=kernel_y, kernel_y=kernel_x, ridge=ridge)
        source, observed = carry.input, carry.output
        if source.orthonormal or observed.orthonormal:
            raise InputError(f"x has {observed.size} points; the Bayes rule is made on at most 6000 pairs: pass fewer.")
        # Importance weights with mean one, so that a flat prior gives the same as `condition`.
        weights = library.maximum(carry.apply(points).weights, 0)
        if is_concrete(weights) and not np.asarray(weights).any():
            raise InputError("the prior gives no weight to any pair: pass pairs whose y cover the prior's support.")
        root = library.sqrt(weights / library.mean(weights))
        outer = root[:, None] * root
        gram = outer * observed.gram(door)
        chosen: tuple[tuple[str, float], ...] = ()
        if ridge is None:
            ridge = float(choose_ridge(gram, target_gram=outer * source.gram(door)).best)
            chosen = (("ridge", ridge),)
        matrix = root[:, None] * Ridge.factor(gram, ridge=ridge).solve(library.diag(root))
        return door.leave(Operator(source, observed, matrix, chosen=chosen))


def _points(element: Embedding, argument: str) -> PointEmbedding:
    if not isinstance(element, PointEmbedding) or element.batch:
        raise KindError(f"{argument} must be one embedding on points, as mm.embed(sample, kernel) makes.")
    return element
