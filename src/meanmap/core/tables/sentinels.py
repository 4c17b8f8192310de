"""Values that may be codes for missing ones, such as -999 or 9999-12-31: repeated values far from all others."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.language import in_python
from meanmap.core.moments import seconds
from meanmap.core.types import Array

__all__ = ["Sentinels"]

# How far from all other values, in ranges of these, one must lie to be reported. Of 8524 columns of numbers in 964
# tables of packages that people learn from these bounds name nine: seven have nines for "missing" or "ever", and two
# a million for "no limit".
# Codes below zero where nothing else is; nines, and other codes below zero; codes beside few values, which may be a
# scale; and any value that is repeated.
BELOW, CODED, FEW, REPEATED = 0.2, 1.0, 5.0, 10.0
# Codes of at least this many rows, and of this many times as many as any other value, need only be as far as codes
# below zero, and zeros as well: 99 beside ages from 18 to 70. Negative ones where no others are may be near: -9 beside
# incomes.
SPIKE = 10, 3
# Others that are needed to know what is usual, and distinct ones from which on they are more than a scale.
LEAST_OTHERS, MANY = 10, 5
# Codes for "missing" beside the numbers of no and yes.
YES_OR_NO = 7.0, 8.0, 9.0
# Of whole numbers codes may be near: 99 beside ages to 85, 9 beside answers from 1 to 5. Where frequencies fall towards
# the ends, all of m rows beyond the other values are on one of g whole numbers with a probability of at most g ** -m.
# Codes are so far from the others at least, sevens or eights alone farther: engines have 3 to 6 cylinders, and 8. They
# are in at most this share of the rows. Of 16,392 columns of whole numbers in packages that people learn from two more
# are named than by the other rules: 9 beside levels of education from 1 to 6, and 9997 beside codes of occupations.
BY_CHANCE, GAP, GAP_OF_NO_NINES, SELDOM = 1e-6, 2, 3, 0.25
# Days used as codes for "never", "not known" and zero.
DAYS = ("0001-01-01", "1899-12-30", "1900-01-01", "1970-01-01", "2099-12-31", "2999-12-31", "9999-12-31")
# Zeros may be missing values of a measurement: at most half of the rows, with none of many others near them, and these
# about symmetric, which amounts and costs are not. Bounds of the least, and of the 5% quantile, as shares of the
# median; of the distance of that quantile as a share of that of the 95% quantile; of variance / mean of counts. Of 360
# columns of statsmodels and scikit-learn they name two, of logarithms, in which 0 stands for no number.
LEAST_SHARE, LOW_SHARE, SYMMETRIC, DIFFERENT = 0.15, 0.5, 0.7, 20
COUNTED = 0.6, 1.5
# Nines among other values have this many digits at least, and this many times the rows of any other value; beyond the
# range the rules above decide. Of the 16,392 columns they name none.
LONG, OFTENER = 4, 5
# A column has codes for "refused", "not known", "not asked", on one side or both.
MOST = 6


@dataclass(frozen=True)
class Sentinels:
    """Values of a column that lie so far from all others that they may be codes for missing ones.

    Attributes
    ----------
    values, counts : tuples
        In order, and the count of each; times as seconds since 1970.
    number : int
        The number of all values of the column.
    low, high : float
        The smallest and the largest of the others.
    times : bool
        Whether the column holds times.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    number: int
    low: float
    high: float
    times: bool = False

    @classmethod
    def of(cls, column: Array) -> "Sentinels | None":
        """The codes among some numbers or times; None if there are none. O(n).

        Examples
        --------
        >>> ages = np.r_[np.arange(18.0, 78.0), [-999.0] * 4]
        >>> found = Sentinels.of(ages)
        >>> found.values, found.counts, (found.low, found.high)
        ((-999.0,), (4,), (18.0, 77.0))
        >>> Sentinels.of(np.r_[np.arange(18.0, 78.0), 0.0]) is None
        True
        >>> Sentinels.of(np.r_[np.arange(18.0, 78.0), [99.0] * 12]).values
        (99.0,)
        >>> Sentinels.of(np.r_[np.arange(1e3, 9e4, 100.0), [-9.0] * 12]).values
        (-9.0,)
        >>> Sentinels.of(np.r_[[0.0, 1.0] * 40, [9.0] * 6]).values
        (9.0,)
        >>> Sentinels.of(np.r_[[1.0, 2.0, 3.0, 4.0, 5.0] * 20, [9.0] * 10]).values
        (9.0,)
        """
        column = np.asarray(column)
        times = column.dtype.kind == "M"
        digits = _far_day if times else _digits
        numbers = seconds(column) if times else column.astype(np.float64, copy=False)
        finite = np.isfinite(numbers)
        numbers = rest = numbers if finite.all() else numbers[finite]
        peeled: list[float] = []
        far: set[float] = set() if times else _after_gaps(numbers)
        while len(rest) >= LEAST_OTHERS and len(peeled) < MOST:
            ends = float(rest.max()), float(rest.min())
            found = next((end for end in ends if end in far or digits(end)), None)
            if found is None:
                found = next((end for end in ends if _is_far(rest, end) or _beside_two(rest, end)), None)
                if found is None:
                    break
                far.add(found)
            peeled.append(found)
            rest = rest[rest != found]
        if not peeled or len(rest) < LEAST_OTHERS or rest.min() == rest.max():
            return None
        low, high = float(rest.min()), float(rest.max())
        few = len(np.unique(rest)) < MANY
        counts = {each: int((numbers == each).sum()) for each in peeled}

        def reach(code: float) -> float:
            """How far outside a code must be."""
            size, count = digits(code), counts[code]
            if code in far:
                return 0.0
            if few:
                return FEW
            if size and _is_negative(code, low, count, rest):
                return 0.0
            return BELOW if size and (_is_spike(count, rest) or _is_below(code, low, size, count)) else CODED

        kept = sorted(each for each in peeled if _beyond(each, low, high) >= reach(each))
        if not kept:
            return None
        return cls(tuple(kept), tuple(counts[each] for each in kept), len(numbers), low, high, times)

    @classmethod
    def in_column(cls, column: Array) -> "Sentinels | None":
        """Codes for missing values, or else nines or zeros that may stand for them."""
        return cls.of(column) or cls.nines(column) or cls.zeros(column)

    @classmethod
    def nines(cls, column: Array) -> "Sentinels | None":
        """A whole number of nines among others, such as 99999 among incomes, that many more rows have; None without.

        Examples
        --------
        >>> incomes = np.random.default_rng(0).lognormal(11, 1, 300).round()
        >>> Sentinels.nines(np.r_[incomes, [99999.0] * 15]).values
        (99999.0,)
        >>> Sentinels.nines(np.r_[incomes, [99000.0] * 15]) is None
        True
        """
        if (numbers := _finite(column)) is None or not _are_whole(numbers):
            return None
        values, counts = np.unique(numbers, return_counts=True)
        if len(values) < DIFFERENT or counts.max() < SPIKE[0]:
            return None
        k = int(counts.argmax())
        digits, others = f"{values[k]:.12g}", np.delete(counts, k)
        if set(digits) != {"9"} or len(digits) < LONG or not 0 < k < len(others) or counts[k] < OFTENER * others.max():
            return None
        return cls((float(values[k]),), (int(counts[k]),), len(numbers), float(values[0]), float(values[-1]))

    @classmethod
    def zeros(cls, column: Array) -> "Sentinels | None":
        """Zeros that may stand for missing values of a measurement, such as a weight; None if they look like others.

        Examples
        --------
        >>> weights = np.random.default_rng(0).normal(70, 10, 300)
        >>> Sentinels.zeros(np.r_[weights, [0.0] * 9]).counts
        (9,)
        >>> costs = np.exp(weights / 10)
        >>> Sentinels.zeros(np.r_[costs, [0.0] * 9]) is None
        True
        """
        if (numbers := _finite(column)) is None:
            return None
        count = len(numbers) - int(np.count_nonzero(numbers))
        if not 2 <= count <= len(numbers) - count or numbers.min() < 0:
            return None
        rest = numbers[numbers != 0]
        if len(np.unique(rest)) < DIFFERENT:
            return None
        low, middle, high = np.quantile(rest, [0.05, 0.5, 0.95])
        apart = rest.min() >= BELOW * (rest.max() - rest.min()) and _is_spike(count, rest)
        near = not apart and (rest.min() < LEAST_SHARE * middle or low < LOW_SHARE * middle)
        counts = _are_whole(rest) and COUNTED[0] < rest.var() / rest.mean() < COUNTED[1]
        if near or counts or middle - low < SYMMETRIC * (high - middle):
            return None
        return cls((0.0,), (count,), len(numbers), float(rest.min()), float(rest.max()))

    def __str__(self) -> str:
        """The number of rows with each value."""
        shown = [f"{self._shown(value, 12)} in {count}" for value, count in zip(self.values, self.counts, strict=True)]
        return f"{' and '.join(shown)} of {self.number} rows ({100 * sum(self.counts) / self.number:.2g}%)"

    def note(self, where: str, then: str = "", what: str = "") -> str:
        """The note on a column, with advice (`then`). By default it is to declare them as codes, if the function called
        handles missing values. `what` they count as is by default a number or a time.
        """
        shown = [self._shown(value, 12) for value in self.values]
        if not then and not self.times and self.values == (0.0,):
            how = in_python(", such as .replace(0, float('nan')) of pandas", " in the file")
            then = f"replace it in this column alone{how}, as missing=[0] leaves out every row with a 0"
        then = then or f"pass missing=[{', '.join(map(repr, shown) if self.times else shown)}]"
        several = len(self.values) > 1
        what = what or ("time" if self.times else "number")
        count, stand = (f"they count as {what}s", "they stand") if several else (f"it counts as a {what}", "it stands")
        if sum(self.counts) == 1:  # as the rule of wild cells has it
            count += " here, and as missing in networks"
        span = f"{self._shown(self.low)} to {self._shown(self.high)}"
        far = max(_beyond(each, self.low, self.high) for each in self.values) >= CODED
        apart = f", far from all other values, {span}"
        if self.low < self.values[0] < self.high:
            apart = f", at least {OFTENER} times as often as any other value from {span}"
        elif not far and not self.values[0] < self.low < self.values[-1]:
            ends = (self.high, self.values[0]) if self.high < self.values[0] else (self.values[-1], self.low)
            apart = f" but nothing between {self._shown(ends[0])} and {self._shown(ends[1])}"
        return f"{where} holds {self}{apart}, and {count}: if {stand} for a missing value, {then}."

    def _shown(self, value: float, digits: int = 6) -> str:
        if not self.times:
            return f"{value:.{digits}g}"
        return str(np.datetime64(round(value), "s")).removesuffix("T00:00:00")


def _digits(number: float) -> int:
    """The number of digits of a code for "missing", 0 for other numbers.

    All are nines, of whole numbers the last may be 7 or 8; or it is -1, -7, -8 or -9.
    """
    digits = f"{abs(number):.12g}"
    if len(digits) == 1:
        return int(number < 0 and digits in "1789")
    whole = digits.isdigit()
    nines = set(digits[:-1].replace(".", "")) == {"9"} and digits[-1] in ("789" if whole else "9")
    return len(digits) if nines and (whole or len(digits) > 3) else 0


def _far_day(second: float) -> int:
    """As `_digits`, of times: 2 of a day in `DAYS`."""
    return 2 * (str(np.datetime64(round(second), "s"))[:10] in DAYS)


def _is_far(rest: np.ndarray, end: float) -> bool:
    """Whether the least or the largest value is repeated, and far from all others, which are no scale."""
    count = np.count_nonzero(rest == end)
    if not 2 <= count <= len(rest) - count:
        return False
    others = rest[rest != end]
    low, high = float(others.min()), float(others.max())
    return low < high and _beyond(end, low, high) >= REPEATED and len(np.unique(others)) >= MANY


def _beside_two(rest: np.ndarray, end: float) -> bool:
    """Whether this is a 7, 8 or 9, and others but such codes are 0 and 1, or 1 and 2: the answers no and yes."""
    if end not in YES_OR_NO:
        return False
    return np.unique(rest[~np.isin(rest, YES_OR_NO)]).tolist() in ([0.0, 1.0], [1.0, 2.0])


def _after_gaps(numbers: np.ndarray) -> set[float]:
    """Codes that gaps separate from whole numbers, of which they are no tail: above them, or negative ones below."""
    if not len(numbers) or not (_is_usual(numbers.max()) or -MOST <= numbers.min() < 0 or _is_usual(numbers.min())):
        return set()
    if not _are_whole(numbers):
        return set()
    values, counts = np.unique(numbers, return_counts=True)
    below = {code for code in _after_gap(values[::-1], counts[::-1]) if code < 0}
    return _after_gap(values, counts) | below


def _after_gap(values: np.ndarray, counts: np.ndarray) -> set[float]:
    """The last values, if they are codes after a gap: as many as chance does not explain."""
    for k in range(min(MOST, len(values) - 2), 0, -1):
        codes, rows = values[-k:], counts[-k:].sum()
        first = next(j for j, value in enumerate(values) if not _is_usual(value) or j == len(values) - k - 2)
        steps = np.abs(np.diff(values[first : len(values) - k]))
        places = np.abs(codes - values[-k - 1])
        chance = np.max(np.arange(1, k + 1) / places) ** rows
        gap = GAP if codes[0] == -1 or f"{abs(codes[-1]):.12g}"[0] in "19" else GAP_OF_NO_NINES
        usual = all(_is_usual(code) or (code < 0 and code + 1 in codes) for code in codes)
        if usual and places[0] >= max(gap, steps.max() + 1) and chance <= BY_CHANCE:
            return set(codes.tolist()) if rows <= SELDOM * counts.sum() else set()
    return set()


def _is_usual(number: float) -> bool:
    """Whether a whole number is -1 or repeats 7, 8 or 9, of which nines may end in 7 or 8: 88, 998."""
    digits = f"{abs(number):.12g}"
    return bool(_digits(number)) or (digits[0] in "789" and digits == digits[0] * len(digits))


def _beyond(value: float, low: float, high: float) -> float:
    """How far outside a value is, in ranges of the others."""
    return max(low - value, value - high) / (high - low)


def _finite(column: Array) -> np.ndarray | None:
    """The finite numbers of a column; None if it does not hold numbers."""
    numbers = np.asarray(column)
    if numbers.dtype.kind not in "fiu":
        return None
    finite = np.isfinite(numbers)
    return (numbers if finite.all() else numbers[finite]).astype(np.float64, copy=False)


def _are_whole(numbers: np.ndarray) -> bool:
    """Whether all are whole numbers; of most others the first thousand tell."""
    return all(bool((some == np.rint(some)).all()) for some in (numbers[:1000], numbers[1000:]))


def _is_spike(count: int, others: np.ndarray) -> bool:
    """Whether a value is far more frequent than any other."""
    least, times = SPIKE
    return count >= least and count >= times * int(np.unique(others, return_counts=True)[1].max())


def _is_negative(code: float, low: float, count: int, others: np.ndarray) -> bool:
    """Whether a negative code is frequent beside positive numbers, or but for -1 beside these and zeros."""
    return code < 0 <= low and (low > 0 or code < -1) and _is_spike(count, others[others != 0])


def _is_below(code: float, low: float, digits: int, count: int) -> bool:
    """Whether a negative code stands beside numbers that are not negative; one of a single digit, such as -1, in many
    rows, and with zero between.
    """
    return code < 0 <= low and (digits > 1 or (count >= SPIKE[0] and low > 0))
