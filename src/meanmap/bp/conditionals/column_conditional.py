"""One variable given any of the others: beliefs from similar rows, mixed by how well they predict held-out rows.

The others may have missing cells. A joint normal distribution fills them in and gives an expectation of the variable
and its standard deviation; with these, regressions can be used on incomplete rows. For a number y with expectation m
and standard deviation s, the beliefs are

- N(m, s²);
- m + s r with the residuals r of the training rows, equally weighted;
- m + s r, weighted by each regression of residuals on the known values;
- the values of the training rows, weighted by each regression;
- if another number depends on a product with y: a belief by Bayes' rule from that dependence.

For labels, beliefs are the shares among the training rows, equally weighted or by each regression, and a logistic
regression, which is used alone unless the others improve held-out predictions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.beliefs.levels import Levels
from meanmap.bp.conditionals.inverse import given_response
from meanmap.bp.conditionals.joint_normal import JointNormal, parts_of
from meanmap.bp.conditionals.label_regression import LabelRegression
from meanmap.bp.conditionals.row_weights import Learner, RowWeights
from meanmap.bp.conditionals.stacking import mixture_weights
from meanmap.bp.conditionals.thresholds import Thresholds

__all__ = ["ColumnConditional", "Member"]

# The normal distribution, or the overall shares, always keep this much weight, so that no value is impossible.
LEAST_SMOOTH = 0.01
# Far from narrow beliefs only rounding errors would remain: all bins together have at least this probability. It is too
# little to widen intervals or to be drawn.
LEAST_CHANCE = 1e-9
# The average of the beliefs of all parts keeps at least this share of its variance, however far apart these are.
LEAST_RATIO = 0.3
# If no row of a leaf was resampled, all of its rows have equal weights.
LEAST_COUNT = 1e-9
# The probability of the intervals that are checked, and the share of the rows with the narrowest ones.
HALF, SUREST = (0.25, 0.75), 0.25
# Rows are answered this many at a time: a part of the 1500 training rows of a short table at once.
ROWS_AT_ONCE = 600


@dataclass(frozen=True, eq=False)
class Member:
    """The beliefs of one part of the rows.

    Attributes
    ----------
    values : array (n,) or (n, L)
        Of the training rows: numbers, or zeros and ones.
    residuals : array (n,) or None
        (y − m) / s, of numbers.
    weights : tuple of RowWeights
        On training rows, of regressions of both at once on what is known: the other columns filled in, expectations
        and deviations of this one.
    origin : array (n,)
        Which row of the table each training row is.
    counts : array (n,)
        How often each counts.
    """

    values: np.ndarray
    residuals: np.ndarray | None
    weights: tuple[RowWeights, ...]
    origin: np.ndarray
    counts: np.ndarray

    @classmethod
    def fit(cls, rows: np.ndarray, values: np.ndarray, learners: Sequence[Learner], origin: np.ndarray) -> "Member":
        """Fit to training rows; if the variable is a number, their last two columns are m and s."""
        residuals = None if values.ndim == 2 else (values - rows[:, -2]) / rows[:, -1]
        targets = values if residuals is None else np.column_stack([values, residuals])
        weights = tuple(learner(rows, targets) for learner in learners)
        return cls(values, residuals, weights, origin, np.ones(len(values)))

    def beliefs(self, new: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Distribution functions at thresholds (K, m, G), or shares of labels (K, m, L)."""
        parts = [self._beliefs(new[start : start + ROWS_AT_ONCE], at) for start in range(0, len(new), ROWS_AT_ONCE)]
        return np.concatenate(parts, axis=1)

    def _beliefs(self, new: np.ndarray, at: np.ndarray) -> np.ndarray:
        weights, often = [self._counted(each.sparse(new)) for each in self.weights], self.counts / self.counts.sum()
        if self.residuals is None:
            plain = np.broadcast_to(often @ self.values, (len(new), self.values.shape[1]))
            return np.stack([plain, *(each @ self.values for each in weights)])
        middle, deviation = new[:, -2], new[:, -1]
        standard = (at - middle[:, None]) / deviation[:, None]
        order = np.argsort(self.residuals)
        alike = np.append(0, np.cumsum(often[order]))[np.searchsorted(self.residuals[order], standard, side="right")]
        bins, shifted, plain = np.searchsorted(at, self.values), [], []
        for each in weights:
            row = np.repeat(np.arange(len(new)), np.diff(each.indptr))
            moved = middle[row] + deviation[row] * self.residuals[each.indices]
            shifted.append(_rising(each.data, row, np.searchsorted(at, moved), standard.shape))
            plain.append(_rising(each.data, row, bins[each.indices], standard.shape))
        return np.stack([ndtr(standard), alike, *shifted, *plain])

    def resampled(self, counts: np.ndarray) -> "Member":
        """These leaves and neighbourhoods, with the rows of the table counted this often (N,)."""
        return replace(self, counts=counts[self.origin] + LEAST_COUNT)

    def _counted(self, weights: Any) -> Any:
        """Sparse weights (m, n) on training rows, each as often as it counts."""
        if np.all(self.counts == 1):
            return weights
        found = weights.multiply(self.counts[None]).tocsr()
        return found.multiply(1 / found.sum(axis=1)[:, None]).tocsr()


@dataclass(frozen=True, eq=False)
class ColumnConditional:
    """p(x_j | any of the others): the mixture of beliefs, averaged over parts of the rows that were left out in turn.

    Attributes
    ----------
    blocks : tuple of range
        The columns of numbers that stand for each variable.
    place : int
        Which of them this one is.
    thresholds : Thresholds or None
        Of numbers, in the unit of the column.
    at : array (G,)
        The same standardised, or zeros for labels.
    centres : array (G − 1,)
        Of the bins between thresholds, standardised.
    members : tuple of Member
        One for each part.
    mixture : array (K,)
        What each belief counts.
    levels : Levels
        How distribution functions are corrected, by the rows that were left out.
    held : dict
        How well rows that were left out were predicted, smaller is better: by "this", by a "joint normal" distribution,
        and "alone", the same for every row. The continuous ranked probability score of standardised numbers, Brier's of
        labels.
    regressions : tuple of LabelRegression
        One for each part, of labels.
    inside : float
        Of left-out numbers whose beliefs are the surest, a quarter of all, the share within 50% intervals.
    """

    blocks: tuple[range, ...]
    place: int
    thresholds: Thresholds | None
    at: np.ndarray
    centres: np.ndarray
    members: tuple[Member, ...]
    mixture: np.ndarray
    levels: Levels
    held: Mapping[str, float]
    regressions: tuple[LabelRegression, ...] = ()
    inside: float = 0.5

    @classmethod
    def fit(
        cls,
        blocks: tuple[range, ...],
        place: int,
        thresholds: Thresholds | None,
        at: np.ndarray,
        centres: np.ndarray,
        unit: float,
        masked: np.ndarray,
        values: np.ndarray,
        part: np.ndarray,
        judged: np.ndarray,
        laws: Sequence[JointNormal],
        learners: Sequence[Learner],
        rows: int,
        origin: np.ndarray,
    ) -> "ColumnConditional":
        """From the columns of each variable, which of these it is, thresholds, the same and centres of bins
        standardised, by what distances are multiplied to count, rows with gaps (n, d), the values (n, width) of the
        variable in them, the part of each row, which of them judge beliefs, a distribution for each part, learned
        without it, how many rows there are that come several times, and which row of the table each is.
        """
        number, block = thresholds is not None, blocks[place]
        targets = values[:, 0] if number else values
        members, claims, order, hidden, tried = [], [], [], masked.copy(), []
        hidden[:, block] = np.nan
        for p, law in enumerate(laws):
            given, left = law.given(hidden), part == p
            known, (others, gaps, of) = cls.known(block, *given), _others(blocks, place, *given)
            member = Member.fit(known[~left], targets[~left], learners, origin[~left])
            if not number:
                tried.append(LabelRegression.fit(others[~left], gaps[~left], values[~left], origin[~left], of))
            left = np.flatnonzero(left & judged)
            found = _with_inverse(member.beliefs(known[left], at), law, hidden[left], block, at)
            if not number:
                each = [regression(others[left], gaps[left]) for regression in tried[-1]]
                found = np.concatenate([found, each])
            claims.append(found)
            members.append(member)
            order.append(left)
        found, values = np.concatenate(claims, axis=1), values[np.concatenate(order)]
        regressions = ()
        if not number:
            ridges = len(tried[0])
            best = _ridge(found[-ridges:], values)
            found = np.concatenate([found[:-ridges], found[[best - ridges]]])
            regressions = tuple(each[best] for each in tried)
        truth, widths = values, np.ones(len(at))
        if thresholds is not None:
            truth, widths = values <= at, np.append(np.diff(thresholds.edges), 0.0) * unit
        mixture = mixture_weights(found - truth, widths)
        if not number:
            mixture = _alone_unless(found - truth, mixture)
        mixture = (1 - LEAST_SMOOTH) * mixture + LEAST_SMOOTH * (np.arange(len(mixture)) == 0)
        claimed, levels, inside = np.tensordot(mixture, found, 1), Levels(), 0.5
        if number:
            claimed, bins = _whole(claimed), np.maximum(np.argmax(truth, axis=1)[:, None] - 1, 0)
            below, upto = (np.take_along_axis(claimed, bins + k, 1)[:, 0] for k in (0, 1))
            levels = Levels.fit(below, upto, rows)
            claimed = levels(claimed)
            reach = np.ptp([at[np.argmax(claimed >= q, axis=1)] for q in HALF], axis=0)
            sure, middle = reach <= np.quantile(reach, SUREST), (levels(below) + levels(upto)) / 2
            inside = float(np.mean((HALF[0] <= middle[sure]) & (middle[sure] <= HALF[1])))

        def score(claim: np.ndarray) -> float:
            return float(np.mean(np.sum((claim - truth) ** 2 * widths, axis=1)))

        held = {"this": score(claimed), "alone": score(truth.mean(axis=0))}
        held |= {"joint normal": score(found[0])} if number else {}
        return cls(blocks, place, thresholds, at, centres, tuple(members), mixture, levels, held, regressions, inside)

    def given_only(
        self,
        shown: np.ndarray,
        rows: np.ndarray,
        values: np.ndarray,
        those: np.ndarray,
        unit: float,
        laws: Sequence[JointNormal],
        learners: Sequence[Learner],
    ) -> "ColumnConditional":
        """Learn the variable given only the columns `shown` (d,), from `those` of the rows (n, d) of `laws` whose
        values (n, width) are known.
        """
        masked, judged = np.where(shown, rows[those], np.nan), np.ones(len(those), dtype=bool)
        form = self.blocks, self.place, self.thresholds, self.at, self.centres, unit
        settings = parts_of(len(rows))[those], judged, laws, learners, len(those), those
        return ColumnConditional.fit(*form, masked, values[those], *settings)

    def resampled(self, counts: np.ndarray) -> "ColumnConditional":
        """A mixture with the same levels, with the rows of the table counted this often (N,)."""
        members, regressions = (
            tuple(each.resampled(counts) for each in those) for those in (self.members, self.regressions)
        )
        return replace(self, members=members, regressions=regressions)

    def of_part(self, p: int) -> "ColumnConditional":
        """The conditional learned without part p of the rows."""
        return replace(self, members=self.members[p : p + 1], regressions=self.regressions[p : p + 1])

    def of_belief(self, k: int) -> "ColumnConditional":
        """Belief k alone, as it is."""
        return replace(self, mixture=np.eye(len(self.mixture))[k], levels=Levels())

    @property
    def block(self) -> range:
        """The columns of numbers that stand for the variable."""
        return self.blocks[self.place]

    @staticmethod
    def known(block: range, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """The inputs of regressions: the other variables filled in, then m and s if the variable is a number."""
        others = np.delete(means, block, axis=1)
        return np.concatenate([others, means[:, block], deviations[:, block]], axis=1)

    def shares(self, laws: Sequence[JointNormal], rows: np.ndarray) -> np.ndarray:
        """Probabilities of bins between thresholds (m, G − 1), or of labels (m, L), in rows that do not show the
        variable, by the distribution of each part.
        """
        each = []
        for p, (member, law) in enumerate(zip(self.members, laws, strict=True)):
            given = law.given(rows)
            beliefs = _with_inverse(
                member.beliefs(self.known(self.block, *given), self.at), law, rows, self.block, self.at
            )
            if self.regressions:
                others, gaps, _ = _others(self.blocks, self.place, *given)
                beliefs = np.concatenate([beliefs, self.regressions[p](others, gaps)[None]])
            each.append(np.tensordot(self.mixture, beliefs, 1))
        each = np.stack(each)
        found = each.mean(axis=0)
        if self.thresholds is not None:
            found = np.diff(self.levels(self._narrowed(_whole(each))), axis=1)
            found = np.maximum(found, LEAST_CHANCE / found.shape[1])
        found = np.maximum(found, 0.0)
        return found / found.sum(axis=1, keepdims=True)

    def _narrowed(self, claims: np.ndarray) -> np.ndarray:
        """The average of distribution functions (P, m, G) that each are right, as narrow as their mean foretells.

        With W the mean of their variances and B the variance of their means, the squared error of the mean of means is
        W − B, for it is that of each less B (Krogh & Vedelsby 1995), but the average of beliefs has variance W + B.
        """
        shares, centres = np.diff(claims, axis=-1), self.centres
        means = shares @ centres
        within = np.mean(shares @ centres**2 - means**2, axis=0)
        between = means.var(axis=0)
        ratio = np.maximum(within - between, LEAST_RATIO * within) / np.maximum(within + between, 1e-300)
        narrow = ndtr(ndtri(np.clip(claims.mean(axis=0), 0, 1)) / np.sqrt(np.maximum(ratio, LEAST_RATIO))[:, None])
        return _whole(narrow)


def _others(
    blocks: Sequence[range], place: int, means: np.ndarray, deviations: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of all variables but one, filled in (n, d), which variables were missing (n, k), and the variable of
    each column (d,).
    """
    of = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    starts = [block.start for k, block in enumerate(blocks) if k != place]
    return np.delete(means, blocks[place], axis=1), deviations[:, starts] > 0, of[of != place]


def _ridge(found: np.ndarray, hits: np.ndarray) -> int:
    """Choose among probabilities (R, n, L) by regressions whose ridges are ordered from strong to weak.

    The weakest ridge is used unless held-out rows are more probable under another by more than two standard errors.
    Otherwise small differences among labels would be shrunk to zero, and draws would understate the uncertainty of the
    estimates.
    """
    logs = np.log(np.maximum(np.sum(found * hits, axis=2), np.finfo(float).tiny))
    gains = logs - logs[-1]
    mean = gains.mean(axis=1)
    return int(np.argmax(np.where(clearly_better(gains), mean, np.append(np.full(len(gains) - 1, -np.inf), 0.0))))


def _alone_unless(errors: np.ndarray, mixture: np.ndarray) -> np.ndarray:
    """The weights of beliefs with errors (K, n, L): all is the last one's, unless held-out rows are predicted better by
    the mixture by more than two standard errors.
    """
    gain = np.sum(errors[-1] ** 2, axis=1) - np.sum(np.tensordot(mixture, errors, 1) ** 2, axis=1)
    return mixture if clearly_better(gain) else (np.arange(len(mixture)) == len(mixture) - 1).astype(float)


def _with_inverse(beliefs: np.ndarray, law: JointNormal, rows: np.ndarray, block: range, at: np.ndarray) -> np.ndarray:
    """Beliefs (K, m, G), and that by Bayes' rule if a column depends on a product with this one."""
    found = given_response(law, rows, block.start, at)
    return beliefs if found is None else np.concatenate([beliefs, found[None]])


def _whole(distribution: np.ndarray) -> np.ndarray:
    """The distribution with all mass between the outermost thresholds."""
    ends = np.zeros((*distribution.shape[:-1], 1))
    return np.concatenate([ends, distribution[..., 1:-1], ends + 1], axis=-1)


def _rising(weights: np.ndarray, row: np.ndarray, bins: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Σᵢ wᵢ 1{pointᵢ ≤ t} for rows and rising thresholds (m, G), from the row of each weight and the first threshold
    that is not below its point, G beyond all.
    """
    rows, width = shape[0], shape[1] + 1
    found = np.bincount(row * width + bins, weights, rows * width).reshape(rows, width)
    return np.cumsum(found[:, :-1], axis=1)
