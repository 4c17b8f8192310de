"""Missing values of a monitor: does a batch have more of them in a column than the rows before?"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from meanmap.core.errors import EmptyError
from meanmap.core.language import in_few_words, in_percent, in_python
from meanmap.core.tables.missing import gaps_in
from meanmap.core.types import Data
from meanmap.core.values import Value
from meanmap.stats.samples.run_length import accumulated

__all__ = ["Gaps", "check_complete", "most_missing"]

# At most this many columns are named in a note.
MOST_NAMED = 3
# A decrease in missing values is noted if a number as small has at most this probability.
CHANCE = 0.001


def most_missing(gaps: Mapping[str, np.ndarray]) -> str:
    """The columns with missing values, those with most of them first.

    Examples
    --------
    >>> most_missing({"'a'": np.array([False, True]), "'b'": np.array([True, True])})
    "'b' (100%), 'a' (50%)"
    """
    shares = sorted(
        ((float(lost.mean()), name) for name, lost in gaps.items() if lost.any()), key=lambda each: -each[0]
    )
    return in_few_words([f"{name} ({in_percent(share)}%)" for share, name in shares], MOST_NAMED)


def check_complete(reference: Data, missing: str, least: int) -> None:
    """Refuse a reference with fewer rows than `least` without a missing value, and name the columns that lack most."""
    gaps = gaps_in(reference, "reference", missing)
    lost = np.asarray(np.stack([*gaps.values()], axis=1).any(axis=1))
    complete = int(np.count_nonzero(~lost))
    if lost.any() and complete < least:
        out = in_python("leave columns out, or pass missing='category' for labels", "leave columns out with --exclude")
        raise EmptyError(
            f"{complete} of {len(lost)} rows of the reference have no missing value; expected at least {least}. Values "
            f"are missing in {most_missing(gaps)}: {out}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Gaps(Value):
    """Which values of the pool of a monitor are missing, with the p-values and the evidence of all batches.

    Given how many values of a column are missing in pool and batch together, the number in the batch is hypergeometric
    while rows are exchangeable. The p-value of as many or more is exact, and corrected for the columns that have
    missing values at all (Bonferroni): a column that loses all its values raises an alarm at once, and tables without
    missing values add no evidence.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    pool : bool array (n, d)
        The missing values of a random part of the rows so far, complete or not, as large as the part of the reference.
    pvalues, evidence : array (T,)
        The p-values and the evidence of missing values alone.
    columns : dict
        The p-value of each column with missing values in the latest batch, or in the pool before it.
    shares : dict
        The share of values that were missing in the reference, and in the latest batch, for these columns.
    fewer : tuple of str
        The columns with so few missing values in the latest batch, fewer than in the reference, that it is hardly
        chance: no alarm, but a note.
    reported : tuple of str
        The columns that the latest batch lacks and that have raised an alarm; they raise no other until they have
        values again.
    reference : dict
        The share of missing values of each column in the reference; that of the pool stands in where it has none.
    """

    names: tuple[str, ...]
    pool: np.ndarray
    pvalues: np.ndarray = field(default_factory=lambda: np.zeros(0))
    evidence: np.ndarray = field(default_factory=lambda: np.zeros(0))
    columns: dict[str, float] = field(default_factory=dict)
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)
    fewer: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    reference: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, reference: Data, missing: str, most: int, generator: np.random.Generator) -> "Gaps":
        """Start from at most this many rows of the reference."""
        found = gaps_in(reference, "reference", missing)
        pool = np.stack(list(found.values()), axis=1)
        shares = dict(zip(found, pool.mean(axis=0).tolist(), strict=True))
        if len(pool) > most:
            pool = pool[np.sort(generator.choice(len(pool), most, replace=False))]
        return cls(tuple(found), pool, reference=shares)

    def step(
        self,
        found: dict[str, np.ndarray],
        restarted: bool,
        generator: np.random.Generator,
        lost: Collection[str] = (),
        exceeded: Callable[[float, float], bool] | None = None,
    ) -> "Gaps":
        """The state after one more batch with these missing values; nearly all values of `lost` columns are missing.
        Evidence restarts after an alarm. A batch without some columns is left to other checks.
        """
        from scipy.stats import hypergeom

        if not set(self.names) <= set(found):
            return self
        new = np.stack([found[name] for name in self.names], axis=1)
        both = np.concatenate([self.pool, new])
        total, inside = both.sum(axis=0), new.sum(axis=0)
        varies = np.flatnonzero((total > 0) & (total < len(both)))
        law = hypergeom(len(both), total[varies], len(new))
        each = np.minimum(law.sf(inside[varies] - 1) * len(varies), 1.0)
        reported = [name for name in self.reported if name in lost]
        each[[self.names[j] in reported for j in varies]] = 1.0
        pvalue = float(each.min(initial=1.0))
        evidence = accumulated(self.evidence, pvalue, restarted)
        if exceeded is not None and exceeded(evidence, pvalue):
            reported += [
                self.names[j]
                for j, p in zip(varies, each, strict=True)
                if p <= max(pvalue, CHANCE) and self.names[j] in lost
            ]
        own = dict(zip(self.names, self.pool.mean(axis=0).tolist(), strict=True)) | self.reference
        shares = np.stack([np.array([own[name] for name in self.names]), new.mean(axis=0)], axis=1)
        order = varies[np.argsort(each, kind="stable")]
        fewer = [j for j in varies[law.cdf(inside[varies]) * len(varies) <= CHANCE] if shares[j, 1] < shares[j, 0]]
        return replace(
            self,
            pool=both[generator.choice(len(both), len(self.pool), replace=False)],
            pvalues=np.append(self.pvalues, pvalue),
            evidence=np.append(self.evidence, evidence),
            columns=dict(zip((self.names[j] for j in order), np.sort(each).tolist(), strict=True)),
            shares={self.names[j]: (float(shares[j, 0]), float(shares[j, 1])) for j in order},
            fewer=tuple(self.names[j] for j in fewer),
            reported=tuple(reported),
        )

    def compared(self, parts: Sequence[Mapping[str, np.ndarray]]) -> tuple[float, str]:
        """The p-value of some batches together, and the columns with the most evidence in them, as a text."""
        together = {name: np.concatenate([part[name] for part in parts]) for name in self.names}
        found = self.step(together, True, np.random.default_rng(0))
        rows = f"the latest {len(next(iter(together.values()), ()))} rows"
        return float(found.pvalues[-1]), in_few_words(found._most(rows), MOST_NAMED) if found.columns else ""

    def notes(self, alarm: bool) -> tuple[str, ...]:
        """Notes on increases of missing values in the latest batch, if there is an alarm, and on decreases."""
        most = in_few_words(self._most(), MOST_NAMED) if alarm else ""
        told = (f"the alarm is about missing values: {most}.",) if alarm else ()
        if not self.fewer:
            return told
        named = [f"{name} in {_shares(*self.shares[name])}" for name in self.fewer]
        return (*told, f"fewer values are missing, which raises no alarm: {in_few_words(named, MOST_NAMED)}.")

    def _most(self, rows: str = "the rows") -> list[str]:
        """The columns with the most evidence in the latest batch."""
        least = min(self.columns.values())
        return [
            f"{name} is missing in {_shares(before, here, rows)}"
            for name, (before, here) in self.shares.items()
            if self.columns[name] <= max(least, 0.01)
        ]


def _shares(before: float, here: float, rows: str = "the rows") -> str:
    return f"{100 * here:.3g}% of {rows}, {100 * before:.3g}% in the reference"
