"""Functions of z left in the residuals: are residuals of neighbours in z correlated, in x and in y at once?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.stats.conditional.regression import Fit

__all__ = ["MOST_COLUMNS", "NOTHING", "REACHES", "Agreement", "Leftover", "Neighbours", "bent_columns", "noise_of"]

# Row numbers, and row numbers of their neighbours.
Pairs = tuple[np.ndarray, np.ndarray]

# Neighbours are rows at most this many places apart along a column, and this many nearest rows in all columns together.
REACHES, NEAREST = (1, 4), 4
# The least correlation of functions between neighbours that is divided by; below it neighbours reveal almost nothing.
LEAST_AGREEMENT = 0.1
# With more columns of z only the nearest rows in all columns are used.
MOST_COLUMNS = 12


def bent_columns(z: np.ndarray) -> list[int]:
    """Columns with more than two values."""
    return [j for j in range(z.shape[1]) if len(np.unique(z[:, j])) > 2]


def _lost(fit: Fit) -> np.ndarray:
    """1 − (1 − shrinkage)², the share of the noise variance that a regression removes along each of its functions."""
    return 1 - (1 - fit.shrinkage) ** 2


def noise_of(residuals: np.ndarray, fit: Fit) -> float:
    """The estimated variance of the noise from these residuals, summed over columns."""
    taken = np.sum(fit.linear.vectors**2) + np.sum(fit.basis.vectors**2, axis=0) @ _lost(fit)
    return float(np.sum(residuals**2)) / max(len(residuals) - float(taken), 1.0)


@dataclass(frozen=True)
class Neighbours:
    """Pairs of rows that are neighbours in z: along each of its columns, and in all of them.

    Attributes
    ----------
    pairs : tuple of (array, array)
        Rows and their neighbours, one entry for each kind of neighbourhood.
    whole : tuple of bool
        Whether these are neighbours in all columns of z.
    known : dict
        Sums over the pairs of one entry of products of functions of z, kept because many regressions have the same
        functions.
    """

    pairs: tuple[Pairs, ...]
    whole: tuple[bool, ...]
    known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, z: np.ndarray, units: np.ndarray | None = None) -> "Neighbours":
        """Neighbours in columns of z with more than two values; rows of one unit may be dependent and form no pair."""
        bent = bent_columns(z)
        columns = cls.along(z, bent if len(bent) <= MOST_COLUMNS else ())
        found, whole = list(columns.pairs), list(columns.whole)
        if z.shape[1] > 1 and bent and len(z) > NEAREST:
            from scipy.spatial import KDTree

            near = KDTree(z).query(z, NEAREST + 1)[1]
            rows = np.repeat(np.arange(len(z)), NEAREST + 1)
            one, other = np.minimum(rows, near.ravel()), np.maximum(rows, near.ravel())
            kept = np.unique(np.stack([one, other])[:, one < other], axis=1)
            found.append((kept[0], kept[1]))
            whole.append(True)
        if units is not None:
            apart = [units[one] != units[other] for one, other in found]
            whole = [every for every, kept in zip(whole, apart, strict=True) if kept.any()]
            found = [(one[kept], other[kept]) for (one, other), kept in zip(found, apart, strict=True) if kept.any()]
        return cls(tuple(found), tuple(whole))

    @classmethod
    def along(cls, z: np.ndarray, columns: Sequence[int]) -> "Neighbours":
        """Neighbours in the order of each of these columns, for each of `REACHES`."""
        found = []
        for order in (np.argsort(z[:, j], kind="stable") for j in columns):
            for reach in REACHES:
                one = np.concatenate([order[:-lag] for lag in range(1, reach + 1)])
                found.append((one, np.concatenate([order[lag:] for lag in range(1, reach + 1)])))
        return cls(tuple(found), (z.shape[1] == 1,) * len(found))

    def products(self, place: int, functions: np.ndarray) -> np.ndarray:
        """Σ fₖ(zᵢ) fₖ(zⱼ) over pairs of one entry, for each column of `functions`."""
        key = place, id(functions)
        if key not in self.known:
            left, right = self.pairs[place]
            self.known[key] = functions, np.einsum("ij,ij->j", functions[left], functions[right])
        return self.known[key][1]

    def of_noise(self, place: int, fit: Fit) -> float:
        """Σ (1 − (1 − H)²)ᵢⱼ over pairs of one entry: minus the sum of covariances of residuals of unit noise."""
        linear, smooth = (self.products(place, functions) for functions in (fit.linear.vectors, fit.basis.vectors))
        return float(linear.sum() + smooth @ _lost(fit))

    def agreement(self, place: int, fit: Fit) -> float:
        """The correlation of a regression's functions between pairs of one entry: 1 if their values are the same."""
        linear = fit.linear.vectors - fit.linear.vectors.mean(axis=0)  # the smooth functions are centred
        left, right = self.pairs[place]
        shared = np.vdot(linear[left], linear[right]) + self.products(place, fit.basis.vectors) @ fit.shrinkage**2
        whole = np.sum(linear**2) + np.sum(fit.basis.vectors**2, axis=0) @ fit.shrinkage**2
        return float(shared / len(left) / whole * len(linear))


@dataclass(frozen=True)
class Agreement:
    """The correlation of residuals between neighbours.

    Attributes
    ----------
    score : array (neighbourhoods,)
        Σ ⟨uᵢ, uⱼ⟩ over pairs, minus its mean for a regression of pure noise, in standard deviations.
    share : array (neighbourhoods,)
        The same difference divided by the value of the sum if residuals were functions of z. It estimates the share of
        their variance that functions of z still explain.
    most : array (neighbourhoods,)
        An upper bound on that share: two standard deviations are added. Functions that a regression misses bend more
        quickly than those it finds, and neighbours in all columns are less correlated in them the more columns there
        are. For such neighbours the bound is divided by the squared correlation of the regression's functions. (For the
        largest of five columns the correlation was .07 to .17 in missed functions and .21 to .32 in those of the
        regression; for steps in two columns it was .03 to .6 and .6.)
    """

    score: np.ndarray
    share: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, residuals: np.ndarray, fit: Fit, neighbours: Neighbours) -> "Agreement":
        """The correlation of a fit's residuals, minus its expectation for noise: E⟨uᵢ, uⱼ⟩ = −(1 − (I − H)²)ᵢⱼ σ²."""
        noise = noise_of(residuals, fit)
        scores, shares, most = [], [], []
        for place, (left, right) in enumerate(neighbours.pairs):
            products = np.einsum("ij,ij->i", residuals[left], residuals[right])
            expected = -noise * neighbours.of_noise(place, fit)
            size = float(np.sqrt(np.sum(products**2)))
            excess = float(products.sum() - expected)
            scores.append(excess / size if size > 0 else 0.0)
            shares.append(excess / (len(products) * noise) if noise > 0 else 0.0)
            largest = (max(excess, 0.0) + 2 * size) / (len(products) * noise) if noise > 0 else 0.0
            if neighbours.whole[place]:
                largest /= max(neighbours.agreement(place, fit), LEAST_AGREEMENT) ** 2
            most.append(min(largest, 1.0))
        return cls(np.array(scores), np.array(shares), np.array(most))


@dataclass(frozen=True)
class Leftover:
    """The correlation between neighbours in z of the residuals of two regressions, at its largest on both sides.

    Bias on one side alone does no harm, since only the product of the biases on both sides matters.

    Attributes
    ----------
    score : float
        The score in standard deviations, of the side with the lower one.
    shares : pair of floats
        The shares of the residual variance of x and of y.
    places : int
        The number of kinds of neighbours over which the score is the maximum.
    bias : float
        The largest contribution of functions of z to the statistic |Σ wᵢ|²/n², divided by E|u|² E|v|². By the
        Cauchy–Schwarz inequality, |Σ f(zᵢ) ⊗ g(zᵢ) ⊗ φ(zᵢ)|²/n² is at most E|f|² E|g|² for functions f and g.
    """

    score: float = 0.0
    shares: tuple[float, float] = (0.0, 0.0)
    places: int = 1
    bias: float = 0.0

    @property
    def chance(self) -> float:
        """An upper bound on the probability that noise on both sides has scores as high, if scores are normal."""
        return min(1.0, self.places * float(ndtr(-self.score)) ** 2)

    def of_all_places(self) -> "Leftover":
        """A copy with the score corrected for the number of neighbourhoods tried."""
        return replace(self, score=-float(ndtri(np.sqrt(self.chance))), places=1)

    @classmethod
    def of(cls, left: Agreement, right: Agreement) -> "Leftover":
        """The largest correlation that both sides have."""
        if not len(left.score):
            return cls()
        both = np.minimum(left.score, right.score)
        most = int(both.argmax())
        shares = float(left.share[most]), float(right.share[most])
        return cls(float(both[most]), shares, len(both), float(np.max(left.most * right.most)))


# The value if no correlation was found or none was checked.
NOTHING = Leftover()
