"""p(number | parents) of a column with one sign, or between 0 and 1: regressed on a scale on which it has no ends."""

from dataclasses import dataclass, replace

import numpy as np

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.few_values import FewValues, cauchy_between, log_chance_of_values, outermost
from meanmap.bp.conditionals.given_parents import GivenParents
from meanmap.bp.conditionals.held_out import HeldOut
from meanmap.bp.conditionals.transformations import KINDS, LEAST_VALUES, MOST_GAIN, Transformation
from meanmap.bp.frequent import few_values
from meanmap.core.points import slices, spread_rows

__all__ = ["InRange", "number_given"]

# Draws are smoothed by at least this share of the standard deviation of the column.
LEAST_WIDTH = 1e-6
# Draws of rounded numbers are right to this many digits beyond those of the step.
NEAR = 9
# Draws outside the range of the column are repeated at most this often.
AGAIN = 20
# Numbers that were standardised and back are equal to a limit if they differ by less than this share of the scale.
ROUNDED = 1e-9
# A number of few values has an end where at least this many rows, and this share of them, have the outermost one.
LEAST_AT_END, AT_END = 5, 0.02
# Whole numbers given labels may have this many values, with this many rows for each on average.
MOST_VALUES, ROWS_EACH = 200, 5
# Rows are answered this many at a time.
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class InRange:
    """The distribution of a number given its parents that stays within the limits of the column.

    Attributes
    ----------
    law : GivenParents
        Of the transformed number.
    transformation : Transformation
        To the logarithm, root or log odds, or "plain".
    centre, scale : float
        Of the column: numbers come and go standardised.
    limits : pair of float
        In the unit of the column. Where no row is at a limit, draws at or beyond it are drawn again.
    reached : pair of float
        The least and the largest number of all rows, to which all other draws beyond the limits are set.
    farthest : pair of float
        Between which draws are, in the unit of the column.
    within : pair of float
        Where the transformation is regular; beyond the density falls as the kernel does there.
    step : float
        Of whole or rounded numbers: their density is a probability over the step. Else 0.
    few : FewValues or None
        The shares of all values, if these are few.
    """

    law: GivenParents
    transformation: Transformation
    centre: float
    scale: float
    limits: tuple[float, float]
    reached: tuple[float, float]
    farthest: tuple[float, float]
    within: tuple[float, float]
    step: float
    few: FewValues | None = None

    @classmethod
    def fit(cls, rows: np.ndarray, raw: np.ndarray, transformation: Transformation, column: CodedColumn) -> "InRange":
        """Fit to rows of the parents and numbers (n, 1) in the unit of the column."""
        plain, low, high = transformation.kind == "plain", float(raw.min()) / 2, (1 + float(raw.max())) / 2
        within = column.limits if plain else (low, high if transformation.kind == "log odds" else np.inf)
        cells = None
        if column.step:
            cells = _transformed(transformation, *_cell(raw[:, 0], column.step, column.limits)).T
        transformed = transformation(raw)
        law = GivenParents.fit(rows, transformed, cells)
        reached, farthest = (float(raw.min()), float(raw.max())), (-np.inf, np.inf)
        if not plain:
            # Draws pass the range at most by the distance from its end to the last of the outermost rows: if tails are
            # exponential on that scale, by some three times the mean distance.
            ordered, outer = np.sort(transformed[:, 0]), outermost(len(raw))
            ends = 2 * ordered[[0, -1]] - ordered[[outer, -1 - outer]]
            farthest = tuple(transformation.back(ends).tolist())
        few = None
        if _few(raw, column, rows) and not law.follows:
            some, fitted = spread_rows(len(rows), len(law.values)), law.means(rows)
            means = fitted.copy()
            means[some] = transformed[some, 0] - law.sizes(rows[some]) * law.values  # without the row itself
            without, with_all = transformation.back(means), transformation.back(fitted)
            if not rows.shape[1]:
                without = with_all = np.full(len(raw), raw.mean())
            few = FewValues.fit(without, raw[:, 0], with_all, 0.0 if few_values(raw) else column.step)
        units = transformation, column.centre, column.scale, column.limits
        return cls(law, *units, reached, farthest, within, column.step, few)

    @property
    def rows(self) -> int:
        """The number of rows behind the linear part."""
        return self.law.rows

    def ends(self, column: int) -> tuple[float, float]:
        """The observed range of a number that represents a parent."""
        return self.law.ends(column)

    def draw(self, rows: np.ndarray, random: np.random.Generator, smooth: bool = False) -> np.ndarray:
        """Draw one value (m, 1) for each row of the parents, by residuals of rows or by their smooth density."""
        rows = self._within_ends(rows)
        if self.few is not None:
            return (self.few.draw(self._means(rows), random) - self.centre) / self.scale
        raw = self._drawn(rows, random, smooth)
        for _ in range(AGAIN):
            out = np.flatnonzero(self._beyond(raw).any(axis=1))
            if not len(out):
                break
            raw[out] = self._drawn(rows[out], random, smooth)
        return self._settled(raw)

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """The probabilities of all values at rows of the parents, (m, A); of none if these are not few."""
        return np.zeros((len(rows), 0)) if self.few is None else self.few(self._means(self._within_ends(rows)))

    def _drawn(self, rows: np.ndarray, random: np.random.Generator, smooth: bool) -> np.ndarray:
        """Draws (m, 1) in the unit of the column, also beyond its limits, rounded as its numbers are.

        Residuals of numbers that depend little on the parents are nearly multiples of the step, and effects of less
        than half a step would be rounded away. So numbers are rounded up or down at random, which leaves means as they
        are, after they were shrunk towards these by as much as that adds to the variance.
        """
        raw = self._raw(self.law.draw(rows, random, smooth))
        if not self.step:
            return raw
        if self.transformation.kind == "plain":
            means = self._means(rows)[:, None]
            away, over = raw - means, (raw - self.reached[0]) / self.step % 1
            added = self.step**2 * np.mean(over * (1 - over))
            raw = means + away * np.sqrt(1 - added / max(np.mean(away**2), added, np.finfo(float).tiny))
        return self._on_steps(raw, random.random(raw.shape))

    def _means(self, rows: np.ndarray) -> np.ndarray:
        """What is expected at rows of the parents, (m,), if numbers are not transformed."""
        return self._raw(self.law.means(rows))

    def _on_steps(self, raw: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Multiples of the step beyond the least number, down unless numbers are this share of it below the next."""
        least = self.reached[0]
        digits = max(NEAR - int(np.floor(np.log10(self.step))), 0)
        return np.round(least + self.step * np.floor((raw - least) / self.step + up), digits)

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the density of numbers (m, 1) at rows of the parents."""
        rows = self._within_ends(rows)
        if self.step:
            return self._log_chance_of_rounded(rows, self.centre + self.scale * value[:, 0])
        raw, slopes = self._regular(value)
        beyond = (value - (raw - self.centre) / self.scale) / self.widths(value)
        return self.law.log_chance(rows, self.transformation(raw)) + (slopes - beyond**2 / 2)[:, 0]

    def _log_chance_of_rounded(self, rows: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """From the probability of all that is rounded to numbers (m,), or set to them as the limit, of which numbers
        beyond the limits have none. One row in n + 1 is reserved for numbers that no row has, of a Cauchy distribution.
        """
        if self.few is not None:
            few, means, unit = self.few, self._means(rows), (self.step, self.scale)
            parts = [
                log_chance_of_values(few(means[part]), few.often, few.values, raw[part], self.rows, unit)
                for part in slices(len(rows), ROWS_AT_ONCE)
            ]
            return np.concatenate([np.zeros(0), *parts]) - np.log(self.step / self.scale)
        half, ends = self.step / 2, _cell(raw, self.step, self.limits)
        away = (raw - self.centre) / self.scale
        unseen = cauchy_between(away - half / self.scale, away + half / self.scale)
        seen = np.log(self.rows) + self.law.log_mass(rows, *_transformed(self.transformation, *ends))
        seen[(raw < self.limits[0] - half) | (raw > self.limits[1] + half)] = -np.inf
        return np.logaddexp(seen, np.log(unseen)) - np.log((self.rows + 1) * self.step / self.scale)

    def widths(self, value: np.ndarray) -> np.ndarray:
        """The bandwidth by which draws are smoothed to a density; few values are not."""
        if self.few is not None:
            return np.zeros(value.shape)
        return np.maximum(self.law.width * np.exp(-self._regular(value)[1]), LEAST_WIDTH)

    def moved(self, before: np.ndarray, value: float, after: np.ndarray) -> float:
        """The number of the same rank given parents `after` as `value` given `before`: see `GivenParents`."""
        if np.array_equal(before, after):
            return value
        before, after = self._within_ends(before), self._within_ends(after)
        return self._back(self.law.moved(before, self._transformed(value), after))

    def log_odds(self, rows: np.ndarray, value: float) -> float:
        """log F / (1 − F) of a number at a row of the parents (1, q)."""
        return self.law.log_odds(self._within_ends(rows), self._transformed(value))

    def at_odds(self, rows: np.ndarray, wanted: float) -> float:
        """The number with these log odds at a row of the parents (1, q)."""
        return self._back(self.law.at_odds(self._within_ends(rows), wanted))

    @property
    def extrapolates(self) -> bool:
        """Whether means outside the data follow a line; otherwise parents count as at the nearest end."""
        return self.few is None and self.transformation.kind == "plain"

    def _within_ends(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.extrapolates else np.clip(rows, self.law.low, self.law.high)

    def _transformed(self, value: float) -> float:
        return float(self.transformation(self._regular(np.array([value]))[0])[0])

    def _back(self, transformed: float) -> float:
        return float(self._settled(self._raw(np.array([[transformed]])))[0, 0])

    def _regular(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers in the unit of the column, and the logarithms of the slopes there."""
        raw = np.clip(self.centre + self.scale * value, *self.within)
        return raw, self.transformation.log_slopes(raw.ravel()).reshape(raw.shape) + np.log(self.scale)

    def _raw(self, transformed: np.ndarray) -> np.ndarray:
        """Transform back to the unit of the column, which may be outside its range."""
        with np.errstate(over="ignore"):  # odds may be beyond all floats
            return self.transformation.back(transformed)

    def _beyond(self, raw: np.ndarray) -> np.ndarray:
        """Whether numbers (m, 1) are at or beyond the lower or upper limit, if no training row reached it, or farther
        out than draws may be, (m, 2).
        """
        (low, high), (least, most), (first, last) = self.limits, self.reached, self.farthest
        below, above = ((raw <= low) & (least > low)) | (raw < first), ((raw >= high) & (most < high)) | (raw > last)
        return np.concatenate([below, above], axis=1)

    def _settled(self, raw: np.ndarray) -> np.ndarray:
        """Numbers (m, 1) within the limits, standardised."""
        out = self._beyond(raw)
        raw = np.where(out[:, [0]], self.reached[0], np.where(out[:, [1]], self.reached[1], raw))
        return (np.clip(raw, *self.limits) - self.centre) / self.scale


def number_given(rows: np.ndarray, values: np.ndarray, column: CodedColumn) -> GivenParents | InRange:
    """Learn a column of numbers from rows of the parents (n, q) and its standardised values (n, 1).

    The transformation under which a linear regression with normal noise has the largest likelihood is used if it makes
    held-out rows more probable, by two standard errors, than the untransformed numbers.
    """
    if not column.step and (not rows.shape[1] or not np.isfinite(column.limits).any()):
        return GivenParents.fit(rows, values)  # without parents draws are values of rows
    raw = np.clip(column.centre + column.scale * values, *column.limits)
    for limit in column.limits:  # which rows that have it miss by rounding
        raw[np.abs(raw - limit) < ROUNDED * column.scale] = limit
    few = _few(raw, column, rows)
    if few:  # ratings end at the least and the largest
        column = replace(column, limits=(float(raw.min()), float(raw.max())))
    plain = InRange.fit(rows, raw, Transformation("plain", 0.0, -np.inf, np.inf, column.centre, column.scale), column)
    tried = _tried(rows, raw[:, 0]) if rows.shape[1] and column.column.kind in ("number", "count") else None
    if tried is None or few:
        return plain
    other = InRange.fit(rows, raw, tried, column)
    gain = np.clip(_left_out(other, rows, raw[:, 0]) - _left_out(plain, rows, raw[:, 0]), -MOST_GAIN, MOST_GAIN)
    return other if clearly_better(gain) else plain


def _few(raw: np.ndarray, column: CodedColumn, rows: np.ndarray) -> bool:
    """Whether rounded numbers (n, 1) have few values, the first or the last of them often, where no tail ends; given
    nothing but labels not so few.
    """
    often = max(np.sum(raw == raw.min()), np.sum(raw == raw.max()))
    least = max(LEAST_AT_END, AT_END * len(raw))
    if not column.step or raw.min() == raw.max() or often < least:
        return False
    labels = bool(rows.shape[1]) and ((rows == rows.min(axis=0)) | (rows == rows.max(axis=0))).all()
    number = np.ptp(raw) / column.step + 1
    return few_values(raw) or (labels and number <= MOST_VALUES and len(np.unique(raw)) * ROWS_EACH <= len(raw))


def _tried(rows: np.ndarray, raw: np.ndarray) -> Transformation | None:
    """The transformation with the largest likelihood, None if that is none. Roots have no slope at zero."""
    if len(np.unique(raw)) < LEAST_VALUES:
        return None
    kinds = ["plain", *(kind for kind in KINDS if Transformation.possible(kind, raw))]
    kinds = [kind for kind in kinds if kind != "root" or raw.min() > 0]
    each = [Transformation.of(kind, raw) for kind in kinds]
    design = np.column_stack([np.ones(len(rows)), rows])
    logs = []
    for transformation in each:
        values = transformation(raw)
        left = values - design @ np.linalg.lstsq(design, values)[0]
        logs.append(transformation.log_slopes(raw).mean() - np.log(max(left.std(), np.finfo(float).tiny)))
    best = int(np.argmax(logs))
    return each[best] if best else None


def _left_out(law: InRange, rows: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The log density of the residuals of some rows under those of the others, in the unit of the column, or of rounded
    numbers the log probability of their cells, (m,).
    """
    residuals, learned = law.law.values, spread_rows(len(rows), len(law.law.values))
    sizes, cells = law.law.sizes(rows[learned]), None
    if law.step:
        here = raw[learned]
        ends = _transformed(law.transformation, *_cell(here, law.step, law.limits))
        cells = ((ends - law.transformation(here)) / sizes).T
    held = HeldOut.of(residuals, law.law.width, cells)
    logs = held.alike()
    if law.step:
        return logs
    return logs - np.log(sizes[held.some]) + law.transformation.log_slopes(raw[learned[held.some]])


def _cell(raw: np.ndarray, step: float, limits: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """The ends of all that is rounded to numbers (m,), or set to them as the limit."""
    low, high = raw - step / 2, raw + step / 2
    return np.where(low <= limits[0], -np.inf, low), np.where(high >= limits[1], np.inf, high)


def _transformed(transformation: Transformation, *ends: np.ndarray) -> np.ndarray:
    """Ends of cells, (2, m)."""
    return np.array([np.where(np.isinf(each), each, transformation(each)) for each in ends])
