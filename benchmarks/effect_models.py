"""Models with known effects: 27 of a grid, and 25 each written for itself.

In the grid the cause has two values, four labels, or is a number; it is confounded by a number, a label, or both; the
outcome is linear, interacting, of uneven spread, mediated with a collider beside it, or rare. The others were written
before their author had seen how effects are estimated (13), or before anything was measured on them (12); in two of
them a confounder is not in the table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

__all__ = ["MODELS", "Model"]

SEED, TRUTH_ROWS = 11_000_000, 400_000
SITE = np.array([-1.0, -0.3, 0.4, 1.0])
SHAPES = ("linear", "interacting", "spread", "mediated", "rare")
ENDS: dict[str, tuple[Any, Any]] = {"two": (0.0, 1.0), "four": ("a", "c"), "number": (-0.5, 0.5)}
ADJUSTED = {"number": ["z"], "label": ["site"], "both": ["z", "site"]}
Table = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, int, Any], Table]


@dataclass(frozen=True)
class Model:
    """What draws a table, perhaps with the cause set, and what is asked of it; `adjusted` closes every other way."""

    name: str
    graph: str
    draw: Draw
    ends: tuple[Any, Any]
    adjusted: tuple[str, ...] = ()
    label: str | None = None
    identified: bool = True

    @property
    def arrows(self) -> list[tuple[str, str]]:
        """The graph, which is written as words of "a>b"."""
        return [(cause, effect) for cause, effect in (word.split(">") for word in self.graph.split())]

    def table(self, rng: np.random.Generator, n: int) -> Table:
        """The columns that somebody has seen."""
        return {name: values for name, values in self.draw(rng, n, None).items() if not name.startswith("hidden")}

    def numbers(self, table: Table) -> np.ndarray:
        """The outcome, or whether it is the label."""
        return table["y"] if self.label is None else (table["y"] == self.label).astype(float)

    def truth(self) -> float:
        """By the same noise under both."""
        arms = [self.numbers(self.draw(np.random.default_rng(SEED), TRUTH_ROWS, end)).mean() for end in self.ends]
        return float(arms[1] - arms[0])


def cast(rng: np.random.Generator, scores: np.ndarray, labels: str) -> np.ndarray:
    """Labels whose shares are as the exponentials of scores (rows by labels)."""
    sums = np.cumsum(np.exp(scores), axis=1)
    return np.array(list(labels))[(rng.random(len(scores))[:, None] > sums / sums[:, -1:]).sum(axis=1)]


def tossed(rng: np.random.Generator, score: np.ndarray) -> np.ndarray:
    """Zeros and ones."""
    return (rng.random(len(score)) < expit(score)).astype(float)


def put(natural: np.ndarray, do: Any) -> np.ndarray:
    """The cause as it comes, or as it is set."""
    return natural if do is None else np.full(len(natural), do)


def grid_table(cause: str, confounder: str, shape: str, rng: np.random.Generator, n: int, do: Any) -> Table:
    """A table of the grid."""
    z, site, noise, more = rng.normal(size=n), rng.integers(4, size=n), *rng.normal(size=(2, n))
    u = {"number": z, "label": SITE[site], "both": (z + SITE[site]) / 1.3}[confounder]
    if cause == "two":
        t: Any = tossed(rng, 0.8 * u)
    else:
        t = cast(rng, np.outer(u, [0.5, 0.0, -0.5, 0.2]), "abcd") if cause == "four" else 0.7 * u + rng.normal(size=n)
    t = put(t, do)
    dose = np.select([t == each for each in "abcd"], [0.0, 0.3, 1.0, 0.5]) if cause == "four" else t
    m = dose + more
    y = {
        "interacting": dose * (1 + 0.8 * u) + 0.4 * u**2 + noise,
        "spread": dose + u + noise * np.exp(0.5 * u + 0.3 * dose),
        "mediated": 0.5 * dose + 0.5 * m + u + noise,
    }.get(shape, dose + u + noise)
    table = {"t": t, "y": y, "z": z, "site": np.array(["n", "e", "s", "w"])[site], "m": m, "c": dose + y + 0.5 * more}
    if shape == "rare":
        table["y"] = np.where(rng.random(n) < expit(-3.2 + 0.8 * dose + 0.7 * u), "yes", "no")
    names = {"t", "y", *ADJUSTED[confounder], *("mc" if shape == "mediated" else "")}
    return {name: values for name, values in table.items() if name in names}


def grid_model(cause: str, confounder: str, shape: str) -> Model:
    """A model of the grid."""
    names = ADJUSTED[confounder]
    graph = " ".join([*(f"{name}>{end}" for name in names for end in "ty"), "t>y"])
    return Model(
        f"{cause}, {confounder}, {shape}",
        graph + (" t>m m>y t>c y>c" if shape == "mediated" else ""),
        partial(grid_table, cause, confounder, shape),
        ENDS[cause],
        tuple(names),
        "yes" if shape == "rare" else None,
    )


def products(rng: np.random.Generator, n: int, do: Any) -> Table:
    """Two numbers whose product matters, for the outcome and for the effect."""
    a, b, noise = rng.normal(size=(3, n))
    t = put(tossed(rng, a - 0.5 * b**2 + 0.4), do)
    return {"a": a, "b": b, "t": t, "y": t * (1 + a * b) + np.sin(2 * a) + 0.5 * b + noise}


def letter_m(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A common effect of two causes, which must not be adjusted for alone."""
    a, b, more, noise = rng.normal(size=(4, n))
    t = put(tossed(rng, 1.2 * a), do)
    return {"a": a, "b": b, "k": a + b + 0.5 * more, "t": t, "y": 0.7 * t + 1.5 * b + noise}


def chained(rng: np.random.Generator, n: int, do: Any) -> Table:
    """Two mediators that bend."""
    w, *e = rng.normal(size=(4, n))
    t = put(tossed(rng, w), do)
    m = np.tanh(2 * t - 1 + 0.5 * e[0])
    k = np.exp(0.7 * m + 0.3 * e[1])
    return {"w": w, "t": t, "m": m, "k": k, "y": k + 0.8 * w + 0.5 * e[2]}


def instrument(rng: np.random.Generator, n: int, do: Any) -> Table:
    """What moves the cause strongly and nothing else."""
    i, z, noise = rng.integers(2, size=n).astype(float), *rng.normal(size=(2, n))
    t = put(tossed(rng, 3 * i - 1.5 + z), do)
    return {"i": i, "z": z, "t": t, "y": t + 1.5 * z + noise}


def seldom(rng: np.random.Generator, n: int, do: Any) -> Table:
    """One in fourteen is treated."""
    z, noise = rng.normal(size=(2, n))
    t = put(tossed(rng, -2.8 + 0.6 * z), do)
    return {"z": z, "t": t, "y": 1.2 * t + z + noise * np.exp(0.4 * z)}


def third_label(rng: np.random.Generator, n: int, do: Any) -> Table:
    """The rarest of three labels, of a cause and confounders that are labels."""
    ward, age = rng.integers(3, size=n), rng.integers(2, size=n)
    t = put(np.where(rng.random(n) < np.array([0.3, 0.5, 0.65])[ward], "drug", "none"), do)
    bad = -3.4 + 1.1 * (t == "none") + 0.5 * ward + 0.6 * age
    y = cast(rng, np.column_stack([np.zeros(n), -0.5 + 0.3 * ward, bad]), "012")
    return {"ward": np.array(["u", "v", "w"])[ward], "age": np.array(["old", "young"])[1 - age], "t": t, "y": y}


def curved(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose that helps, and then harms."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(1 + 0.6 * z + 0.8 * more, do)
    return {"z": z, "t": t, "y": 2 * t - t**2 + z + 0.7 * noise}


def six_labels(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A cause of six labels, confounded by a number and five labels."""
    z, site, noise = rng.normal(size=n), rng.integers(5, size=n), rng.normal(size=n)
    t = put(cast(rng, 0.3 * np.outer(z + site - 2, np.arange(6) - 2.5) / 2, "abcdef"), do)
    dose = np.select([t == each for each in "abcdef"], [0.0, 1.0, 0.5, -0.5, 0.2, 0.8])
    return {"z": z, "site": np.array(list("pqrst"))[site], "t": t, "y": dose + 0.6 * z + 0.4 * site + noise}


def costs(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A skew outcome on which all acts by factors."""
    z, ill, noise = rng.normal(size=n), rng.integers(2, size=n), rng.normal(size=n)
    t = put(tossed(rng, 0.7 * z + ill - 0.5), do)
    y = np.exp(0.4 * t + 0.4 * z + 0.5 * ill + 0.6 * noise)
    return {"z": z, "ill": np.array(["no", "yes"])[ill], "t": t, "y": y}


def eight(rng: np.random.Generator, n: int, do: Any) -> Table:
    """Eight confounders, three of which matter, and noise with heavy tails."""
    z, more = rng.normal(size=(n, 8)), rng.normal(size=n)
    t = put(0.5 * z[:, 0] - 0.5 * z[:, 1] + 0.3 * z[:, 2] + more, do)
    y = 0.8 * t + z[:, 0] + 0.5 * z[:, 1] + z[:, 2] + rng.standard_t(3, size=n)
    return {**{f"z{k}": z[:, k] for k in range(8)}, "t": t, "y": y}


def harmless(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A hidden cause of a mediator and the outcome, which biases nothing."""
    u, e, noise, z = rng.normal(size=(4, n))
    t = put(tossed(rng, 0.8 * z), do)
    m = t + u + 0.5 * e
    return {"hidden": u, "z": z, "t": t, "m": m, "y": m + u + 0.5 * z + noise}


def hidden_instrument(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A hidden confounder, and an instrument, which names no mean effect without linearity."""
    i, u, noise = rng.normal(size=(3, n))
    t = put(tossed(rng, i + 1.5 * u), do)
    return {"i": i, "hidden": u, "t": t, "y": t * (1 + u) + u + noise}


def hidden_both_sides(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A hidden cause of the cause, its mediator and the outcome: not even the mediator helps."""
    u, e, noise = rng.normal(size=(3, n))
    t = put(u + e, do)
    m = t + u
    return {"hidden": u, "t": t, "m": m + 0.5 * rng.normal(size=n), "y": m + u + noise}


def sigmoid(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose that saturates at both ends."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(0.5 + 0.5 * z + more, do)
    return {"z": z, "t": t, "y": 3 * expit(2 * (t - 0.5)) + 0.7 * z + 0.8 * noise}


def hinge(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose that does nothing below zero, and noise that spreads with the confounder."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(0.6 * z + more, do)
    return {"z": z, "t": t, "y": 1.5 * np.maximum(t, 0) - z + noise * (0.5 + 0.3 * np.abs(z))}


def skew_dose(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A skew dose whose logarithm acts."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(np.exp(0.4 * z + 0.4 * more), do)
    return {"z": z, "t": t, "y": np.log(t) + 0.5 * z + noise}


def dose_by_site(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose whose slope hangs on a label."""
    site, more, noise = rng.integers(3, size=n), *rng.normal(size=(2, n))
    t = put(0.6 * (site - 1) + more, do)
    return {"site": np.array(list("uvw"))[site], "t": t, "y": np.array([0.3, 0.8, 1.6])[site] * t + site + noise}


def one_in_ten(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A rare label, and a confounder that acts as a wave."""
    z, w, noise = rng.normal(size=n), rng.integers(2, size=n), rng.normal(size=n)
    t = put(np.where(tossed(rng, -2.4 + 0.7 * z + 0.4 * w) == 1, "new", "old"), do)
    return {"z": z, "w": np.array(["f", "m"])[w], "t": t, "y": (t == "new") + np.sin(1.5 * z) + 0.5 * w + noise}


def rare_of_three(rng: np.random.Generator, n: int, do: Any) -> Table:
    """The rarest of three labels as a cause, and heavy tails."""
    z = rng.normal(size=n)
    t = put(cast(rng, np.column_stack([0.3 * z, -0.3 * z, -1.8 + 0.4 * z]), "abc"), do)
    dose = np.select([t == each for each in "abc"], [0.0, 0.5, 1.2])
    return {"z": z, "t": t, "y": dose * (1 + 0.3 * z) + 0.3 * z**2 + 0.7 * rng.standard_t(4, size=n)}


def steps(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A confounder that acts by a step, on both."""
    z, noise = rng.normal(size=(2, n))
    t = put(tossed(rng, 1.5 * (z > 0) - 0.75), do)
    return {"z": z, "t": t, "y": t + 1.5 * (z > 0) + noise}


def counted(rng: np.random.Generator, n: int, do: Any) -> Table:
    """An outcome that counts."""
    z = rng.normal(size=n)
    t = put(tossed(rng, 0.8 * z), do)
    return {"z": z, "t": t, "y": rng.poisson(np.exp(0.3 + 0.4 * t + 0.4 * z)).astype(float)}


def dose_to_label(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose that saturates, and an outcome of two labels."""
    z, more = rng.normal(size=(2, n))
    t = put(0.7 * z + more, do)
    return {"z": z, "t": t, "y": np.where(rng.random(n) < expit(-0.5 + 1.2 * np.tanh(t) + 0.8 * z), "yes", "no")}


def five(rng: np.random.Generator, n: int, do: Any) -> Table:
    """Five strong confounders, two of which act together."""
    z, g, more, noise = rng.normal(size=(n, 4)), rng.integers(2, size=n), *rng.normal(size=(2, n))
    t = put(z[:, 0] + 0.5 * z[:, 1] - 0.5 * z[:, 2] + 0.4 * g + more, do)
    y = t + np.tanh(z[:, 0]) + 0.5 * z[:, 1] * z[:, 2] + z[:, 3] - 0.5 * g + noise
    return {**{f"z{k}": z[:, k] for k in range(4)}, "g": np.array(["p", "q"])[g], "t": t, "y": y}


def wave(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A dose that acts as a wave."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(0.5 * z + more, do)
    return {"z": z, "t": t, "y": np.sin(2 * t) + z + 0.5 * noise}


def quiet(rng: np.random.Generator, n: int, do: Any) -> Table:
    """A curve with little noise."""
    z, more, noise = rng.normal(size=(3, n))
    t = put(0.7 * z + more, do)
    return {"z": z, "t": t, "y": t**2 + z + 0.1 * noise}


_GRID = list(product(ENDS, ADJUSTED))
_EIGHT: Sequence[str] = tuple(f"z{k}" for k in range(8))
MODELS: tuple[Model, ...] = (
    *(grid_model(*pair, SHAPES[(k + j) % 5]) for k, pair in enumerate(_GRID) for j in (0, 1, 3)),
    Model("products of confounders", "a>t b>t a>y b>y t>y", products, (0.0, 1.0), ("a", "b")),
    Model("letter M", "a>t a>k b>k b>y t>y", letter_m, (0.0, 1.0), ("b",)),
    Model("chain of mediators", "w>t w>y t>m m>k k>y", chained, (0.0, 1.0), ("w",)),
    Model("instrument beside", "i>t z>t z>y t>y", instrument, (0.0, 1.0), ("z",)),
    Model("one in fourteen treated", "z>t z>y t>y", seldom, (0.0, 1.0), ("z",)),
    Model("third label", "ward>t ward>y age>y t>y", third_label, ("none", "drug"), ("ward", "age"), "2"),
    Model("curved dose", "z>t z>y t>y", curved, (0.5, 1.5), ("z",)),
    Model("six labels", "z>t site>t z>y site>y t>y", six_labels, ("a", "b"), ("z", "site")),
    Model("costs", "z>t ill>t z>y ill>y t>y", costs, (0.0, 1.0), ("z", "ill")),
    Model("eight confounders", " ".join(f"{z}>t {z}>y" for z in _EIGHT) + " t>y", eight, (-0.5, 0.5), _EIGHT),
    Model("hidden, harmless", "z>t z>y t>m hidden>m hidden>y m>y", harmless, (0.0, 1.0), ("z",)),
    Model("hidden, instrument", "i>t hidden>t hidden>y t>y", hidden_instrument, (0.0, 1.0), identified=False),
    Model(
        "hidden on all sides",
        "hidden>t hidden>m hidden>y t>m m>y",
        hidden_both_sides,
        (0.0, 1.0),
        identified=False,
    ),
    Model("sigmoid dose", "z>t z>y t>y", sigmoid, (0.0, 1.0), ("z",)),
    Model("hinge dose", "z>t z>y t>y", hinge, (-1.0, 1.0), ("z",)),
    Model("skew dose", "z>t z>y t>y", skew_dose, (0.7, 1.8), ("z",)),
    Model("dose by site", "site>t site>y t>y", dose_by_site, (-0.5, 0.5), ("site",)),
    Model("one in ten", "z>t w>t z>y w>y t>y", one_in_ten, ("old", "new"), ("z", "w")),
    Model("rare of three", "z>t z>y t>y", rare_of_three, ("a", "c"), ("z",)),
    Model("step of a confounder", "z>t z>y t>y", steps, (0.0, 1.0), ("z",)),
    Model("counts", "z>t z>y t>y", counted, (0.0, 1.0), ("z",)),
    Model("dose to label", "z>t z>y t>y", dose_to_label, (-0.5, 0.5), ("z",), "yes"),
    Model(
        "five confounders",
        " ".join(f"{z}>t {z}>y" for z in (*_EIGHT[:4], "g")) + " t>y",
        five,
        (-0.5, 0.5),
        (*_EIGHT[:4], "g"),
    ),
    Model("wave of a dose", "z>t z>y t>y", wave, (0.0, 0.8), ("z",)),
    Model("quiet curve", "z>t z>y t>y", quiet, (0.0, 1.0), ("z",)),
)
