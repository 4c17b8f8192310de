"""Kernels drawn from a posterior: one kernel with an axis of draws, and diagnostics of the chains."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.extras import optional
from meanmap.core.report import Report
from meanmap.core.settings import whole_number
from meanmap.core.types import Points
from meanmap.kernels.base import ByGram
from meanmap.kernels.stationary import RBF, check_lengthscale

__all__ = ["KernelDraws"]

# A mean over this many draws, spread over all chains, is within a few per mille of that over all of them.
MOST_TERMS = 64
# Above this the chains have not converged to the same distribution (Vehtari et al. 2021), and below this many effective
# draws for each chain R-hat itself is unreliable.
MIXED = 1.01
EFFECTIVE = 100


class KernelDraws(ByGram):
    """Draws of an RBF kernel from its posterior; as a kernel, their mean E k_θ, with the lengthscale integrated out.

    It can be passed wherever a kernel can, and is made by `sample_kernel`. Gram matrices are means over 64 draws.

    Parameters
    ----------
    lengthscale : array (chains, draws) or (chains, draws, d)
        ℓ of each draw.
    noise : array (chains, draws)
        τ² of each draw.
    diverging : array (chains, draws) of bool
        Where the integrator left the level set: each one is a corner that was not explored.
    steps : array (chains, draws)
        Leapfrog steps of each draw.
    seed : int or None
        `rng=draws.seed` repeats the run.

    Examples
    --------
    >>> import numpy as np
    >>> draws = KernelDraws(np.array([[1.0, 2.0]]), np.ones((1, 2)), np.zeros((1, 2), bool), np.ones((1, 2), int), None)
    >>> draws([0.0, 1.0]).round(4).tolist()             # the mean of exp(−1/2) and exp(−1/8)
    [[1.0, 0.7445], [0.7445, 1.0]]
    """

    lengthscale: Any
    noise: Any
    diverging: Any
    steps: Any
    seed: int | None = eqx.field(static=True)

    @property
    def kernel(self) -> RBF:
        """All draws as one kernel with a leading axis, for `jax.vmap`."""
        flat = self.lengthscale.reshape(-1, *self.lengthscale.shape[2:])
        return eqx.tree_at(lambda k: k.lengthscale, RBF(1.0), flat)

    def each(self, number: int = MOST_TERMS) -> list[RBF]:
        """At most this many of the draws, evenly spread over all chains, as kernels."""
        whole_number(number, "number")
        return [RBF(scale) for scale in np.asarray(self._thinned(int(number)))]

    def check(self, points: Points, argument: str) -> None:
        """One lengthscale per column, if they are several."""
        if self.lengthscale.ndim == 3:
            check_lengthscale(self.lengthscale[0, 0], points, argument)

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The mean of the draws' Gram matrices, one after another."""
        scales = jnp.asarray(self._thinned(MOST_TERMS), x.dtype)

        def add(total: jax.Array, scale: jax.Array) -> tuple[jax.Array, None]:
            return total + RBF(scale).gram(x, y), None

        total, _ = jax.lax.scan(add, jnp.zeros((x.shape[0], y.shape[0]), x.dtype), scales)
        return total / len(scales)

    def diagonal(self, x: Points) -> jax.Array:
        """Ones: every draw has k(x, x) = 1."""
        return jnp.ones(x.shape[0], x.dtype)

    @property
    def report(self) -> Report:
        """Whether the chains agree: R-hat, effective sample sizes and divergences of every number that was drawn."""
        found = self.summary()
        worst = max(entry["r_hat"] for entry in found.values())
        least = min(entry["ess"] for entry in found.values())
        divergences = int(np.sum(self.diverging))
        chains, draws = self.noise.shape
        notes = []
        if not worst < MIXED:
            notes.append(f"R-hat is {worst:.3f}: the chains have not converged. Draw more, or look at modes.")
        if least < EFFECTIVE * chains:
            notes.append(f"only {least:.0f} effective draws: draw more.")
        if divergences:
            notes.append(f"{divergences} divergent transitions: parts of the posterior may have been missed.")
        return Report(
            status="chains agree" if not notes else "chains are doubtful",
            converged=not notes,
            steps=int(np.sum(self.steps)),
            residuals=[worst - 1],
            counts={
                "chains": chains,
                "draws": chains * draws,
                "effective draws": int(least),
                "divergences": divergences,
            },
            notes=tuple(notes),
        )

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation, split R-hat and effective sample size of the logarithms of all that was drawn."""
        with optional("checking whether chains agree"):
            from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

        table = {}
        for name, values in self._columns().items():
            logs = np.log(values)
            if np.ptp(logs) == 0:  # the noise, where it was fixed
                continue
            table[name] = {
                "mean": float(values.mean()),
                "std": float(values.std()),
                "r_hat": float(split_gelman_rubin(logs)),
                "ess": float(effective_sample_size(logs)),
            }
        return table

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """The draws as ArviZ takes them: `arviz.from_dict(draws.groups())`; before version 1, `from_dict(**groups)`.

        Then `arviz.summary`, `arviz.plot_trace` and all else that it has.
        """
        return {
            "posterior": {"lengthscale": np.asarray(self.lengthscale), "noise": np.asarray(self.noise)},
            "sample_stats": {"diverging": np.asarray(self.diverging), "n_steps": np.asarray(self.steps)},
        }

    def _columns(self) -> dict[str, np.ndarray]:
        scales = np.asarray(self.lengthscale)
        named = (
            {"lengthscale": scales}
            if scales.ndim == 2
            else {f"lengthscale[{j}]": scales[..., j] for j in range(scales.shape[2])}
        )
        return {**named, "noise": np.asarray(self.noise)}

    def _thinned(self, number: int) -> Any:
        flat = self.kernel.lengthscale
        return flat[np.linspace(0, len(flat) - 1, min(number, len(flat))).round().astype(int)]
