"""The page of a distribution: its density with mean and interval, probabilities of states, or means of many numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.plots.beliefs import belief_page, of_number
from meanmap.plots.facts import Page, Section
from meanmap.plots.intervals import intervals_chart

__all__ = ["law_page", "moments_section"]

# At most this many members of a plate are listed.
MOST = 100


class _Line:
    """A distribution of one number, with its density."""

    def __init__(self, law: Any):
        self.mean, self.sd, self.quantile, self._law = law.mean, law.sd, law.quantile, law

    def density(self, grid: np.ndarray) -> np.ndarray:
        return np.exp(np.asarray(self._law.log_density(grid)))


def law_page(law: Any, has_quantiles: bool) -> Page:
    """A density for a single number whose distribution has quantiles; otherwise means and standard deviations."""
    if not np.all(np.asarray(law.is_proper())):
        text = "It is not a probability distribution; messages may be improper."
        return Page("A belief", "", (Section("The belief", repr(law), text),))
    states = getattr(law, "states", None)
    if law.shape == () and states is not None:
        chances = np.exp(np.asarray(law.log_density(np.array(states))))
        return belief_page([{"probabilities": dict(zip(states, chances.tolist(), strict=True))}])
    if law.shape == () and law.event_shape == () and has_quantiles:
        return belief_page([of_number(_Line(law))])
    section, facts = moments_section("The belief", type(law).__name__, {"value": law})
    return Page("A belief", "", (section,), facts)


def moments_section(title: str, said: str, laws: Mapping[str, Any]) -> tuple[Section, dict[str, Any]]:
    """Means with two standard deviations on either side: numbers of a vector and members of a plate one by one."""
    rows = [row for name, law in laws.items() for row in moments_of(name, law)]
    mean, sd = np.array([row[1:] for row in rows], float).reshape(-1, 2).T
    ends = mean, mean - 2 * sd, mean + 2 * sd
    charts = (intervals_chart(title, [name for name, *_ in rows], *ends, "mean ± 2 sd"),) if rows else ()
    table = (("name", "mean", "sd"), *((name, f"{mean:.4g}", f"{sd:.3g}") for name, mean, sd in rows))
    facts = {"beliefs": {name: {"mean": mean, "sd": sd} for name, mean, sd in rows}}
    return Section(title, said, charts=charts, tables=(table,)), facts


def moments_of(name: str, law: Any, most: int | None = MOST) -> list[tuple[str, float, float]]:
    """Mean and standard deviation of each number of a distribution, by name and index."""
    mean = np.asarray(law.mean(), float)
    sd = np.sqrt(np.asarray(law.var(), float))
    places = list(np.ndindex(mean.shape))[:most]
    return [(name + "".join(f"[{i}]" for i in at), float(mean[at]), float(sd[at])) for at in places]
