"""Which variables are adjacent: those that no set separates."""

from collections.abc import Iterator
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, groupby, islice
from typing import Any

import numpy as np

from meanmap.core.executors import worked
from meanmap.core.progress import track
from meanmap.core.threads import one_blas_thread
from meanmap.structure.conditional_tests import Answered, Tests, checked_pvalue
from meanmap.structure.knowledge import Knowledge

__all__ = ["Answers", "find_skeleton", "lost_edges"]

Given = tuple[int, ...]
Pairs = list[tuple[int, int]]

# Sets whose questions are sent to an executor at a time. Some answers are then not needed, because a pair that one set
# separates is not tested again.
SETS_AT_ONCE = 16
# With nothing given, pairs of this many variables with this many go together, since a variable is read once for all of
# its pairs in a task.
VARIABLES_AT_ONCE = 4


@dataclass
class Answers:
    """Every question asked so far, by variable number, with its p-value: none is asked twice.

    `levels` counts the questions with 0, 1, 2, ... variables given; `skipped` says that larger sets could not be given.
    An `executor` computes answers ahead of time; questions and answers are the same without it.
    """

    tests: Tests
    executor: Executor | None = None
    pvalues: dict[tuple[int, int], dict[Given, float]] = field(default_factory=dict)
    skipped: bool = False
    known: dict[tuple[Given, tuple[int, int]], Any] = field(default_factory=dict)

    def ahead(self, questions: Iterator[tuple[Given, Pairs]]) -> Iterator[tuple[Given, Pairs]]:
        """Questions in their order, in batches whose answers an executor computes in advance."""
        if self.executor is None:
            yield from questions
            return
        while some := list(islice(questions, SETS_AT_ONCE)):
            tasks = [(given, task) for given, pairs in some for task in self._tasks(given, pairs)]
            answered = worked(partial(_answered, self.tests), [self._named(*task) for task in tasks], self.executor)
            for (given, pairs), answers in zip(tasks, answered, strict=True):
                self.known |= {(given, pair): answer for pair, answer in zip(pairs, answers, strict=True)}
            yield from some
            self.known.clear()

    def _tasks(self, given: Given, pairs: Pairs) -> list[Pairs]:
        """New questions about one set, sent together because they share its regressions."""
        new = [pair for pair in pairs if given not in self.pvalues.get(pair, {})]
        if given:
            return [new] if new else []
        tile = lambda pair: tuple(i // VARIABLES_AT_ONCE for i in pair)  # noqa: E731
        return [list(together) for _, together in groupby(sorted(new, key=tile), tile)]

    def _named(self, given: Given, pairs: Pairs) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        names = self.tests.names
        return [(names[a], names[b]) for a, b in pairs], tuple(names[i] for i in given)

    def ask(self, pairs: Pairs, given: Given) -> list[float]:
        """The p-values of pairs a < b."""
        new = [pair for pair in pairs if given not in self.pvalues.get(pair, {})]
        if new:
            named, names = self._named(given, new), self.tests.names
            if all((given, pair) in self.known for pair in new):
                found = self.tests.told(*named, [self.known[given, pair] for pair in new])
            else:
                found = self.tests.pvalues(*named)
            for pair, p in zip(new, found, strict=True):
                self.pvalues.setdefault(pair, {})[given] = checked_pvalue(float(p), (names[pair[0]], names[pair[1]]))
        return [self.pvalues[pair][given] for pair in pairs]

    def of(self, a: int, b: int) -> dict[Given, float]:
        """All p-values of a pair, in the order they were asked for."""
        return self.pvalues.get((min(a, b), max(a, b)), {})

    @property
    def levels(self) -> dict[int, int]:
        """The number of tests that conditioned on this many variables."""
        sizes = [len(given) for found in self.pvalues.values() for given in found]
        return {size: sizes.count(size) for size in sorted(set(sizes))}


def find_skeleton(
    tests: Tests,
    level: float,
    knowledge: Knowledge,
    most_given: int | None,
    executor: Executor | None = None,
) -> tuple[np.ndarray, Answers]:
    """The symmetric adjacency matrix, by the order-independent PC algorithm (Colombo & Maathuis 2014, algorithm 4.1).

    Sets of k neighbours are given for k = 0, 1, 2, ...; neighbours are fixed at the start of each k, so that the order
    of pairs does not matter. It proceeds set by set: all pairs that the same variables may separate are tested
    together. The parents of one of the two separate any pair that is not adjacent, so neighbours that are known not to
    cause it are not given.
    """
    adjacency = ~np.eye(len(tests.names), dtype=bool) & ~knowledge.apart
    known = knowledge.required | knowledge.required.T
    answers, size = Answers(tests, executor), 0
    while True:
        questions = _questions(adjacency, adjacency & ~known, knowledge, size)
        if not questions or (most_given is not None and size > most_given):
            return adjacency, answers
        if size > tests.most_given:
            answers.skipped = True
            return adjacency, answers
        joined = lambda pairs: [(a, b) for a, b in pairs if adjacency[a, b]]  # noqa: E731
        asked = ((given, joined(pairs)) for given, pairs in sorted(questions.items()))
        for given, pairs in track(answers.ahead(asked), f"tests given {size}", len(questions)):
            left = joined(pairs)
            for (a, b), p in zip(left, answers.ask(left, given), strict=True):
                if p > level:
                    adjacency[a, b] = adjacency[b, a] = False
        size += 1


def lost_edges(adjacency: np.ndarray, answers: Answers, level: float) -> Iterator[tuple[int, int, int]]:
    """Triples (a, b, c), b < c, in which a depends on b and on c, but was separated from each only by sets with the
    other, and from both by no neighbour: at least one of a's edges is missing.

    With positive densities independence of b given c and of c given b implies independence of both (the intersection
    property of graphoids, Pearl 1988), so b or c is nearly a function of the other, or the tests had little power.
    """
    for b, c in np.argwhere(np.triu(adjacency)).tolist():
        for a in np.flatnonzero(~(adjacency[b] | adjacency[c])).tolist():
            if _only_with(answers, a, b, c, level) and _only_with(answers, a, c, b, level):
                beside = np.flatnonzero(adjacency[a]).tolist()
                pairs = [(min(a, other), max(a, other)) for other in (b, c)]
                if all(min(answers.ask(pairs, (near,))) <= level for near in beside):
                    yield a, b, c


def _only_with(answers: Answers, a: int, b: int, c: int, level: float) -> bool:
    """Whether a and b are dependent, and all sets that separated them have c."""
    asked = answers.of(a, b)
    separating = [given for given, p in asked.items() if p > level]
    return bool(separating) and all(c in given for given in separating) and () in asked


@one_blas_thread()
def _answered(tests: Tests, question: tuple[list[tuple[str, str]], tuple[str, ...]]) -> Answered:
    """The answers to one question for several pairs, in any thread or process."""
    alone, (pairs, given) = copy(tests), question
    return alone.answers(pairs, given)


def _questions(
    adjacency: np.ndarray, open_: np.ndarray, knowledge: Knowledge, size: int
) -> dict[Given, list[tuple[int, int]]]:
    """For each set of `size` variables the pairs a < b that have it among the possible causes of one of them."""
    questions: dict[Given, list[tuple[int, int]]] = {}
    for a, b in np.argwhere(np.triu(open_)).tolist():
        for given in subsets_beside(adjacency, knowledge, a, b, size):
            questions.setdefault(given, []).append((a, b))
    return questions


def subsets_beside(adjacency: np.ndarray, knowledge: Knowledge, a: int, b: int, size: int) -> Iterator[Given]:
    """The sets of `size` neighbours that may cause a, or that may cause b, without these two, each once."""
    seen, causes = set(), knowledge.apply(adjacency)
    for end, other in ((a, b), (b, a)):
        neighbours = [int(i) for i in np.flatnonzero(causes[:, end]) if i != other]
        for given in combinations(neighbours, size):
            if given not in seen:
                seen.add(given)
                yield given
