"""Effects whose truth is known, beside least squares and forests: python -m benchmarks.effects 300 20.

Twenty-eight simulated models: the cause has two values, four labels, or is a number; it is confounded by a number, a
label, or both; the outcome is linear, interacting, of uneven spread, mediated with a collider beside it, or rare; in
one the confounder is not in the table. The arguments are the rows of a table and the tables of a model.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.table import list_table
from meanmap.bp import BayesianNetwork
from meanmap.core.errors import InputError

__all__ = ["MODELS", "Model", "compared", "measure", "page"]

SEED, TRUTH_ROWS, NORMAL = 11_000_000, 400_000, 1.6449
SITE = np.array([-1.0, -0.3, 0.4, 1.0])
SHAPES = ("linear", "interacting", "spread", "mediated", "rare")
Found = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """What draws a table, and what is asked of it."""

    cause: str
    confounder: str
    shape: str
    hidden: bool = False

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.cause}, {self.confounder}, {self.shape}" + (", hidden" if self.hidden else "")

    @property
    def ends(self) -> tuple[Any, Any]:
        """From where to where the cause is set."""
        return {"two": (0.0, 1.0), "four": ("a", "c"), "number": (-0.5, 0.5)}[self.cause]

    @property
    def label(self) -> str | None:
        """Whose share is compared."""
        return "yes" if self.shape == "rare" else None

    @property
    def adjusted(self) -> list[str]:
        """What closes every other way."""
        return {"number": ["z"], "label": ["site"], "both": ["z", "site"]}[self.confounder]

    @property
    def arrows(self) -> list[tuple[str, str]]:
        """The graph."""
        ways = [(name, effect) for name in self.adjusted for effect in ("t", "y")] + [("t", "y")]
        return [*ways, ("t", "m"), ("m", "y"), ("t", "c"), ("y", "c")] if self.shape == "mediated" else ways

    def draw(self, rng: np.random.Generator, n: int, do: Any = None) -> dict[str, np.ndarray]:
        """A table, perhaps with the cause set."""
        z, site, noise, more = rng.normal(size=n), rng.integers(4, size=n), *rng.normal(size=(2, n))
        chance, other = rng.random(n), rng.normal(size=n)
        u = {"number": z, "label": SITE[site], "both": (z + SITE[site]) / 1.3}[self.confounder]
        if self.cause == "two":
            t: Any = (chance < expit(0.8 * u)).astype(float)
        elif self.cause == "four":
            scores = np.cumsum(np.exp(np.outer(u, [0.5, 0.0, -0.5, 0.2])), axis=1)
            t = np.array(list("abcd"))[(chance[:, None] > scores / scores[:, -1:]).sum(axis=1)]
        else:
            t = 0.7 * u + other
        t = t if do is None else np.full(n, do)
        dose = np.select([t == each for each in "abcd"], [0.0, 0.3, 1.0, 0.5]) if self.cause == "four" else t
        m = dose + more
        y = dose + u + noise
        if self.shape == "interacting":
            y = dose * (1 + 0.8 * u) + 0.4 * u**2 + noise
        elif self.shape == "spread":
            y = dose + u + noise * np.exp(0.5 * u + 0.3 * dose)
        elif self.shape == "mediated":
            y = 0.5 * dose + 0.5 * m + u + noise
        elif self.shape == "rare":
            y = np.where(rng.random(n) < expit(-3.2 + 0.8 * dose + 0.7 * u), "yes", "no")
        table = {"t": t, "y": y, "z": z, "site": np.array(["n", "e", "s", "w"])[site], "m": m}
        table["c"] = dose + (0 if self.shape == "rare" else y) + 0.5 * more
        kept = {name for arrow in self.arrows for name in arrow} - (set(self.adjusted) if self.hidden else set())
        return {name: values for name, values in table.items() if name in kept}

    def numbers(self, table: dict[str, np.ndarray]) -> np.ndarray:
        """The outcome, or whether it is the label."""
        return table["y"] if self.label is None else (table["y"] == self.label).astype(float)

    def truth(self) -> float:
        """By the same noise under both."""
        arms = [self.numbers(self.draw(np.random.default_rng(SEED), TRUTH_ROWS, end)).mean() for end in self.ends]
        return float(arms[1] - arms[0])


_GRID = list(product(("two", "four", "number"), ("number", "label", "both")))
MODELS = tuple(Model(*pair, SHAPES[(k + j) % 5]) for k, pair in enumerate(_GRID) for j in (0, 1, 3))
MODELS += (Model("two", "number", "linear", hidden=True),)


def coded(values: np.ndarray) -> np.ndarray:
    """A number as it is, a label as zeros and ones."""
    return values[:, None] if values.dtype.kind == "f" else (values[:, None] == np.unique(values)[1:]).astype(float)


def ours(model: Model, table: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Estimate, and the interval of 90 %."""
    found = BayesianNetwork(model.arrows).effect(table, "y", of="t", from_=model.ends[0], to=model.ends[1], rng=0)
    difference = found.difference(model.label)
    low, high = difference.interval(0.9)
    return float(difference.value), float(low), float(high)


def least_squares(model: Model, table: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Main effects with the right adjustment, and errors that allow for uneven spread (White 1980)."""
    y, t = model.numbers(table), coded(table["t"])
    design = np.column_stack([np.ones(len(y)), t, *(coded(table[name]) for name in model.adjusted)])
    contrast = np.zeros(design.shape[1])
    contrast[1 : 1 + t.shape[1]] = [0, 1, 0] if model.cause == "four" else 1.0  # a is the base, and numbers are 1 apart
    inverse = np.linalg.pinv(design)
    line, w = inverse @ y, contrast @ inverse
    error = float(np.sqrt(np.sum((w * (y - design @ line)) ** 2)))
    at = float(contrast @ line)
    return at, at - NORMAL * error, at + NORMAL * error


def forests(model: Model, table: dict[str, np.ndarray]) -> tuple[float, float, float] | None:
    """Doubly robust, with forests of five folds; not of numbers as causes (Chernozhukov et al. 2018)."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if model.cause == "number":
        return None
    y, z = model.numbers(table), np.column_stack([coded(table[name]) for name in model.adjusted])
    part, said = np.random.default_rng(0).permutation(len(y)) % 5, np.zeros(len(y))
    for p, (end, sign) in product(range(5), zip(model.ends, (-1, 1), strict=True)):
        left, out, here = part != p, part == p, table["t"] == end
        of_y = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(z[left & here], y[left & here])
        of_t = RandomForestClassifier(100, min_samples_leaf=10, random_state=0).fit(z[left], here[left])
        expected, share = of_y.predict(z[out]), np.maximum(of_t.predict_proba(z[out])[:, 1], 0.02)
        said[out] += sign * (expected + here[out] / share * (y[out] - expected))
    at, error = float(said.mean()), float(said.std() / np.sqrt(len(y)))
    return at, at - NORMAL * error, at + NORMAL * error


METHODS: dict[str, Callable[..., Any]] = {"effect": ours, "least squares": least_squares, "forests": forests}


def compared(model: Model, rows: int, tables: int) -> Found:
    """For each method the bias in standard errors of one table, the share of intervals that hold, and refusals."""
    truth, found = model.truth(), {name: [] for name in METHODS}
    refused = 0
    for k in range(tables):
        table = model.draw(np.random.default_rng([SEED, k]), rows)
        try:
            found["effect"].append(ours(model, table))
        except InputError:
            refused += 1
        for name in ("least squares", "forests") if not model.hidden else ():
            answer = METHODS[name](model, table)
            found[name] += [] if answer is None else [answer]
    return {"truth": truth, "refused": refused, **{name: _judged(each, truth) for name, each in found.items() if each}}


def _judged(answers: list[tuple[float, float, float]], truth: float) -> Found:
    at, low, high = np.array(answers).T
    error = float(np.mean(high - low)) / (2 * NORMAL)
    return {"bias": float(at.mean() - truth) / error, "held": float(np.mean((low <= truth) & (truth <= high)))}


def measure(rows: int, tables: int) -> Found:
    """All models."""
    found: Found = {}
    for model in MODELS:
        found[model.name] = compared(model, rows, tables)
        print(model.name, found[model.name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """One table: bias and coverage of each method."""
    rows = []
    for name, each in found.items():
        shown = [f"{each[m]['bias']:+.2f}, {each[m]['held']:.2f}" if m in each else "" for m in METHODS]
        rows.append([name, f"{each['truth']:.3f}", *shown, str(each["refused"])])
    return "\n".join(list_table(["model", "truth", *METHODS, "refused"], rows))


def main() -> None:
    """Measure, and print the page."""
    print(page(measure(*map(int, sys.argv[1:3]))))


if __name__ == "__main__":
    main()
