"""Bets that vectors are not symmetric about zero, or pairs not exchangeable, as they come one after another."""

from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.values import Value

__all__ = ["GROUP", "Wager"]

# Shares of the wealth that are bet, each by a bettor with an equal part of the money: the first wins on small effects,
# the last on large ones, and their mean is behind the best of them by log 8 at most.
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95])
# Payoffs are cut at this many times the root mean square of earlier ones.
CUT = 2.0
# Pairs are bet on in groups of a prime number, whose second members are exchanged by the maps i → a i + b modulo it. As
# these 42 maps form a group, bets are fair to the last digit; as they take any two places to any two, the spread over
# them is that over all 5040 orders. Groups of two pairs use half of the information, groups of seven use six sevenths.
GROUP = 7
MAPS = np.array([[(a * i + b) % GROUP for i in range(GROUP)] for a in range(1, GROUP) for b in range(GROUP)])
# What the bettors multiply the statistic of a group by, in standard deviations.
TILTS = np.array([0.1, 0.2, 0.35, 0.55, 0.8, 1.1, 1.6, 2.4])


@dataclass(frozen=True, eq=False, repr=False)
class Wager(Value):
    """The wealth so far, and the estimated mean of the vectors.

    Under the null hypothesis a vector a and −a have the same distribution, given the past. A bet is on the sign of ⟨w,
    a⟩, where w is the mean of earlier vectors. Its payoff s is ⟨w, a⟩ over a scale known in advance, clipped to [−1,
    1]; it has mean zero, and the wealth Π (1 + λ s) is a martingale from 1 for every share λ (Shekhar & Ramdas 2023,
    section 3). So is the mean over shares; by Ville's inequality the probability that it ever exceeds 1/α is at most α.

    Attributes
    ----------
    total : array (..., r)
        The sum of all vectors; leading axes are separate streams.
    squares, seen : array (...,), int
        The sum of squares of payoffs before clipping, and their number.
    wealth : array (..., 8)
        The logarithm of each bettor's wealth.
    """

    total: np.ndarray
    squares: np.ndarray
    seen: int
    wealth: np.ndarray

    @classmethod
    def begin(cls, vectors: np.ndarray) -> "Wager":
        """From vectors (..., b, r) that are only learned from, without a bet."""
        total = vectors.sum(axis=-2)
        values = _along(total, vectors)
        streams = total.shape[:-1]
        return cls(total, np.sum(values**2, axis=-1), values.shape[-1], np.zeros((*streams, len(SHARES))))

    def after(self, vectors: np.ndarray) -> "Wager":
        """After bets on vectors (..., b, r), all placed before any of them is seen."""
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

    @classmethod
    def begin_with_pairs(cls, x: np.ndarray, y: np.ndarray) -> "Wager":
        """From features (n, p) and (n, q) of pairs that are only learned from, without a bet."""
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        total = x.T @ y
        scores = x @ _direction(total) @ y.T
        return cls(total.ravel(), np.asarray((GROUP - 1) * np.mean(scores**2)), 1, np.zeros(len(TILTS)))

    def after_pairs(self, x: np.ndarray, y: np.ndarray) -> "Wager":
        """After bets on features (g, 7, p) and (g, 7, q) of groups of pairs.

        A bettor's wealth is multiplied by exp(λ s), where s is the sum of ⟨w, φ(xᵢ) ⊗ ψ(yᵢ)⟩ over a group, divided by
        its mean over the maps that exchange the y. Under independence all of them are equally likely, so the factor has
        mean one.
        """
        direction = _direction(self.total.reshape(x.shape[-1], y.shape[-1]))
        scores = np.einsum("gia,ab,gjb->gij", x, direction, y, optimize=True)
        sums = scores[:, np.arange(GROUP), MAPS].sum(axis=-1)  # the first map leaves all as they are
        sums -= sums.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(self.squares / max(self.seen, 1)))
        tilted = TILTS[:, None, None] * sums / scale if scale > 0 else np.zeros((len(TILTS), *sums.shape))
        u, v = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        return replace(
            self,
            total=self.total + np.einsum("gia,gib->ab", u, v, optimize=True).ravel(),
            squares=self.squares + np.sum(sums.var(axis=1)),
            seen=self.seen + len(x),
            wealth=self.wealth + (tilted[..., 0] - _log_mean(tilted)).sum(axis=-1),
        )

    @property
    def log_evalue(self) -> np.ndarray:
        """The logarithm of the mean wealth."""
        return _log_mean(self.wealth)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """The logarithm of the mean of exponentials."""
    top = logs.max(axis=-1)
    return top + np.log(np.mean(np.exp(logs - top[..., None]), axis=-1))


def _direction(total: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(total)
    return total / norm if norm > 0 else total


def _along(total: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Components of vectors along the direction of a sum."""
    norm = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.einsum("...br,...r->...b", vectors, total / np.where(norm > 0, norm, 1.0))
