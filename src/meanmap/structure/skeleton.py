"""Which variables are joined: those that nothing separates."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from meanmap.core.progress import track
from meanmap.structure.conditional_tests import ConditionalTests, checked_pvalue
from meanmap.structure.knowledge import Knowledge

__all__ = ["Answers", "find_skeleton"]

Given = tuple[int, ...]


@dataclass
class Answers:
    """Every question that was asked, by numbers of variables, with its p-value: none is asked twice.

    `levels` counts the questions with 0, 1, 2, ... variables given; `skipped` says that larger sets could not be given.
    """

    tests: ConditionalTests
    pvalues: dict[tuple[int, int], dict[Given, float]] = field(default_factory=dict)
    skipped: bool = False

    def ask(self, pairs: list[tuple[int, int]], given: Given) -> list[float]:
        """p-values of pairs a < b."""
        new = [pair for pair in pairs if given not in self.pvalues.get(pair, {})]
        if new:
            names = self.tests.names
            found = self.tests.pvalues([(names[a], names[b]) for a, b in new], tuple(names[i] for i in given))
            for pair, p in zip(new, found, strict=True):
                self.pvalues.setdefault(pair, {})[given] = checked_pvalue(float(p), (names[pair[0]], names[pair[1]]))
        return [self.pvalues[pair][given] for pair in pairs]

    def of(self, a: int, b: int) -> dict[Given, float]:
        """All p-values of a pair, in the order they were asked for."""
        return self.pvalues.get((min(a, b), max(a, b)), {})

    @property
    def levels(self) -> dict[int, int]:
        """How many questions there were with so many variables given."""
        sizes = [len(given) for found in self.pvalues.values() for given in found]
        return {size: sizes.count(size) for size in sorted(set(sizes))}


def find_skeleton(
    tests: ConditionalTests, alpha: float, knowledge: Knowledge, most_given: int | None
) -> tuple[np.ndarray, Answers]:
    """The symmetric adjacency matrix, by the order-independent PC algorithm (Colombo & Maathuis 2014, algorithm 4.1).

    Sets of k neighbours are given for k = 0, 1, 2, ...; neighbours are those at the beginning of a level, so that it
    does not matter in which order a level asks. It asks set by set: all pairs that the same variables may separate come
    together.
    """
    adjacency = ~np.eye(len(tests.names), dtype=bool) & ~knowledge.apart
    known = knowledge.required | knowledge.required.T
    answers, size = Answers(tests), 0
    while True:
        questions = _questions(adjacency, adjacency & ~known, size)
        if not questions or (most_given is not None and size > most_given):
            return adjacency, answers
        if size > tests.most_given:
            answers.skipped = True
            return adjacency, answers
        for given, pairs in track(sorted(questions.items()), f"tests given {size}"):
            left = [(a, b) for a, b in pairs if adjacency[a, b]]
            for (a, b), p in zip(left, answers.ask(left, given), strict=True):
                if p > alpha:
                    adjacency[a, b] = adjacency[b, a] = False
        size += 1


def _questions(adjacency: np.ndarray, open_: np.ndarray, size: int) -> dict[Given, list[tuple[int, int]]]:
    """For each set of `size` variables the pairs a < b that have it among the neighbours of one of them."""
    questions: dict[Given, list[tuple[int, int]]] = {}
    for a, b in np.argwhere(np.triu(open_)).tolist():
        for given in subsets_beside(adjacency, a, b, size):
            questions.setdefault(given, []).append((a, b))
    return questions


def subsets_beside(adjacency: np.ndarray, a: int, b: int, size: int) -> Iterator[Given]:
    """The sets of `size` neighbours of a or of b, without these two, each once."""
    seen = set()
    for end, other in ((a, b), (b, a)):
        neighbours = [int(i) for i in np.flatnonzero(adjacency[end]) if i != other]
        for given in combinations(neighbours, size):
            if given not in seen:
                seen.add(given)
                yield given
