"""Skills of players from the games they won, lost and drew."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.arrays import parameter
from meanmap.core.errors import InputError, ParameterError, ShapeError
from meanmap.core.meant import did_you_mean
from meanmap.core.tables.table import Table
from meanmap.core.types import Array, Axes
from meanmap.core.values import plain
from meanmap.ep.factors.interval import Interval
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.models.design import as_given
from meanmap.ep.models.regression import fit_linear, moments
from meanmap.ep.models.summary import Summarised, Summary
from meanmap.families import MultivariateNormal

__all__ = ["Ranking", "ranking"]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Summarised):
    """Players and the posterior of their skills.

    Attributes
    ----------
    players : tuple
        From the one with the highest mean skill.
    mean, covariance : arrays
        Of the belief about all skills together, in the order of `players`.
    games : (p,) array
        The number of games that each has played.
    performance_sd : float
        How much a player's performance varies from game to game.
    margin : float
        Performances closer than this are a draw.
    posterior : Posterior
        What inference returned.
    """

    players: tuple[Hashable, ...]
    mean: np.ndarray
    covariance: np.ndarray
    games: np.ndarray
    performance_sd: float
    margin: float
    posterior: Posterior

    @property
    def skills(self) -> MultivariateNormal:
        """The belief about all skills together."""
        return MultivariateNormal(self.mean, self.covariance)

    def summary(self, confidence: float = 0.95) -> Summary:
        """The table of skills, best first; P(>0) is the probability of being better than the average of the prior."""
        return Summary.of_normal(map(str, self.players), self.mean, np.diag(self.covariance), confidence)

    def probability(self, first: Hashable, second: Hashable) -> dict[str, float]:
        """The probabilities that the first wins, draws and loses against the second."""
        a, b = self._position(first), self._position(second)
        if a == b:
            raise ParameterError(f"{first!r} cannot play against themselves; expected two players.")
        turn = np.zeros(len(self.players))
        turn[a], turn[b] = 1, -1
        mean = turn @ self.mean
        sd = np.sqrt(turn @ self.covariance @ turn + 2 * self.performance_sd**2)
        win, lose = ndtr((mean - self.margin) / sd), ndtr((-mean - self.margin) / sd)
        return {"win": float(win), "draw": float(max(1 - win - lose, 0)), "lose": float(lose)}

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw skills with their intervals, best first; returns the matplotlib Axes."""
        ax = self.summary().plot(ax)
        ax.set_xlabel("skill, mean and 95% interval")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        skills = {"players": [str(player) for player in self.players], "skills": self.summary().to_dict()}
        rest = plain(self, "games", "margin", "performance_sd", "log_evidence")
        return {**skills, **rest, "converged": bool(self.report.converged)}

    def _position(self, player: Hashable) -> int:
        if player in self.players:
            return self.players.index(player)
        meant = did_you_mean(player, self.players)
        raise InputError(f"{player!r}{meant} has played no game here; {len(self.players)} players have.")

    def __str__(self) -> str:
        title = f"ranking of {len(self.players)} players from {int(self.games.sum()) // 2} games"
        return f"{title}\n  log evidence: {self.log_evidence:.6g}\n  inference: {self.report.status}\n{self.summary()}"


def ranking(
    winners: Any,
    losers: Any,
    draws: object = None,
    *,
    prior_sd: float = 1.0,
    performance_sd: float = 0.5,
    **settings: Any,
) -> Ranking:
    """Skills from results: performances are skills plus Gaussian noise, and the higher performance wins.

    Parameters
    ----------
    winners, losers : array_like (n,)
        Who won and who lost each game: names, numbers or other labels.
    draws : array_like (n,) of bool, optional
        Which games were drawn; for these the order of the two does not matter.
    prior_sd : number
        Skills are N(0, prior_sd²) before any game.
    performance_sd : number
        Standard deviation of the noise of each performance; half that of skills, as in TrueSkill.
    **settings
        Passed on to `meanmap.ep.infer`.

    Notes
    -----
    The model of TrueSkill for two players (Herbrich, Minka & Graepel 2006), for all games at once and with one joint
    belief: skills that were compared with each other stay correlated. A draw is a difference of performances below a
    margin, which is chosen so that equals draw as often as the games were drawn. Cost O(n p² + p³) per sweep.

    Examples
    --------
    >>> from meanmap import ep
    >>> table = ep.models.ranking(["ann", "ann", "bob", "ann"], ["bob", "cy", "cy", "bob"])
    >>> table.players
    ('ann', 'bob', 'cy')
    >>> round(table.probability("ann", "cy")["win"], 2)
    0.93
    """
    first, second = _players(winners, "winners"), _players(losers, "losers")
    if len(first) != len(second):
        raise ShapeError(f"winners has {len(first)} games and losers {len(second)}; expected the same number.")
    alone = [at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a == b]
    if alone:
        raise ParameterError(
            f"game {alone[0]} is {first[alone[0]]!r} against {first[alone[0]]!r}; expected two players."
        )
    drawn = np.zeros(len(first), bool) if draws is None else np.asarray(draws)
    if drawn.shape != (len(first),) or not np.isin(drawn, (0, 1)).all():
        raise ParameterError(f"draws is {draws!r}; expected True or False for each of {len(first)} games.")
    drawn = drawn.astype(bool)
    prior = float(parameter(prior_sd, "prior_sd", axes=0))
    noise = np.sqrt(2) * float(parameter(performance_sd, "performance_sd", axes=0))
    share = min(drawn.mean(), 1 - 1 / (len(drawn) + 1))
    margin = float(noise * ndtri((1 + share) / 2))
    players = sorted({*first, *second}, key=lambda player: (type(player).__name__, player))
    place = {player: at for at, player in enumerate(players)}
    turn = np.zeros((len(first), len(players)))
    turn[np.arange(len(first)), [place[player] for player in first]] = 1
    turn[np.arange(len(first)), [place[player] for player in second]] = -1
    low, high = np.where(drawn, -margin, margin), np.where(drawn, margin, np.inf)
    post = fit_linear(
        turn,
        MultivariateNormal(np.zeros(len(players)), prior**2 * np.eye(len(players))),
        lambda z: Interval(z, low, high, noise=noise),
        **settings,
    )
    mean, covariance = moments(post["w"])
    order = np.argsort(-mean, kind="stable")
    games = np.abs(turn).sum(0).astype(int)[order]
    ordered = tuple(players[at] for at in order)
    spread = covariance[np.ix_(order, order)]
    return Ranking(ordered, mean[order], spread, games, noise / np.sqrt(2), margin, post)


def _players(values: Array, name: str) -> list[Any]:
    column = Table.of({name: values}, name).columns[name]
    if column.ndim != 1:
        raise ShapeError(f"{name} has {column.shape[1]} columns; expected one player per game.")
    return as_given(values, np.asarray(column)).tolist()
