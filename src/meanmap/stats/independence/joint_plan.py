"""The joint independence test on data of any size: a plan, states of parts, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import ShapeError
from meanmap.core.points import count, rows
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import source_of
from meanmap.core.types import Data, KernelLike, Points, Seed
from meanmap.features.base import Features
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.pairs import SideBySide, beside_state
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import Reading
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import by_position, check_alike, read_points
from meanmap.learning.default import is_default
from meanmap.stats.asked import Found
from meanmap.stats.independence.joint_variables import alone, common_length, listed, varying
from meanmap.stats.independence.variables import constant, one_for_each, single_kernel
from meanmap.stats.limits import limit_null
from meanmap.stats.result import flat
from meanmap.stats.settings import LEAST_POINTS, doubt_about_limit
from meanmap.stats.variables_plan import VariablesPlan, begun

__all__ = ["JointIndependencePlan", "landmarks_of", "whitening"]

# The largest number of kernel values per row, over all variables and their products, and the largest number of
# landmarks.
VALUES, MOST_LANDMARKS = 1024, 256
# Eigenvalues of the landmarks' Gram matrix below this share of the largest are rounding error.
LEAST_SHARE = 1e-6
# Kernel values are rounded to this share of a power of two, so that the products of rounded values are exact.
SHARE = 2.0**-16


class AtLandmarks(Features):
    """Kernel values k(x, landmarks), whose mean is the value of an embedding at a few points."""

    kernel: Kernel
    landmarks: Any

    def transform(self, x: Points) -> jax.Array:
        """Values of the kernel, (n, m)."""
        return self.kernel.gram(x, self.landmarks)

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Points as the kernel reads them; a table of one column is read as this column."""
        return super().read(alone(data, argument) if by_position(self.kernel.domain) else data, argument, door)

    def check(self, points: Points, argument: str) -> None:
        """Refuse points whose columns are not those of the landmarks."""
        check_alike(points, self.landmarks, argument, "the landmarks")

    @property
    def size(self) -> int:
        """m, the number of landmarks."""
        return count(self.landmarks)


class WithProducts(SideBySide):
    """Rounded kernel values of each variable at its part of m landmarks, followed by their products over variables.

    Each product is split into a multiple of a coarse grid and the rest. A variable with few different values, such as a
    count, has few different products. If these were rounded once, their mean would differ from that under independence
    by more than sampling error in many rows.
    """

    units: tuple[Any, ...]

    def transform(self, x: Points) -> jax.Array:
        """(n, (d + 2) m)."""
        values = [
            unit * jnp.rint(member.transform(part) / unit).astype(np.float64)
            for member, part, unit in zip(self.members, x, self.units, strict=True)
        ]
        product, coarse = values[0], self.units[0]
        for other, unit in zip(values[1:], self.units[1:], strict=True):
            product, coarse = product * other, coarse * unit / SHARE
        held = coarse * jnp.rint(product / coarse)
        return jnp.concatenate([*values, held, product - held], axis=1)

    @property
    def size(self) -> int:
        """(d + 2) m."""
        return (len(self.members) + 2) * self.members[0].size


@dataclass(frozen=True, eq=False, repr=False)
class JointIndependencePlan(VariablesPlan):
    """The plan of a joint independence test: variables, kernels and landmarks, chosen before all rows are read.

    Plans take some megabytes, and can be saved and loaded. `plan = mm.stats.plan("joint independence", table, rng=0)`
    draws some of the rows; `plan.state(part)` is the contribution of any part of them, `state.merge(other)` adds two
    states, and `plan.result(state)` is the test. `joint_independence_test` does the same with more than 5000 rows,
    and gives the same p-value bit for bit.

    Made by `plan`.

    Attributes
    ----------
    names : tuple of str
        The names of the variables.
    readings : tuple of Reading
        The columns of each.
    kernels : tuple of Kernel
    features : FeatureMap
        Kernel values at landmarks, and the grid that they are rounded to, so that sums are exact.
    seed : int
    came, kept : int, tuple of int
        The number of variables, and which of them vary; the others are left out.
    missing : str
        How missing values are handled.
    notes : tuple of str
        Notes on the variables.

    Notes
    -----
    With m landmarks dHSIC is projected on their span. It is δᵀ K⁻¹ δ for the landmarks' Gram matrix K and δ_l = E Π_j
    k_j(x_j, l_j) − Π_j E k_j(x_j, l_j) (Kalinke & Szabó 2023). Landmarks are rows whose variables were permuted
    separately. Under independence the covariance of a row's contribution follows from that of each variable, C_j, and
    its mean μ_j alone: Π_j (C_j + μ_j μ_jᵀ) − Π_j μ_j μ_jᵀ − Σ_j C_j Π_i≠j μ_i μ_iᵀ, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(6000, 3))
    >>> table[:, 2] = np.abs(table[:, 2]) * np.sign(table[:, 0] * table[:, 1])
    >>> plan = mm.stats.plan("joint independence", table, rng=0)
    >>> first, second = plan.state(table[:1000]), plan.state(table[1000:])
    >>> plan.result(second.merge(first)).pvalue == mm.joint_independence_test(table, rng=0).pvalue < 0.01
    True
    """

    names: tuple[str, ...]
    readings: tuple[Reading, ...]
    kernels: tuple[Kernel, ...]
    features: FeatureMap
    seed: int
    came: int
    kept: tuple[int, ...]
    missing: str = "raise"
    notes: tuple[str, ...] = ()

    @classmethod
    @own_words
    def of(
        cls,
        variables: object,
        kernel: KernelLike = None,
        *,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "JointIndependencePlan":
        """The plan for several variables, made from all rows or from some of them.

        Parameters
        ----------
        variables : sequence of variables, table, files or collection
            As for `joint_independence_test`. If there are more, 8192 rows are drawn, by row number only.
        kernel, missing, kinds, rng
            As for `joint_independence_test`.
        """
        random = Rng.of(rng)
        names, sources = listed(variables)
        came = len(names)
        common_length(names, sources)
        seed, readings, sample = begun(sources, names, missing, kinds, random)
        sample = [alone(part, name) for part, name in zip(sample, names, strict=True)]
        plain = is_default(kernel)
        kept, told = varying(names, sample) if plain else (list(range(len(names))), ())
        names, sample = [names[k] for k in kept], [sample[k] for k in kept]
        chosen = zip(one_for_each(kernel, len(kept)), sample, names, strict=True)
        kernels = tuple(single_kernel(wanted, part, name, random.generator) for wanted, part, name in chosen)
        with Door() as door:
            sets = zip(kernels, sample, names, strict=True)
            points = tuple(read_points(k, part, name, door) for k, part, name in sets)
            m = min(VALUES // (len(kept) + 1), MOST_LANDMARKS, count(points[0]))
            members = landmarks_of(kernels, points, m, random.generator)
            both = WithProducts(kernels[0], members, tuple(map(_unit, members)))
            features = FeatureMap.of(both, points, groups=[m] * (len(kept) + 2), correlated=True)
        held = tuple(readings[k] for k in kept)
        return cls(tuple(names), held, kernels, features, seed, came, tuple(kept), missing, told)

    @property
    def members(self) -> tuple[AtLandmarks, ...]:
        """The kernel values of each variable."""
        return self.features.features.members  # pyright: ignore[reportAttributeAccessIssue]

    @own_words
    def state(self, variables: Data) -> SampleState:
        """The contribution of some rows to the test.

        Parameters
        ----------
        variables : sequence of variables, table, files or collection
            All variables of the plan, in order; or an iterator of pieces, tuples with a part of each variable that
            varies.
        """
        if source_of(variables).once:
            return beside_state(self, [variables], self.names)
        sources = listed(variables)[1]
        if len(sources) != self.came:
            raise ShapeError(
                f"the plan is for {self.came} variables, but {len(sources)} were given: pass a part of each."
            )
        return beside_state(self, [sources[k] for k in self.kept], self.names)

    def _found(self, state: SampleState, n_draws: int, null: str) -> Found:
        check_rows(state.n, self.names[0], LEAST_POINTS)
        d, m, n = len(self.members), self.members[0].size, state.n
        moments = self.features.moments(state.sums)
        means, joint = moments.mean.reshape(d + 2, m), moments.covariance(lost=0)
        covariances = [joint[k * m : (k + 1) * m, k * m : (k + 1) * m] for k in range(d)]
        for own, name in zip(covariances, self.names, strict=True):
            if own.diagonal().max() <= 1e-14:
                raise constant(name)
        whitened = whitening(self.members)
        value = float(n * np.sum((whitened.T @ (means[d] + means[d + 1] - np.prod(means[:d], axis=0))) ** 2))
        spectrum = np.maximum(np.linalg.eigvalsh(whitened.T @ _influence(means[:d], covariances) @ whitened), 0.0)
        law = limit_null(null, spectrum, n_draws, np.random.default_rng([self.seed, 1]))
        doubts = *doubt_about_limit(law.exact, (n,)), *flat(law, value)
        told = (*self._told(state, "the variables"), *self.notes, *doubts)
        method = f"joint independence test of {d} variables, n dHSIC at {m} landmarks"
        return Found(value, law, self.kernels, method, (n,), told)


def landmarks_of(
    kernels: Sequence[Kernel], points: Sequence[Points], m: int, generator: np.random.Generator
) -> tuple[AtLandmarks, ...]:
    """The landmarks, m rows whose variables are shuffled separately: for each variable its part of them."""
    pairs = zip(kernels, points, strict=True)
    return tuple(AtLandmarks(k, rows(part, generator.permutation(count(part))[:m])) for k, part in pairs)


def whitening(members: Sequence[AtLandmarks], units: Sequence[float] | None = None) -> np.ndarray:
    """W with W Wᵀ the inverse of the landmarks' Gram matrix without its smallest eigenvalues; kernels have `units`."""
    with Door():
        grams = [np.asarray(each.kernel.gram(each.landmarks, each.landmarks)) for each in members]
    gram = np.prod([one / unit for one, unit in zip(grams, units or [1.0] * len(grams), strict=True)], axis=0)
    values, vectors = np.linalg.eigh(gram)
    kept = values > LEAST_SHARE * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def _unit(member: AtLandmarks) -> float:
    """The step of the grid to which the values of a kernel are rounded."""
    most = float(np.abs(member.kernel.gram(member.landmarks, member.landmarks)).max())
    return SHARE * 2.0 ** np.ceil(np.log2(most)) if most > 0 else SHARE


def _influence(means: np.ndarray, covariances: list[np.ndarray]) -> np.ndarray:
    """The covariance of a row's contribution under independence, (m, m), from the covariance of each variable alone."""
    squares = [np.outer(mean, mean) for mean in means]
    total = np.prod([c + square for c, square in zip(covariances, squares, strict=True)], axis=0)
    total -= np.prod(squares, axis=0)
    for k, c in enumerate(covariances):
        total -= c * np.prod([square for i, square in enumerate(squares) if i != k], axis=0)
    return total
