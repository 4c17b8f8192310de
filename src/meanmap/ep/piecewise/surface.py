"""Functions of a few numbers, learned from values at the points where they are wanted: polynomials by least squares.

In three or more dimensions tables would take too many nodes. A polynomial of bounded total degree takes a few values
for each coefficient, at points that may lie anywhere. Where it misses values that were held out, the function is called
at more of the wanted points, and cells with enough of them are halved. Elsewhere values are those of polynomials.
Points beyond the values of a cell are called.
"""

from collections.abc import Callable

import numpy as np

from meanmap.ep.piecewise.cell import Cell

__all__ = ["MOST_NUMBERS", "Surface"]

MOST_NUMBERS = 6

# The function is called at this many points first, then at half as many again as are known, while there are fewer than
# the second number of evaluations, and one for so many points that were answered; the last number is the most of all.
_FIRST, _MOST, _PER, _EVER = 512, 49_152, 500, 200_000

# Of the points that polynomials answer, one in so many is evaluated as well, and so many at first; so many of the last
# ones count.
_AUDITED, _AUDITS, _WINDOW = 2000, 500, 4000

# Fewer open points than this share are called rather than learned from; twice the share after so many questions, as
# beliefs have to come to rest.
_OPEN, _PATIENCE = 0.002, 10

# So many values are called again when a run begins, so many of each question at most, and they are the same as before
# but for this share.
_KNOWN, _NEW, _SAME = 64, 16, 1e-6

# Of n points that were checked none is missed by the whole scale, in one of twenty cases, where this many / n are.
_UNSEEN = 3.0


class Surface:
    """One function of a few numbers: as many evaluations as it takes, and polynomials for the rest.

    Attributes
    ----------
    error : float
        Root mean square of what polynomials miss at the points that they answer, at most: the largest since it was set
        to 0. A miss by more than the scale that matters counts as the scale; misses that are too rare to have been
        met among the points that were checked are allowed for.
    bias : float
        The absolute value of the mean of what they miss, at most.
    refused : str
        Why the function is not learned; empty while it may be.
    evaluations, answered, checked, called : int
        Values that were learned from, points that were answered without a call, points at which polynomials that
        answered last were compared with the function, and calls.
    """

    def __init__(self) -> None:
        self.error, self.refused, self.called = 0.0, "", 0
        self._rng = np.random.default_rng(0)
        self._forget()

    def _forget(self) -> None:
        self.root: Cell | None = None
        self.evaluations = self.answered = self.checked = 0
        self._sum = self._squares = 0.0
        self._asked, self._scale, self._audits = 0, 1.0, np.zeros((0, 2))
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []
        # Points as they were called, and their values, to be called again.
        self._again: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def most(self) -> int:
        """The most evaluations that may be learned from by now."""
        return min(_MOST + self.answered // _PER, _EVER)

    @property
    def spread(self) -> float:
        """The standard deviation of the values so far."""
        n = self.evaluations
        return float(np.sqrt(max(self._squares / n - (self._sum / n) ** 2, 0.0))) if n else np.inf

    def begin(self) -> None:
        """A new run begins."""
        self._asked = 0
        if self._kept and self.root is not None:
            self._learn(self._scale)

    def ask(
        self, evaluate: Callable[[np.ndarray], np.ndarray], x: np.ndarray, scale: Callable[[float], float]
    ) -> np.ndarray:
        """Values at points (n, d): `evaluate` calls the function, `scale` gives what matters from the spread of values.

        At the first question of a run values that are known are compared with new ones; where any differs, all is
        forgotten.
        """
        if self.refused:
            return evaluate(x)
        if self._asked == 0 and self._again is not None:
            points, values = self._again
            if not np.allclose(self._called(evaluate, points), values, _SAME, _SAME * self.spread, equal_nan=True):
                self._forget()
        self._asked += 1
        if self.root is None:
            finite = np.isfinite(x).all(1)
            known = x[finite] if finite.any() else np.zeros((1, x.shape[1]))
            self._centre, width = known.mean(0), known.std(0)
            self._width = np.where(width > 0, width, 1.0)
            self.root = Cell(np.zeros((0, x.shape[1])), np.zeros(0))
        u = np.arcsinh((x - self._centre) / self._width)
        value, told = np.full(len(x), np.nan), ~np.isfinite(u).all(1)
        if told.any():
            value[told] = self._called(evaluate, x[told])
        audits = 0
        while True:
            now = scale(self.spread)
            open_, answers = self._answers(u, ~told, now)
            few = _OPEN * (1 + self._asked / _PATIENCE) * len(x)
            if len(open_) > max(few, 1) and self.evaluations < self.most:
                chosen = self._rng.permutation(open_)[: max(_FIRST, self.evaluations // 2)]
                value[chosen], told[chosen] = self._called(evaluate, x[chosen]), True
                self._remember(x[chosen], value[chosen])
                self._keep(u[chosen], value[chosen])
                self._learn(now)
            elif not audits and answers:
                audits = max(len(x) // _AUDITED, _AUDITS - len(self._audits), 1)
                self._audit(x, u, audits, answers, evaluate, now)
            else:
                break
        for cell, at in answers:
            value[at] = cell(u[at])
        count = sum(len(at) for _, at in answers)
        if count:
            self.checked = max(sum(cell.held for cell, _ in answers), len(self._audits))
            held = sum(len(at) * cell.error(now) ** 2 for cell, at in answers) / count
            unseen = _UNSEEN / self.checked * now**2
            self.error = max(self.error, float(np.sqrt(max(held, _at_most(self._off(now) ** 2)) + unseen)))
        self.answered += count
        if len(open_):
            value[open_] = self._called(evaluate, x[open_])
            self._keep(u[open_], value[open_])
            if self.evaluations >= self.most and len(open_) > len(x) / 2:
                self.refused = (
                    f"polynomials of {self.evaluations:,} evaluations are good enough at {1 - len(open_) / len(x):.0%} "
                    "of the points"
                )
                self._forget()
        return value

    def _called(self, evaluate: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
        self.called += len(x)
        return evaluate(x)

    def _answers(
        self, u: np.ndarray, rest: np.ndarray, scale: float
    ) -> tuple[np.ndarray, list[tuple[Cell, np.ndarray]]]:
        """The points that must be called, and the cells that answer the others."""
        assert self.root is not None
        open_, answers = [np.zeros(0, int)], []
        for cell, at in self.root.leaves(u, np.flatnonzero(rest)):
            held = cell.holds(u[at]) if cell.fitted_on and cell.is_known(scale) else np.zeros(len(at), bool)
            open_.append(at[~held])
            if held.any():
                answers.append((cell, at[held]))
        return np.concatenate(open_), answers

    def _audit(
        self,
        x: np.ndarray,
        u: np.ndarray,
        count: int,
        answers: list[tuple[Cell, np.ndarray]],
        evaluate: Callable[[np.ndarray], np.ndarray],
        scale: float,
    ) -> None:
        """Evaluate a few of the points that polynomials answer; what they miss counts."""
        audited = self._rng.permutation(np.concatenate([at for _, at in answers]))[:count]
        value = np.full(len(x), np.nan)
        value[audited] = self._called(evaluate, x[audited])
        self._remember(x[audited], value[audited])
        self._keep(u[audited], value[audited])
        for cell, at in answers:
            mine = np.intersect1d(at, audited)
            off = cell(u[mine]) - value[mine]
            missed = np.where(np.abs(off) < scale, off, np.copysign(scale, off))  # so is what is no number
            cell.squares, cell.held = cell.squares + float((missed**2).sum()), cell.held + len(mine)
            cell.scale = min(cell.scale, scale)
            new = np.stack([missed, np.full(len(mine), scale)], 1)
            self._audits = np.concatenate([self._audits, new])[-_WINDOW:]

    def off(self, evaluate: Callable[[np.ndarray], np.ndarray], x: np.ndarray, scale: float) -> np.ndarray:
        """What polynomials miss at points (n, d), of which all are evaluated; 0 where they would be called."""
        if self.root is None:
            return np.zeros(len(x))
        u, missed = np.arcsinh((x - self._centre) / self._width), np.zeros(len(x))
        _, answers = self._answers(u, np.isfinite(u).all(1), scale)
        at = np.concatenate([np.zeros(0, int), *(at for _, at in answers)])
        true = self._called(evaluate, x[at])
        missed[at] = np.concatenate([np.zeros(0), *(cell(u[at]) for cell, at in answers)]) - true
        self._keep(u[at], true)
        return np.where(np.isfinite(missed), missed, np.maximum(scale, self.spread))

    @property
    def bias(self) -> float:
        """The mean of what polynomials miss, in absolute value, at most: by audits, two standard errors more."""
        return _at_most(self._audits[:, 0])

    def _off(self, scale: float) -> np.ndarray:
        """What audits found, at most: those with a smaller scale counted large misses less."""
        return self._audits[:, 0] * np.maximum(scale / self._audits[:, 1], 1.0)

    def _remember(self, x: np.ndarray, y: np.ndarray) -> None:
        """A few of these points are called again in later runs, as they are."""
        old = (x[:0], y[:0]) if self._again is None else self._again
        of_x, of_y = (np.concatenate([one, more[:_NEW]])[-_KNOWN:] for one, more in zip(old, (x, y), strict=True))
        self._again = of_x, of_y

    def _keep(self, u: np.ndarray, y: np.ndarray) -> None:
        """To be learned: in a sweep that needs it, or in the next run, as beliefs converge on values that stay."""
        if self.evaluations + sum(len(known) for _, known in self._kept) < self.most:
            self._kept.append((u, y))

    def _learn(self, scale: float) -> None:
        assert self.root is not None
        u, y = (np.concatenate(each) for each in zip(*self._kept, strict=True))
        self._kept, self._scale = [], scale
        finite = y[np.isfinite(y)]
        self.evaluations += len(y)
        self._sum, self._squares = self._sum + float(finite.sum()), self._squares + float((finite**2).sum())
        for cell, at in list(self.root.leaves(u, np.arange(len(u)))):
            cell.add(u[at], y[at], scale)


def _at_most(found: np.ndarray) -> float:
    """The absolute value of a mean, and two standard errors."""
    return float(abs(found.mean()) + 2 * found.std() / np.sqrt(len(found))) if len(found) else 0.0
