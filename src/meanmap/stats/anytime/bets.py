"""Anytime-valid two-sample and independence tests by betting: look after every batch, and stop when convinced."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from meanmap.core.arrays import check_paired
from meanmap.core.door import Door
from meanmap.core.notes import warn_of
from meanmap.core.pictures import new_axes
from meanmap.core.rng import Rng
from meanmap.core.settings import by_name, probability
from meanmap.core.synonyms import made_by, own_words
from meanmap.core.tables.assigned import together, units_in
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.missing import settle
from meanmap.core.tables.order import alike_in_order
from meanmap.core.types import Axes, Data, KernelLike, Seed
from meanmap.core.values import Value
from meanmap.features.base import Features, transformed
from meanmap.features.states.reading import Reading
from meanmap.learning.default import is_default
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.anytime.wager import GROUP, Wager
from meanmap.stats.independence.moments import features_of
from meanmap.stats.independence.variables import for_two, kernels_of
from meanmap.stats.pages import WHERE, bet_page
from meanmap.stats.samples.feature_statistics import landmark_features
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.texts import refuse_numbers, texts_as_labels

__all__ = ["Bet", "IndependenceBet", "TwoSampleBet"]

# Landmarks of each kernel; features of each of two variables.
LANDMARKS, RANK = 64, 24
NAMES = ("x", "y")
# The consequence of serially dependent rows.
HARM = (
    "wealth grows without a difference, and the test rejects too often. Bet on one row of each user, such as their "
    "means, or on rows that lie far enough apart"
)


@dataclass(frozen=True, eq=False, repr=False)
class Bet(Paged, Value, ABC):
    """A bet against the null hypothesis that continues from batch to batch.

    Attributes
    ----------
    wager : Wager
        What has been learned, and the wealth so far.
    log_evalues : array (T,)
        The logarithm of the e-value after each batch. The first batch is only learned from; there is no bet on it.
    seed : int or None
        `rng=bet.seed` repeats the choices.
    """

    paired: ClassVar[bool] = False  # whether a row of x belongs to a row of y

    features: tuple[Features, ...]
    readings: tuple[Reading, ...]
    left: tuple[np.ndarray, ...]
    wager: Wager
    log_evalues: np.ndarray
    seed: int | None

    @property
    def evalue(self) -> float:
        """The wealth that one unit has grown to.

        Under the null hypothesis its expectation is at most one, at any stopping time. E-values of independent data
        sets can be multiplied.
        """
        return float(np.exp(np.minimum(self.log_evalues[-1], 700.0)))

    @property
    def pvalue(self) -> float:
        """One over the largest e-value so far, at most 1: valid however often it is looked at (Ville 1939)."""
        return float(min(1.0, np.exp(-np.max(self.log_evalues))))

    @own_words
    def reject(self, level: float = 0.05) -> bool:
        """Whether an e-value has ever reached 1 / level."""
        return self.pvalue <= probability(level, "level", 0.05)

    @own_words
    def update(self, x: Data, y: Data) -> Any:
        """The bet after one more batch, whose missing values are handled as in the first."""
        told = {name for reading in self.readings if reading.schema for name, _ in reading.schema.kinds}
        x, y = _settle(x, y, self.readings[0].missing, self.paired, told)
        with Door() as door:
            phi = [
                np.concatenate([left, _features(features, reading.read(data, name), name, door)])
                for left, features, reading, data, name in zip(
                    self.left, self.features, self.readings, (x, y), NAMES, strict=True
                )
            ]
        wager, left = self._after(*phi)
        return replace(self, left=left, wager=wager, log_evalues=np.append(self.log_evalues, float(wager.log_evalue)))

    @abstractmethod
    def _after(self, x: np.ndarray, y: np.ndarray) -> tuple[Wager, tuple[np.ndarray, np.ndarray]]:
        """The wager after bets on these features, and the features left over for the next batch."""

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the e-value after each batch; returns the matplotlib Axes."""
        ax = new_axes(6, 2.8) if ax is None else ax
        ax.plot(np.arange(1, len(self.log_evalues) + 1), self.log_evalues / np.log(10), label="e-value")
        ax.axhline(np.log10(20), color="grey", ls="--", lw=1, label="20: rejected at level 0.05")
        ax.set(xlabel="batch", ylabel="log₁₀ e-value")
        ax.legend(fontsize="small")
        return ax

    def _as_page(self, brief: bool = False) -> Page:
        return bet_page(self)

    def __str__(self) -> str:
        verdict = "rejected" if self.reject() else "not rejected"
        number = len(self.log_evalues)
        batches = f"{number} batch{'es' * (number != 1)}"
        hint = f". {WHERE}" if self.reject() and not self.paired else ""
        return (
            f"{type(self).__name__} after {batches}: e-value {self.evalue:.4g}, p-value at any time {self.pvalue:.4g} "
            f"({verdict} at level 0.05){hint}"
        )


@made_by("mm.stats.TwoSampleBet.of(x, y)")
class TwoSampleBet(Bet):
    """An anytime-valid two-sample test, which may be looked at after every batch.

    `bet = mm.stats.TwoSampleBet.of(x, y)` begins with a first batch, `bet = bet.update(x, y)` continues, and
    `bet.reject()` may be called each time: under the null hypothesis the probability that it is ever true is at most
    the level.

    Notes
    -----
    Rows of both samples are paired in the order of arrival. Under the null hypothesis the two rows of a pair are
    exchangeable given all earlier ones, and φ(xᵢ) − φ(yᵢ) is symmetric about zero. Rows of one user are not: bet on one
    row of each. Bets follow the witness μ̂_P − μ̂_Q of all earlier batches (Shekhar & Ramdas 2023, arXiv:2112.09162;
    Podkopaev et al. 2023 for independence), see `Wager`. A batch costs O(b r) for r features, 64 landmarks of the first
    batch for each kernel.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bet = TwoSampleBet.of(rng.normal(size=40), rng.normal(1.0, 1.0, size=40), rng=0)
    >>> while not bet.reject():
    ...     bet = bet.update(rng.normal(size=10), rng.normal(1.0, 1.0, size=10))
    >>> len(bet.log_evalues) < 20
    True
    """

    @classmethod
    @own_words
    def of(
        cls,
        x: Data,
        y: Data,
        kernel: KernelLike = None,
        *,
        scale: bool = True,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "TwoSampleBet":
        """The bet after a first batch, which serves to choose kernels and landmarks and to learn the first witness.

        Parameters
        ----------
        x, y, kernel, scale, missing, kinds : as for `two_sample_test`
            At least 5 rows of each. Later batches have the same columns, and may differ in size.
        rng : None, int, numpy.random.Generator or JAX key
            Chooses landmarks.
        """
        random = Rng.of(rng)
        x, y = _settle(x, y, missing, cls.paired, kinds or (), (kernel,))
        warn_of(
            f"{together(name, units.crossed)}: {HARM}. {name!r} is compared like the others: leave it out."
            for name, units in units_in((x, y), NAMES, list(map(str, kinds or ()))).items()
        )
        reading, (x, y) = Reading.of((x, y), NAMES, missing, kinds, LEAST_POINTS)
        _warn_of_texts((x, y), NAMES, kernel)
        with Door() as door:
            samples = read_samples((x, y), NAMES, kernel, random.generator, door, scale, must_vary=False)
            features = landmark_features(samples.kernels, samples.pooled, LANDMARKS, random.generator, door, np.float64)
            phi = [transformed(features, samples[i]) for i in range(2)]
        x, y = phi
        n = min(len(x), len(y))
        wager = Wager.begin(x[:n] - y[:n])
        return cls((features,) * 2, (reading,) * 2, (x[n:], y[n:]), wager, np.zeros(1), random.seed)

    def _after(self, x: np.ndarray, y: np.ndarray) -> tuple[Wager, tuple[np.ndarray, np.ndarray]]:
        n = min(len(x), len(y))
        return self.wager.after(x[:n] - y[:n]) if n else self.wager, (x[n:], y[n:])


@made_by("mm.stats.IndependenceBet.of(x, y)")
class IndependenceBet(Bet):
    """An anytime-valid test of independence, which may be looked at after every batch.

    `bet = mm.stats.IndependenceBet.of(x, y)` begins with a first batch, `bet = bet.update(x, y)` continues, and
    `bet.reject()` may be called each time.

    Notes
    -----
    Under the null hypothesis the y of any seven pairs are exchangeable. Bets follow the cross-covariance operator
    estimated so far (as in Podkopaev et al. 2023, arXiv:2212.07383, with groups of two pairs): the wealth is multiplied
    by exp(λ s) over its mean under 42 exchanges, where s is the component of the seven pairs along that operator, see
    `Wager`. Incomplete groups of seven wait for the next batch. At most 24 features of each variable: O(24² b) for a
    batch of b pairs.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=400)
    >>> bet = IndependenceBet.of(x[:100], x[:100] ** 2, rng=0).update(x[100:], x[100:] ** 2)
    >>> bet.reject()
    True
    """

    paired: ClassVar[bool] = True

    @classmethod
    @own_words
    def of(
        cls,
        x: Data,
        y: Data,
        kernel: KernelLike = None,
        *,
        kernel_x: KernelLike = None,
        kernel_y: KernelLike = None,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "IndependenceBet":
        """The bet after a first batch, which serves to choose kernels and features and to learn the first operator.

        Parameters
        ----------
        x, y, kernel, kernel_x, kernel_y, missing, kinds : as for `independence_test`
            One kernel for each variable, by default with the median distance as lengthscale; at least 5 pairs.
        rng : None, int, numpy.random.Generator or JAX key
            Chooses kernels and features.
        """
        wanted = for_two(kernel, kernel_x, kernel_y)
        random = Rng.of(rng)
        features: list[Features] = []
        readings: list[Reading] = []
        phi: list[np.ndarray] = []
        x, y = _settle(x, y, missing, cls.paired, kinds or (), wanted)
        with Door() as door:
            for data, want, name in zip((x, y), wanted, NAMES, strict=True):
                ours = {
                    column: kind
                    for column, kind in by_name(kinds, "kinds", '{"zip": "label"}').items()
                    if column in _columns(data)
                }
                reading, (data,) = Reading.of((data,), (name,), missing, ours or None, LEAST_POINTS)
                _warn_of_texts((data,), (name,), want)
                one = kernels_of(want, data, name, "median", random.generator)[0]
                features.append(features_of(one, data, name, random.generator, door, tolerance=1e-3, most=RANK))
                readings.append(reading)
                phi.append(_features(features[-1], data, name, door))
        first, second = phi
        check_paired(len(first), len(second))
        wager = Wager.begin_with_pairs(first, second)
        return cls(tuple(features), tuple(readings), (first[:0], second[:0]), wager, np.zeros(1), random.seed)

    def _after(self, x: np.ndarray, y: np.ndarray) -> tuple[Wager, tuple[np.ndarray, np.ndarray]]:
        check_paired(len(x), len(y))
        n = len(x) // GROUP * GROUP
        groups = [side[:n].reshape(-1, GROUP, side.shape[1]) for side in (x, y)]
        return self.wager.after_pairs(*groups) if n else self.wager, (x[n:], y[n:])


def _settle(
    x: Data, y: Data, missing: str, paired: bool, told: Collection[str], kernels: Sequence[object] = ()
) -> list[Any]:
    """A batch without missing values: of pairs, whole rows are dropped, and a warning counts them.

    Another warning names columns that may not be what they seem, except those whose kind is `told`. In a first batch,
    which comes with the `kernels` of the variables, numbers as text are refused where a kernel is a default one, and a
    warning says whether neighbouring rows are alike.
    """
    if paired:
        check_order((x, y), NAMES)
    batch, notes = settle((x, y), NAMES, missing, paired)
    if paired:
        for side, name, kernel in zip(batch, NAMES, kernels, strict=bool(kernels)):
            refuse_numbers([side], [name], told, kernel)
    elif kernels:
        refuse_numbers(batch, NAMES, told, *kernels)
    alike = alike_in_order(batch, NAMES, HARM, paired=paired) if kernels else ()
    warn_of((*notes, *doubts(batch, NAMES, told, apart=paired), *alike))
    return batch


def _warn_of_texts(samples: Sequence[Data], names: Sequence[str], kernel: object) -> None:
    """Later batches are read by the kernels chosen from the first one; texts are then only equal or not."""
    if is_default(kernel):
        warn_of(texts_as_labels(samples, names))


def _features(features: Features, data: Data, name: str, door: Door) -> np.ndarray:
    return transformed(features, features.read(data, name, door))


def _columns(data: Data) -> Any:
    return getattr(data, "columns", data if isinstance(data, Mapping) else ())
