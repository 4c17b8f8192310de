"""Conditional operators in features from any number of rows: a plan, states of parts, and the operator."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_rows, parameter
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import sampled
from meanmap.core.types import Data, Numbers, Points, Seed
from meanmap.core.values import Value
from meanmap.embeddings.bases import FeatureBasis
from meanmap.embeddings.operators import Operator
from meanmap.features.base import Features
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.pairs import NAMES, SideBySide, beside_state
from meanmap.features.states.passes import SAMPLE, SampleState, known_seed
from meanmap.features.states.reading import Reading, notes_of
from meanmap.kernels.base import Kernel
from meanmap.linalg.cross_validation import RIDGES, generalised
from meanmap.linalg.ridge import check_precision

__all__ = ["RegressionPlan", "solved"]


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPlan(Value):
    """The plan of a conditional operator in features: columns and roundings, chosen before all rows are read.

    `plan = RegressionPlan.of(x, y, phi, psi, rng=0)` draws some of the rows; `plan.state(x, y)` is the contribution of
    any part, `state.merge(other)` adds two states, and `plan.result(state)` is the operator. `condition` does the same
    with Parquet files and Dask collections, and finds the same coefficients bit for bit.

    Made by `RegressionPlan.of`.

    Attributes
    ----------
    readings : pair of Reading
        The columns of x and of y.
    features : FeatureMap
        The features of both, side by side, and the grid to which they are rounded, 2⁻³² of the range of each, so that
        sums are exact.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> x = np.random.default_rng(0).uniform(-2, 2, 3000)
    >>> y = np.sin(x) + 0.1 * np.random.default_rng(1).normal(size=3000)
    >>> phi, psi = (mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=60, rng=k) for k in (0, 1))
    >>> plan = mm.embeddings.RegressionPlan.of(x, y, phi, psi, rng=0)
    >>> first, second = plan.state(x[:1000], y[:1000]), plan.state(x[1000:], y[1000:])
    >>> operator = plan.result(second.merge(first), ridge=1e-4)
    >>> whole = mm.condition(x, y, kernel_x=phi, kernel_y=psi, ridge=1e-4)
    >>> bool(np.allclose(operator.matrix, whole.matrix, atol=1e-6))
    True
    """

    readings: tuple[Reading, Reading]
    features: FeatureMap
    seed: int
    missing = "raise"

    @classmethod
    @own_words
    def of(cls, x: Data, y: Data, features_x: Features, features_y: Features, *, rng: Seed = None) -> "RegressionPlan":
        """From the variables themselves, or from some of their rows.

        Parameters
        ----------
        x, y : points, files or collections
            As for `condition`. From larger data 8192 rows are drawn, by row number only.
        features_x, features_y : Features
            The features of each.
        rng : None, int, numpy.random.Generator or JAX key
            Draws these rows.
        """
        for features, name in ((features_x, "features_x"), (features_y, "features_y")):
            if not isinstance(features, Features):
                raise KindError(
                    f"{name} is {features!r}; expected features, such as those of mm.features.Fourier.draw."
                )
        random = Rng.of(rng)
        seed = known_seed(random)
        sample = sampled([x, y], random.generator, NAMES, SAMPLE)
        (first, (ours,)), (second, (theirs,)) = (
            Reading.of([part], [name], "raise", None, 2) for part, name in zip(sample, NAMES, strict=True)
        )
        members = features_x, features_y
        with Door() as door:
            read = zip(members, (ours, theirs), NAMES, strict=True)
            points = tuple(member.read(part, name, door) for member, part, name in read)
            both = SideBySide(features_x.kernel, members)
            # A separate unit for each feature, because some have a small share of the kernel.
            grid = FeatureMap.of(both, points, np.float64, [1] * both.size).grid
            fine = InTwoParts(both.kernel, both, grid.origin, grid.unit)
            features = FeatureMap.of(fine, points, np.float64, [1] * fine.size)
        return cls((first, second), features, seed)

    @property
    def members(self) -> tuple[Features, Features]:
        """The features of x and of y."""
        return self.features.features.features.members  # pyright: ignore[reportAttributeAccessIssue]

    @own_words
    def state(self, x: Data, y: Data = None) -> SampleState:
        """The contribution of some rows.

        Parameters
        ----------
        x, y : points, files or iterators of pieces
            The same number of rows of each; or only x, an iterator of pieces (x, y).
        """
        return beside_state(self, (x, y))

    def result(self, state: SampleState, ridge: Numbers | None = None) -> Operator:
        """The operator, from the state of all rows, with a ridge as for `condition`."""
        if ridge is not None:
            parameter(ridge, "ridge", positive=False, axes=0, at_least=0.0)
        check_rows(state.n, "x", 2)
        bases = [
            FeatureBasis(member, schema=reading.schema)
            for member, reading in zip(self.members, self.readings, strict=True)
        ]
        split, size = bases[0].size, sum(basis.size for basis in bases)
        parts = self.features.moments(state.sums).second.reshape(2, size, 2, size)
        second = parts.sum(axis=(0, 2))
        energy = float(np.trace(second[split:, split:]))
        matrix, chosen = solved(second[:split, :split], second[:split, split:], energy, state.n, ridge)
        return Operator(bases[1], bases[0], matrix, chosen=chosen, conditional=True, notes=notes_of(self.readings))


class InTwoParts(Features):
    """Features rounded to a coarse grid, followed by their remainders: together accurate to 2⁻³² of their range.

    A regression may divide by the small residuals of nearly collinear features, where an error of 2⁻¹⁶ would matter.
    """

    kernel: Kernel
    features: Features
    origin: Any
    unit: Any

    def transform(self, x: Points) -> jax.Array:
        """Both parts, (n, 2 r)."""
        phi = self.features.transform(x)
        held = self.origin + self.unit * jnp.rint((phi - self.origin) / self.unit)
        return jnp.concatenate([held, phi - held], axis=1)

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points fit the features."""
        self.features.check(points, argument)

    @property
    def size(self) -> int:
        """2 r, both parts of each feature."""
        return 2 * self.features.size


def solved(
    covariance: np.ndarray, cross: np.ndarray, energy: float, n: int, ridge: Numbers | None
) -> tuple[np.ndarray, tuple[tuple[str, float], ...]]:
    """C_YX (C_XX + λ I)⁻¹, (s, r), and the ridge if it was chosen, from moments over n pairs; energy is E‖ψ(y)‖²."""
    values, vectors = np.linalg.eigh(covariance)
    rotated = vectors.T @ cross
    chosen: tuple[tuple[str, float], ...] = ()
    if ridge is None:
        ridge = _generalised_choice(values, rotated, energy, n)
        chosen = (("ridge", ridge),)
    # Without a ridge the smallest eigenvalue takes its place.
    check_precision(values.sum(), ridge + max(values[0], 0.0), np.dtype(float), "the features' covariance")
    return (vectors @ (rotated / (np.maximum(values, 0) + ridge)[:, None])).T, chosen


def _generalised_choice(values: np.ndarray, rotated: np.ndarray, energy: float, n: int) -> float:
    """λ with the smallest generalised cross-validation error, from second moments alone (Golub, Heath & Wahba 1979).

    With s the eigenvalues of C_XX and c_k the rows of Uᵀ C_XY, the part of E‖y‖² along the k-th is ‖c_k‖² / s_k.
    """
    strength = np.sum(rotated**2, axis=1)
    seen = values > np.finfo(float).eps * values.max()
    along = np.divide(strength, values, out=np.zeros_like(values), where=seen)
    values = np.maximum(values, 0)
    ridges = RIDGES * values.sum()
    return float(ridges[np.argmin(np.maximum(generalised(ridges, values, along, energy, 0, n), 0))])
