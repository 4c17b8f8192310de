"""Plans of tests of variables side by side: how they begin with some rows, and the result from the state of all."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from meanmap.core.rng import Rng
from meanmap.core.tables.chunks import sampled
from meanmap.core.values import Value
from meanmap.features.states.pairs import readings_beside
from meanmap.features.states.passes import SAMPLE, SampleState, known_seed
from meanmap.features.states.reading import Reading, left_out_of, notes_of
from meanmap.stats.asked import Found
from meanmap.stats.result import TestResult
from meanmap.stats.settings import LEAST_POINTS, check_choice, check_draws

__all__ = ["VariablesPlan", "begun"]


def begun(
    sources: Sequence[Any], names: Sequence[str], missing: str, kinds: Any, random: Rng, most: int = SAMPLE
) -> tuple[int, tuple[Reading, ...], list[Any]]:
    """The seed of a plan, how each variable is read, and some rows of all."""
    seed, sample = known_seed(random), sampled(sources, random.generator, names, most)
    return seed, *readings_beside(sample, names, missing, kinds, LEAST_POINTS)


class VariablesPlan(Value):
    """The plan of a test of variables: choices made before all rows are read, and the result from their state."""

    readings: tuple[Reading, ...]
    seed: int

    @abstractmethod
    def _found(self, state: SampleState, n_draws: int, null: str) -> Found:
        """The outcome from the state of all rows."""

    def result(self, state: SampleState, n_permutations: int = 1000, null: str = "spectral") -> TestResult:
        """The test, from the state of all rows in the last pass; `n_permutations` draws are from the limit.

        `null` is "spectral" or "gamma", as in the test.
        """
        check_draws(n_permutations)
        check_choice("limit", null, {"limit": ("spectral", "gamma")})
        return self._found(state, n_permutations, null).result(self.seed)

    def _told(self, state: SampleState, names: str) -> tuple[str, ...]:
        """Notes on missing values, and on the rows that the plan was made from."""
        return *left_out_of(names, state), *notes_of(self.readings)
