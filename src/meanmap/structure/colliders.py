"""The direction of edges: two causes of one effect are recognised by the sets that separate them."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.progress import track
from meanmap.graphs.orientation import reaches
from meanmap.structure.knowledge import Knowledge
from meanmap.structure.skeleton import Answers, Given, subsets_beside

__all__ = ["Colliders", "find_colliders"]

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Colliders:
    """How the unshielded triples a — b — c were resolved (a and c not joined), by variable number, b in the middle.

    Attributes
    ----------
    matrix : bool array (d, d)
        The PDAG with the arrows of the colliders.
    drawn : list of triples
        a → b ← c.
    ambiguous : list of triples
        As many separating sets of a and c contain b as do not, or there are none.
    conflicting : list of triples
        Colliders with an arrow that another collider or background knowledge reverses, or that closes a cycle
        with others. None of their arrows is drawn unless another collider implies it too.
    """

    matrix: np.ndarray
    drawn: list[Triple]
    ambiguous: list[Triple]
    conflicting: list[Triple]

    def doubted(self, matrix: np.ndarray, refused: list[tuple[int, int]], knowledge: Knowledge) -> list[tuple]:
        """Arrows that the final PDAG has or lacks although answers disagree about them.

        Where a → b ← c contradicts others, either its arrows are right, or an edge of a and c is missing (see
        `pc`). What background knowledge decides is not doubted.
        """
        joined, doubts = matrix | matrix.T, np.zeros_like(matrix)
        for i, j in refused:
            doubts[i, j] = True
        for a, b, c in self.ambiguous:
            for end in (a, c):
                doubts[end, b] |= matrix[end, b] & matrix[b, end]
        for a, b, c in self.conflicting:
            doubts[a, c] = True
            for end in (a, c):
                doubts[end, b] |= matrix[b, end]  # unless it is drawn as this collider has it
        doubts |= doubts.T
        doubts &= ~knowledge.barred & ~(joined & knowledge.barred.T)
        return [(int(i), int(j)) for i, j in np.argwhere(doubts)]


def find_colliders(
    adjacency: np.ndarray, answers: Answers, level: float, knowledge: Knowledge, most_given: int
) -> Colliders:
    """Judge each unshielded triple, then draw the colliders that do not contradict each other."""
    triples = _unshielded(adjacency)
    _ask_all(triples, adjacency, knowledge, answers, most_given)
    verdicts = {triple: _verdict(triple, answers, level) for triple in triples}
    matrix = knowledge.apply(adjacency)
    wanted = np.zeros_like(matrix)
    found = [triple for triple, verdict in verdicts.items() if verdict is True]
    for a, b, c in found:
        wanted[[a, c], b] = True
    clash = wanted & (reaches(wanted | (matrix & ~matrix.T)).T | knowledge.barred)
    conflicting = [(a, b, c) for a, b, c in found if clash[a, b] or clash[c, b]]
    drawn = [triple for triple in found if triple not in conflicting]
    for a, b, c in drawn:
        matrix[b, [a, c]] = False
    return Colliders(matrix, drawn, [t for t, verdict in verdicts.items() if verdict is None], conflicting)


def _unshielded(adjacency: np.ndarray) -> list[Triple]:
    triples = []
    for b in range(len(adjacency)):
        ends = np.flatnonzero(adjacency[b]).tolist()
        triples += [(a, b, c) for i, a in enumerate(ends) for c in ends[i + 1 :] if not adjacency[a, c]]
    return triples


def _ask_all(
    triples: list[Triple], adjacency: np.ndarray, knowledge: Knowledge, answers: Answers, most_given: int
) -> None:
    """Test the ends of every triple given each subset of the possible causes of either end, set by set."""
    questions: dict[Given, list[tuple[int, int]]] = {}
    for a, c in dict.fromkeys((a, c) for a, _, c in triples):
        for size in range(most_given + 1):
            for given in subsets_beside(adjacency, knowledge, a, c, size):
                questions.setdefault(given, []).append((a, c))
    for given, pairs in track(answers.ahead(iter(sorted(questions.items()))), "tests of colliders", len(questions)):
        answers.ask(pairs, given)


def _verdict(triple: Triple, answers: Answers, level: float) -> bool | None:
    """True for a collider, False for a non-collider, None if the answers do not decide."""
    a, b, c = triple
    inside = [b in given for given, p in answers.of(a, c).items() if p > level]
    share = float(np.mean(inside)) if inside else 0.5
    return None if share == 0.5 else share < 0.5
