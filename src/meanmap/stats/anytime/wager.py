"""Bets that vectors, which come one after another, are not symmetric about zero."""

from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.values import Value

__all__ = ["Wager"]

# Shares of the wealth that are bet, each a bettor of its own with an equal part of the money: the first wins on small
# effects, the last on large ones, and the best of them is behind their mean by log 8 at most.
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95])
# Payoffs are cut at this many times the root mean square of earlier ones.
CUT = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Wager(Value):
    """What has been won, and what was learned of the mean of the vectors.

    Under the hypothesis a vector a and −a have one law, given all that came before. A bet is on the sign of ⟨w, a⟩,
    with the mean w of earlier vectors: its payoff s, ⟨w, a⟩ over a scale known before and cut to [−1, 1], then has mean
    zero, and the wealth Π (1 + λ s) is a martingale from 1 for every share λ (Shekhar & Ramdas 2023, section 3). So is
    the mean over shares, which by Ville's inequality ever exceeds 1/α with probability α at most.

    Attributes
    ----------
    total : array (..., r)
        The sum of all vectors; leading axes are streams of their own.
    squares, seen : array (...,), int
        The sum of squares of payoffs before they are cut, and how many.
    wealth : array (..., 8)
        The logarithm of what each bettor has.
    """

    total: np.ndarray
    squares: np.ndarray
    seen: int
    wealth: np.ndarray

    @classmethod
    def begin(cls, vectors: np.ndarray) -> "Wager":
        """From vectors (..., b, r) that are learned from, and not bet on."""
        total = vectors.sum(axis=-2)
        values = _along(total, vectors)
        streams = total.shape[:-1]
        return cls(total, np.sum(values**2, axis=-1), values.shape[-1], np.zeros((*streams, len(SHARES))))

    def after(self, vectors: np.ndarray) -> "Wager":
        """With bets on vectors (..., b, r), all of them placed before any is seen."""
        values = _along(self.total, vectors)
        scale = np.sqrt(self.squares / max(self.seen, 1))[..., None]
        with np.errstate(divide="ignore", invalid="ignore"):
            payoffs = np.where(scale > 0, np.clip(values / (CUT * scale), -1.0, 1.0), 0.0)
        won = np.log1p(SHARES * payoffs[..., None]).sum(axis=-2)
        return replace(
            self,
            total=self.total + vectors.sum(axis=-2),
            squares=self.squares + np.sum(values**2, axis=-1),
            seen=self.seen + values.shape[-1],
            wealth=self.wealth + won,
        )

    @property
    def log_evalue(self) -> np.ndarray:
        """The logarithm of the mean wealth."""
        top = self.wealth.max(axis=-1)
        return top + np.log(np.mean(np.exp(self.wealth - top[..., None]), axis=-1))


def _along(total: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Components of vectors along the direction of a sum."""
    norm = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.einsum("...br,...r->...b", vectors, total / np.where(norm > 0, norm, 1.0))
