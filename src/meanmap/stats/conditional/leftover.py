"""Functions of z left in the residuals: do residuals of neighbours in z agree, on both sides at once?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.stats.conditional.regression import Fit

__all__ = ["MOST_COLUMNS", "NOTHING", "REACHES", "Agreement", "Leftover", "Neighbours", "bent_columns", "noise_of"]

# Rows and their neighbours.
Pairs = tuple[np.ndarray, np.ndarray]

# Rows that are this many places apart or fewer along a column, and this many nearest rows in all columns together.
REACHES, NEAREST = (1, 4), 4
# Above this bound nothing is known about functions in which neighbours would agree.
LEAST_AGREEMENT = 0.1
# With more columns of z only nearest rows are used.
MOST_COLUMNS = 12


def bent_columns(z: np.ndarray) -> list[int]:
    """Columns with more than two values."""
    return [j for j in range(z.shape[1]) if len(np.unique(z[:, j])) > 2]


def _lost(fit: Fit) -> np.ndarray:
    """1 − (1 − shrinkage)², by which a regression reduces the variance of noise along each of its functions."""
    return 1 - (1 - fit.shrinkage) ** 2


def noise_of(residuals: np.ndarray, fit: Fit) -> float:
    """The variance of the noise that left these residuals, summed over columns."""
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
        """Of columns of z that have more than two values; rows of the same unit may be dependent and form no pair."""
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
        """In the order of each of these columns, for each of `REACHES`."""
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
        """Σ (1 − (1 − H)²)ᵢⱼ over pairs of one entry: how far a regression sets residuals of noise apart."""
        linear, smooth = (self.products(place, functions) for functions in (fit.linear.vectors, fit.basis.vectors))
        return float(linear.sum() + smooth @ _lost(fit))

    def agreement(self, place: int, fit: Fit) -> float:
        """How far pairs of one entry agree in the functions of a regression: 1 if these do not change between them."""
        linear = fit.linear.vectors - fit.linear.vectors.mean(axis=0)  # the smooth functions have no mean
        left, right = self.pairs[place]
        shared = np.vdot(linear[left], linear[right]) + self.products(place, fit.basis.vectors) @ fit.shrinkage**2
        whole = np.sum(linear**2) + np.sum(fit.basis.vectors**2, axis=0) @ fit.shrinkage**2
        return float(shared / len(left) / whole * len(linear))


@dataclass(frozen=True)
class Agreement:
    """How far residuals of neighbours agree.

    Attributes
    ----------
    score : array (neighbourhoods,)
        Σ ⟨uᵢ, uⱼ⟩ over pairs, less what a regression of pure noise leaves there, in its standard deviations.
    share : array (neighbourhoods,)
        The same sum over what it were if residuals were functions of z: the share of their variance that still goes
        with z.
    most : array (neighbourhoods,)
        That share, two standard deviations larger. What is missed bends quicker than what a regression finds, and
        neighbours in all columns agree the less in it, the more columns there are: there it is over the square of how
        far they agree in functions of the regression. (Of the largest of five columns they agreed by .07 to .17 in what
        was missed and by .21 to .32 in these functions, of steps in two columns by .03 to .6 and .6.)
    """

    score: np.ndarray
    share: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, residuals: np.ndarray, fit: Fit, neighbours: Neighbours) -> "Agreement":
        """Residuals of a fit are correlated: for noise E⟨uᵢ, uⱼ⟩ = −(1 − (I − H)²)ᵢⱼ σ², which is subtracted."""
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
    """How far the residuals of two regressions agree among neighbours in z, where they agree most on both sides.

    Bias of one side alone does no harm, since only products of both matter.

    Attributes
    ----------
    score : float
        In standard deviations, of the side where it is lower.
    shares : pair of floats
        Of the variance that was left of x, and of y.
    places : int
        Among how many meanings of "neighbours" it is the most.
    bias : float
        The most that functions of z add to |Σ wᵢ|²/n² of the statistic, over E|u|² E|v|²: functions f and g make
        |Σ f(zᵢ) ⊗ g(zᵢ) ⊗ φ(zᵢ)|²/n² at most E|f|² E|g|² (Cauchy & Schwarz).
    """

    score: float = 0.0
    shares: tuple[float, float] = (0.0, 0.0)
    places: int = 1
    bias: float = 0.0

    @property
    def chance(self) -> float:
        """An upper bound on the probability that noise on both sides agrees as far, if scores are normal."""
        return min(1.0, self.places * float(ndtr(-self.score)) ** 2)

    def of_all_places(self) -> "Leftover":
        """With the score corrected for the number of neighbourhoods tried."""
        return replace(self, score=-float(ndtri(np.sqrt(self.chance))), places=1)

    @classmethod
    def of(cls, left: Agreement, right: Agreement) -> "Leftover":
        """Of both sides."""
        if not len(left.score):
            return cls()
        both = np.minimum(left.score, right.score)
        most = int(both.argmax())
        shares = float(left.share[most]), float(right.share[most])
        return cls(float(both[most]), shares, len(both), float(np.max(left.most * right.most)))


# If nothing was found, or nothing was checked.
NOTHING = Leftover()
