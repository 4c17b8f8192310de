"""Recalibration of beliefs about labels on graphs with cycles, by labels that are left out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanmap.bp.evidence.field_evidence import Evidence

__all__ = ["Answers", "Calibration", "LabelAtoms", "calibrated"]

# Candidates: powers, and shares of a belief that are spread evenly over all labels.
POWERS = np.geomspace(0.1, 4.0, 38)
SHARES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4)
# With fewer observed labels the choice would be random.
LEAST_LABELS = 100
# A fifth of the labels is left out at a time.
FOLDS = 5

# The probabilities of all K labels at some nodes, with some evidence: (B, nodes, K).
Answers = Callable[[Evidence, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Calibration:
    """p becomes (1 − ε) pᵗ / Σ pᵗ + ε / K: the order of the labels is kept, the most probable one too."""

    power: float = 1.0
    share: float = 0.0

    def __call__(self, probabilities: np.ndarray) -> np.ndarray:
        """Calibrate probabilities (..., K)."""
        raised = (probabilities / probabilities.max(axis=-1, keepdims=True)) ** self.power
        return (1 - self.share) * raised / raised.sum(axis=-1, keepdims=True) + self.share / raised.shape[-1]

    @classmethod
    def least(cls, probabilities: np.ndarray, truth: np.ndarray) -> "Calibration":
        """The candidate with the smallest log loss for the labels `truth` (m,); `probabilities` (m, K)."""
        number, rows, found = probabilities.shape[1], np.arange(len(truth)), []
        for power in POWERS:
            chance = cls(power)(probabilities)[rows, truth]
            for share in SHARES:
                mixed = np.maximum((1 - share) * chance + share / number, np.finfo(float).tiny)
                found.append((-np.log(mixed).mean(), cls(float(power), share)))
        return min(found, key=lambda each: each[0])[1]


@dataclass(frozen=True, eq=False)
class LabelAtoms:
    """Atoms of a kind of labels: `which` label (G,) each is, of K `codes`."""

    codes: np.ndarray
    which: np.ndarray

    @classmethod
    def of(cls, atoms: np.ndarray) -> "LabelAtoms":
        """Atoms with the same code are of one label."""
        codes, which = np.unique(atoms.reshape(len(atoms), -1), axis=0, return_inverse=True)
        return cls(codes, which.ravel())

    def number(self, value: np.ndarray) -> int:
        """The number of the label of an observed value; −1 if no atom has it."""
        same = np.flatnonzero((self.codes == value.reshape(1, -1)).all(axis=1))
        return int(same[0]) if len(same) else -1

    def probabilities(self, weights: np.ndarray) -> np.ndarray:
        """Probabilities of labels (..., K), from weights of atoms (..., G)."""
        return weights @ np.eye(len(self.codes))[self.which]

    def corrected(self, weights: np.ndarray, own: np.ndarray, correct: Calibration) -> np.ndarray:
        """Weights of atoms (B, G) whose messages are corrected; what a node knows by itself, `own` (B, G), is not.

        Where labels are left out, all that their nodes know is left out, too: it is messages that they correct.
        """
        own = own.astype(np.float64) / own.max(axis=-1, keepdims=True)
        heard = self.probabilities(np.where(own > 0, weights / np.where(own > 0, own, 1), 0))
        first = np.unique(self.which, return_index=True)[1]  # an atom of each label: all of them know the same
        found = correct(heard / heard.sum(axis=-1, keepdims=True)) * own[..., first]
        return self.weights(found / found.sum(axis=-1, keepdims=True), weights)

    def weights(self, probabilities: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weights of atoms with other probabilities of labels, shared among the atoms of a label as before."""
        before = self.probabilities(weights)[..., self.which]
        alike = 1 / np.bincount(self.which)[self.which]
        return probabilities[..., self.which] * np.where(before > 0, weights / np.where(before > 0, before, 1), alike)


def calibrated(labelled: np.ndarray, truth: np.ndarray, seen: Evidence, answers: Answers) -> Calibration | None:
    """The correction with the least log loss on labels that are left out, with all else that is known of their nodes.

    None if there are few labels.

    Parameters
    ----------
    labelled, truth : array (k,)
        Nodes whose labels were seen, and the numbers of these labels.
    seen : Evidence
        What is known of all nodes.
    answers : callable
        The answers of the field.
    """
    if len(labelled) < LEAST_LABELS:
        return None
    order = np.random.default_rng(0).permutation(len(labelled))
    folds = [order[start::FOLDS] for start in range(FOLDS)]
    found = [answers(seen.without(labelled[fold]), labelled[fold]) for fold in folds]
    labels = [np.broadcast_to(truth[fold], each.shape[:2]).ravel() for fold, each in zip(folds, found, strict=True)]
    return Calibration.least(
        np.concatenate([each.reshape(-1, each.shape[-1]) for each in found]), np.concatenate(labels)
    )
