"""Sums of multiples of RBF kernels as arrays: one weight and one row of lengthscales for each term."""

from typing import Any, TypeGuard

import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError
from meanmap.core.types import KernelLike
from meanmap.kernels.base import Kernel, Scaled, Sum
from meanmap.kernels.stationary import RBF, Matern

__all__ = ["check_closed_form", "has_closed_form", "rbf_members", "rbf_terms"]


def _is_rbf_sum(kernel: KernelLike) -> bool:
    """Whether `kernel` is RBF, a multiple of it, or a sum of these."""
    if isinstance(kernel, Sum):
        return all(map(_is_rbf_sum, kernel.members))
    return isinstance(kernel, RBF) or (isinstance(kernel, Scaled) and _is_rbf_sum(kernel.kernel))


def has_closed_form(kernel: KernelLike) -> TypeGuard[Kernel]:
    """Whether integrals of the kernel and its square have a closed form: RBF, a sum of these, or Matern."""
    return isinstance(kernel, Matern) or _is_rbf_sum(kernel)


def check_closed_form(kernel: Kernel, width: object) -> None:
    """Refuse a kernel without closed-form integrals, or without them under a base measure with a width."""
    if not has_closed_form(kernel):
        raise KindError(f"kernel is {kernel!r}; expected RBF, a sum of RBF, or Matern: these have a closed form.")
    if width is not None and isinstance(kernel, Matern):
        raise KindError("a base measure with a width needs RBF: pass width=None for Matern.")


def rbf_members(kernel: Kernel) -> list[tuple[Any, RBF | Matern]]:
    """The terms wⱼ kⱼ of k = Σ wⱼ kⱼ, in the order in which they are written; a Matérn kernel is one."""
    if isinstance(kernel, Sum):
        return [term for member in kernel.members for term in rbf_members(member)]
    if isinstance(kernel, Scaled):
        return [(kernel.scale * weight, member) for weight, member in rbf_members(kernel.kernel)]
    if isinstance(kernel, RBF | Matern):
        return [(1.0, kernel)]
    raise KindError(f"kernel is {kernel!r}; expected RBF, or a sum of RBF kernels.")


def rbf_terms(kernel: Kernel, columns: int) -> tuple[jax.Array, jax.Array]:
    """Weights (J,) and lengthscales (J, d) of k = Σ_j w_j exp(−½ Σ_d (x_d − y_d)²/ℓ_jd²), or of one Matérn kernel."""
    members = rbf_members(kernel)
    weights = jnp.stack([jnp.asarray(weight) for weight, _ in members])
    return weights, jnp.stack([jnp.broadcast_to(jnp.asarray(rbf.lengthscale), (columns,)) for _, rbf in members])
