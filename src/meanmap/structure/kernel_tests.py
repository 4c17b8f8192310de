"""The kernel tests of this library for the many questions of one search; shared parts are computed once."""

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, ParameterError
from meanmap.core.language import in_python
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of, probability
from meanmap.core.tables.table import Table
from meanmap.core.types import Data, Seed
from meanmap.kernels.base import Kernel
from meanmap.learning.default import asks_to_learn, strange_kernel
from meanmap.stats import independence_test
from meanmap.stats.conditional.asking_again import is_doubtful
from meanmap.stats.conditional.conditional import WHOLE
from meanmap.stats.conditional.judging import Fitted, judge, judge_streamed
from meanmap.stats.conditional.residuals import Given, Residuals, residuals
from meanmap.stats.conditional.settled import settled
from meanmap.stats.conditional.strata import found_in_strata, rows_together
from meanmap.stats.conditional.variables import Variable, read_given, read_variable
from meanmap.stats.independence.pairwise import PairwiseHSIC
from meanmap.stats.settings import LEAST_POINTS, MOST_PERMUTATIONS, check_draws
from meanmap.stats.texts import read_texts
from meanmap.structure.conditional_tests import Pair, Tests
from meanmap.structure.functions import functions_of_one, functions_told

__all__ = ["KernelTests"]

METHODS = ("auto", "kci", "residuals", "features")
# A gamma approximation with the limit's moments costs a fraction of the bootstrap. It decides if its p-value differs
# from the level by more than this factor; otherwise the bootstrap does.
NEAR = 6.0
# Fourier transforms of Gram matrices are kept up to this many bytes; beyond, pairs are tested one by one.
MOST_BYTES = 1.0e9
PERMUTATIONS = 1000
# More permutations, so that p-values can be corrected for the number of pairs: those of 32 variables at level .05.
MOST_FOR_PAIRS = 10_000
# A p-value, and the residuals of regressions if there is a conditioning set.
Answer = tuple[float, Fitted | None]


class KernelTests(Tests):
    """Independence tests by HSIC, and conditional ones by residuals, of the columns of a table.

    Without a conditioning set a pair is tested as by `mm.independence_test`, with the Gram matrices of a variable
    transformed once for all its pairs. Given z, as by `mm.conditional_independence_test`: the functions of z to regress
    on are found once for all pairs, and the residuals of a variable once for all its partners.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or array
        Numbers and labels, at least 5 rows.
    method : {"auto", "kci", "residuals", "features"}
        As for `mm.conditional_independence_test`.
    kernel : Kernel, "median", "learned" or None
        Of x and y in each test, as there: by default several kernels together where nothing is given.
    level : float
        The level that p-values are compared with: far from it a cheap approximation suffices.
    n_permutations : int, optional
        Permutations, or bootstrap draws: 1000 by default, and 5 / level where that is more; of permutations as many as
        the number of pairs / level, at most 10,000, so that p-values can be below level after Holm's correction. Fewer
        than 1 / level − 1 are refused: with them no p-value could be as small as level.
    rng : None, int, numpy.random.Generator or JAX key
        Each test has a separate seed, so that results do not depend on the order of tests.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200)
    >>> b = np.sin(2 * a) + 0.3 * rng.normal(size=200)
    >>> c = b**2 + 0.3 * rng.normal(size=200)
    >>> tests = KernelTests({"a": a, "b": b, "c": c}, rng=0)
    >>> bool(tests.pvalues([("a", "c")], ())[0] < 0.01), bool(tests.pvalues([("a", "c")], ("b",))[0] > 0.05)
    (True, True)
    """

    def __init__(
        self,
        table: Data,
        *,
        method: str = "auto",
        kernel: Kernel | str | None = None,
        level: float = 0.05,
        n_permutations: int | None = None,
        rng: Seed | Rng = None,
    ):
        one_of(method, "method", METHODS)
        default = n_permutations is None
        if n_permutations is None:
            needed = int(np.ceil(5 / probability(level, "level", 0.05)))
            n_permutations = min(max(PERMUTATIONS, needed), MOST_PERMUTATIONS)
        check_draws(n_permutations, probability(level, "level", 0.05))
        (read,), self._told = read_texts([Table.of(table)], ["table"])
        self._table = Table.of(read)
        self.names, self.n = self._table.names, len(self._table)
        if self.n < LEAST_POINTS:
            raise EmptyError(f"table has {self.n} rows; expected at least {LEAST_POINTS}.")
        self.seed: Any = Rng.of(rng).seed
        chosen = isinstance(kernel, Kernel) or kernel == "learned"
        if not (chosen or kernel in (None, "median")):
            raise strange_kernel(kernel)
        if chosen and method == "features":
            raise ParameterError("method='features' chooses its own kernels: pass kernel=None, or method='kci'.")
        self._level, self.n_permutations, self._asked, self._kernel = level, n_permutations, method, kernel
        # Conditional p-values far from the level are from a gamma distribution, and can be as small as they are.
        corrected = int(np.ceil(np.round(len(self.names) * (len(self.names) - 1) / 2 / level, 6)))
        self._permuted = max(n_permutations, min(corrected, MOST_FOR_PAIRS)) if default else n_permutations
        self.least = 1 / (1 + self._permuted)
        whole = self.n <= WHOLE or chosen
        self._method = ("kci" if whole else "features") if method == "auto" else method
        # Constant columns are refused here, by name.
        self._variables = {name: read_variable(self._table[name], f"table[{name!r}]") for name in self.names}
        self._widths = sorted(((v.columns.shape[1], name) for name, v in self._variables.items()), reverse=True)
        self.most_given = self._most_given(0)
        self._pairwise = self._transformed() if kernel is None else None
        # The variables given, functions of them, and what is left of others, at first and where that missed something.
        self._given: tuple[tuple[str, ...], Given, dict[str, Residuals], dict[str, Residuals]] | None = None
        self._together: dict[tuple[str, ...], np.ndarray | None] = {}
        self._functions: set[tuple[str, tuple[str, ...]]] = set()
        self._nearly: set[tuple[tuple[str, ...], str, str]] = set()
        self._missed: set[tuple[tuple[str, ...], str, str]] = set()

    def _transformed(self) -> PairwiseHSIC | None:
        """Gram matrices of all variables and their Fourier transforms, where memory holds them."""
        generator = np.random.default_rng(self.seed)
        pairwise = PairwiseHSIC({name: self._table[name] for name in self.names}, self._permuted, generator)
        # Five kernels a variable, half as many lags and half as many frequencies as rows, eight bytes each, and an
        # order for each n permutations.
        held = len(self.names) * 10.0 * self.n**2 * len(pairwise.shifts.orders)
        return pairwise if held <= MOST_BYTES else None

    def __repr__(self) -> str:
        return f"KernelTests({self.n} rows of {', '.join(map(str, self.names[:5]))}{', …' * (len(self.names) > 5)})"

    def pvalues(self, pairs: Sequence[Pair], given: tuple[str, ...]) -> np.ndarray:
        """A p-value for each pair; consecutive calls with the same variables given share their regressions."""
        # Without a conditioning set all pairs come at once, and the search has no other progress to show.
        return self.told(pairs, given, self.answers(track(pairs, f"tests given {len(given)}"), given))

    def answers(self, pairs: Iterable[Pair], given: tuple[str, ...]) -> list[Answer]:
        """A p-value for each pair and the residuals of regressions, before any notes are made."""
        return [self._answer(x, y, tuple(sorted(given))) for x, y in pairs]

    def told(self, pairs: Sequence[Pair], given: tuple[str, ...], answers: Sequence[Answer]) -> np.ndarray:
        """The p-values of answers, wherever they were computed; notes are made of them."""
        for (x, y), (p, fitted) in zip(pairs, answers, strict=True):
            if fitted is not None:
                x, y = self._ordered(x, y)
                self._keep(x, y, tuple(sorted(given)), fitted, p)
        return np.array([p for p, _ in answers])

    def __getstate__(self) -> dict[str, Any]:
        """For a copy in another thread or process, which computes shared parts by itself."""
        pairwise = None if self._pairwise is None else self._pairwise.unread()
        return {**self.__dict__, "_given": None, "_pairwise": pairwise}

    def _most_given(self, without: int) -> int:
        """The number of the widest variables that fit into a regression, without the first of them."""
        widths = [width for width, _ in self._widths[without:]]
        return int(np.sum(4 * (1 + np.cumsum(widths)) <= self.n))

    def crowded(self) -> str:
        """Which variable leaves little room for others to be given, and what to do; empty where none does."""
        width, name = self._widths[0]
        if self._most_given(1) <= self.most_given:
            return ""
        typed = in_python("leave it out of the table", f"leave it out with --exclude {shlex.quote(str(name))}")
        return f" The reason is {name!r}, which alone takes {width} coefficients of a regression: {typed}."

    def functions(self) -> list[Pair]:
        """Pairs (a, b) of columns such that a is nearly a function of b."""
        return functions_of_one({name: self._table[name] for name in self.names})

    def notes(self) -> list[str]:
        """What the reader of the answers should know about the data."""
        found = [*self._told, *(text for variable in self._variables.values() for text in variable.notes)]
        pairs = self.functions()
        found += functions_told(pairs)
        found += [
            f"{x} is a function of {', '.join(given)}: given these it is independent of all others, so edges may be "
            "missing."
            for x, given in sorted(self._functions)
            if len(given) > 1 or (x, *given) not in pairs
        ]
        if self._nearly:
            given, x, y = min(self._nearly, key=lambda each: (len(each[0]), each))
            times = f" (and likewise in {len(self._nearly) - 1} other tests)" if len(self._nearly) > 1 else ""
            found.append(
                f"nearly all of {x} and of {y} is explained by {', '.join(given)}{times}: what regressions miss looks "
                "like dependence, and there may be too many edges if these variables have no noise of their own."
            )
        if self._missed:
            given, x, y = min(self._missed, key=lambda each: (len(each[0]), each))
            times = f" (and likewise in {len(self._missed) - 1} other tests)" if len(self._missed) > 1 else ""
            found.append(
                f"residuals of {x} and of {y} are still correlated among rows that are neighbours in {', '.join(given)}"
                f"{times}: functions that were missed look like dependence, and there may be too many edges."
            )
        return found

    def rows(self, index: np.ndarray) -> "KernelTests":
        """These tests on some of the rows."""
        table = Table({name: self._table[name][index] for name in self.names})
        settings: dict[str, Any] = {"level": self._level, "n_permutations": self.n_permutations}
        return KernelTests(table, method=self._asked, kernel=self._kernel, rng=self.seed, **settings)

    def _ordered(self, x: str, y: str) -> list[str]:
        return sorted((x, y), key=self.names.index)

    def _answer(self, x: str, y: str, given: tuple[str, ...]) -> Answer:
        x, y = self._ordered(x, y)
        strata = self._strata(given) if given else None
        if strata is not None:
            return self._in_strata(x, y, given, strata), None
        if given:
            return self._streamed(x, y, given) if self._method == "features" else self._conditional(x, y, given)
        if self._pairwise is not None:
            return self._pairwise.pvalue(x, y), None
        settings: dict[str, Any] = {"n_permutations": self._permuted, "rng": self._generator(x, y)}
        return independence_test(self._table[x], self._table[y], self._kernel, **settings).pvalue, None

    def _strata(self, given: tuple[str, ...]) -> np.ndarray | None:
        """Which rows share all values of the conditioning set, if there are enough of them to permute."""
        if self._asked != "auto" or asks_to_learn(self._kernel) or self.n > WHOLE:
            return None
        if given not in self._together:
            self._together[given] = rows_together({name: self._table[name] for name in given})
        return self._together[given]

    def _in_strata(self, x: str, y: str, given: tuple[str, ...], strata: np.ndarray) -> float:
        random = Rng.of(self._generator(x, y, *given))
        kernels = ("median" if self._kernel is None else self._kernel,) * 2
        sides = [{name: self._table[name]} for name in (x, y)]
        with Door() as door:
            found = found_in_strata(sides, kernels, strata, self._permuted, random, door)
        return found.null.pvalue(found.statistic)

    def _streamed(self, x: str, y: str, given: tuple[str, ...]) -> Answer:
        with Door() as door:
            sides, random = (self._variables[x], self._variables[y]), self._generator(x, y, *given)
            conditions = read_given({name: self._table[name] for name in given})
            value, law, _, fitted = judge_streamed(sides, conditions, "spectral", self.n_permutations, random, door)
        return law.pvalue(value), fitted

    def _conditional(self, x: str, y: str, given: tuple[str, ...]) -> Answer:
        """The gamma approximation first, and the bootstrap near the level. Residuals have only permutations."""
        with Door() as door:
            conditions, (left, right) = self._residuals(x, y, given, door)
            null = "permutation" if self._method == "residuals" else "gamma"
            value, law = self._judged(left, right, conditions, null, (x, y, *given))
            p = law.pvalue(value)
            if null == "gamma" and self._level / NEAR < p < self._level * NEAR:
                value, law = self._judged(left, right, conditions, "bootstrap", (x, y, *given))
            two = (x, left), (y, right)
            found = settled(
                left,
                right,
                lambda: [self._again(conditions, *each, door) for each in two],
                self._method,
                "permutation" if self._method == "residuals" else "bootstrap",
                self.n_permutations,
                self._generator(x, y, *given),
                (value, law),
                self._level / NEAR if null == "gamma" else 0.0,
            )
        return found.pvalue, found.fitted

    def _keep(self, x: str, y: str, given: tuple[str, ...], fitted: Fitted, p: float) -> None:
        """The results that notes are made of."""
        self._functions |= {(name, given) for name, alone in zip((x, y), fitted.determined, strict=True) if alone}
        if fitted.nearly:
            self._nearly.add((given, x, y))
        elif is_doubtful(fitted.missed, p) and p <= self._level < fitted.sure:
            self._missed.add((given, x, y))

    def _judged(self, left: Residuals, right: Residuals, given: Given, null: str, names: tuple[str, ...]) -> Any:
        draws = self._permuted if null == "permutation" else self.n_permutations
        return judge(left, right, given, self._method, null, draws, self._generator(*names))

    def _residuals(self, x: str, y: str, given: tuple[str, ...], door: Door) -> tuple[Given, list[Residuals]]:
        if self._given is None or self._given[0] != given:
            conditions = read_given({name: self._table[name] for name in given})
            self._given = given, Given.of(conditions, self._generator(*given)), {}, {}
        _, conditions, known, _ = self._given
        for name in (x, y):
            if name not in known:
                known[name] = self._of_side(conditions, name, None, door)
        return conditions, [known[x], known[y]]

    def _again(self, conditions: Given, name: str, missed: Residuals, door: Door) -> Residuals:
        """What regressions that find what others missed leave of a variable, once for all its partners."""
        assert self._given is not None
        known = self._given[3]
        if name not in known:
            known[name] = self._of_side(conditions, name, missed, door)
        return known[name]

    def _of_side(self, conditions: Given, name: str, missed: Residuals | None, door: Door) -> Residuals:
        """The residuals of a variable, at first or from the regressions that find what others missed."""
        variable: Variable = self._variables[name]
        kernel = "median" if self._kernel is None and self._method == "residuals" else self._kernel
        return residuals(variable, kernel, conditions, door, self._generator(name), missed=missed)

    def _generator(self, *names: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *(1 + self.names.index(name) for name in names)])
