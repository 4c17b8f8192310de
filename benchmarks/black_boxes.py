"""Ten black boxes: evaluations and errors beside rules that keep nothing: python -m benchmarks.black_boxes [--keep].

Rows of one unknown with a standard normal prior, seen through a Python function that JAX cannot trace, with normal
noise; two unknowns in one line. Every evaluation counts, a point that comes twice counts twice in ours and once in the
rivals'. Errors are of means and standard deviations, the largest over the rows, in standard deviations of the belief.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import dblquad, quad

from benchmarks import pages
from benchmarks.table import list_table
from meanmap import ep

__all__ = ["CASES", "Case", "adaptive", "beliefs", "importance", "measure", "ours", "page", "plain"]

LOW, HIGH = -9.5, 9.5
DRAWS = 10_000
NOISE = 0.05
Found = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A function of one unknown (two, if so), and of an argument of each row; `density` says that it is a log density.

    `breaks` are where it is not smooth, which only the reference knows.
    """

    title: str
    function: Callable[..., Any]
    rows: int = 12
    unknowns: int = 1
    density: bool = False
    arguments: bool = False
    noise: float = NOISE
    breaks: tuple[float, ...] = ()

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Arguments and observations of the rows."""
        rng = np.random.default_rng(11)
        x = np.linspace(0.5, 2.0, self.rows)
        truth = rng.normal(size=(self.unknowns, self.rows))
        with np.errstate(all="ignore"):
            image = np.abs(truth[0]) if self.density else self.function(*truth, *([x] if self.arguments else []))
        return x, np.nan_to_num(image) + self.noise * rng.normal(size=self.rows)

    def log_factor(self, x: float, y: float) -> Callable[..., Any]:
        """The log of a row's factor, without the prior."""
        given = [x] if self.arguments else []

        def log_factor(*z: Any) -> Any:
            with np.errstate(all="ignore"):
                found = self.function(*z, y) if self.density else self.function(*z, *given)
                found = found if self.density else -(((y - found) / self.noise) ** 2) / 2
            return np.where(np.isnan(found), -np.inf, found)

        return log_factor


def three_sensors(z: Any, y: Any) -> Any:
    """Log density of three readings, all of them y as a location would give them."""
    expected = np.stack([np.sin(z), np.exp(z / 3), z + 0 * z])
    seen = np.stack([np.sin(y), np.exp(y / 3), y + 0 * y])
    return -(((seen.T - expected.T) / 0.2) ** 2).sum(axis=-1) / 2


CASES = {
    "smooth": Case("sin(1.5 z) + z", lambda z: np.sin(1.5 * z) + z),
    "narrow": Case(
        "z + exp(−((z − 1)/.01)²/2)", lambda z: z + np.exp(-(((z - 1) / 0.01) ** 2) / 2), breaks=(0.9, 1.0, 1.1)
    ),
    "jump": Case("z, and z + 1 for z > .3", lambda z: np.where(z > 0.3, z + 1, z), breaks=(0.3,)),
    "oscillating": Case("z + .2 sin(20 z)", lambda z: z + 0.2 * np.sin(20 * z)),
    "heavy": Case("Student's log density", lambda z, y: -2 * np.log1p(((y - z) / 0.05) ** 2), density=True),
    "bounded": Case("tanh(3 z)", lambda z: np.tanh(3 * z)),
    "without numbers": Case(
        "density of log(z + .5), −∞ where it is undefined",
        lambda z, y: np.nan_to_num(
            -(((np.log(y + 0.5) - np.log(z + 0.5)) / 0.2) ** 2) / 2, nan=-np.inf, neginf=-np.inf
        ),
        density=True,
        breaks=(-0.5,),
    ),
    "two inputs": Case("a + sin(b)", lambda a, b: a + np.sin(b), rows=2, unknowns=2, noise=0.3),
    "arguments a row": Case("exp(x z/2) + sin(z)", lambda z, x: np.exp(x * z / 2) + np.sin(z), arguments=True),
    "vector valued": Case("three readings of z", three_sensors, density=True),
}


class Counted:
    """One object for all functions, so that programs are compiled once; it counts the evaluated points."""

    def __init__(self) -> None:
        self.function: Any = None
        self.points = 0

    def __call__(self, *values: Any) -> Any:
        self.points += len(values[0])
        with np.errstate(all="ignore"):
            return self.function(*values)


_counted = Counted()


def ours(case: Case) -> tuple[np.ndarray, int, float]:
    """Means and standard deviations (unknowns, rows, 2), evaluations, and the largest stated error."""
    x, y = case.data()
    _counted.function, _counted.points = case.function, 0
    unknown = [ep.Variable(name, ep.Normal(0.0, 1.0), plate=case.rows) for name in "ab"[: case.unknowns]]
    if case.density:
        factors = [ep.Density(_counted, *unknown, y, vectorised=True, name="f")]
    else:
        out = ep.Variable("out", ep.Normal, plate=case.rows)
        given = [x] if case.arguments else []
        factors = [
            ep.BlackBox(_counted, *unknown, *given, out, vectorised=True, name="f"),
            ep.Gaussian(out, precision=case.noise**-2, observed=y),
        ]
    post = ep.infer(ep.FactorGraph(*factors))
    found = np.stack([[post[v.name].mean(), np.sqrt(post[v.name].var())] for v in unknown]).transpose(0, 2, 1)
    return found, _counted.points, float(np.max(post.doubt["f"])) if post.report.converged else np.inf


def _moments(z: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
    """Means and deviations of unknowns (unknowns, points) under weights."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = z @ weights
    return np.stack([mean, np.sqrt((z - mean[:, None]) ** 2 @ weights)], 1)


def _by_row(case: Case, answer: Callable[[Callable[..., Any]], tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    found = [answer(case.log_factor(x, y)) for x, y in zip(*case.data(), strict=True)]
    return np.stack([one for one, _ in found], 1), sum(count for _, count in found)


def beliefs(case: Case) -> np.ndarray:
    """The reference: a Gauss-Legendre rule on 20,000 panels that end at kinks and jumps; for two, 2001² points."""
    if case.unknowns == 2:
        axis = np.linspace(LOW, HIGH, 2001)
        z = np.stack([each.ravel() for each in np.meshgrid(axis, axis)])
        return _by_row(case, lambda log: (_moments(z, log(*z) - (z**2).sum(0) / 2), 0))[0]
    node, weight = np.polynomial.legendre.leggauss(8)
    ends = np.union1d(np.linspace(LOW, HIGH, 20_001), case.breaks)
    half = np.diff(ends)[:, None] / 2
    z = ((ends[1:] + ends[:-1])[:, None] / 2 + half * node).ravel()
    log_rule = np.log(half * weight).ravel()
    return _by_row(case, lambda log: (_moments(z[None], log(z) - z**2 / 2 + log_rule), 0))[0]


def plain(case: Case) -> tuple[np.ndarray, int]:
    """Equal steps, halved until moments move by less than 1e-6: at most 2^16 for each row (2^9 squared)."""

    def answer(log: Callable[..., Any]) -> tuple[np.ndarray, int]:
        before = np.full((case.unknowns, 2), np.inf)
        for level in range(5, 17 if case.unknowns == 1 else 10):
            axis = np.linspace(LOW, HIGH, 2**level + 1)
            z = np.stack([each.ravel() for each in np.meshgrid(*[axis] * case.unknowns)])
            found = _moments(z, log(*z) - (z**2).sum(0) / 2)
            if (np.abs(found - before) <= 1e-6 * found[:, 1:]).all():
                break
            before = found
        return found, z.shape[1]

    return _by_row(case, answer)


def adaptive(case: Case) -> tuple[np.ndarray, int]:
    """SciPy's `quad` and `dblquad` for each moment, with their own tolerances; a point counts once for all moments."""

    def answer(log: Callable[..., Any]) -> tuple[np.ndarray, int]:
        known: dict[tuple[float, ...], float] = {}

        def density(*z: float) -> float:
            if z not in known:
                known[z] = float(np.exp(log(*map(np.asarray, z)) - sum(each**2 for each in z) / 2))
            return known[z]

        def moment(axis: int, power: int) -> float:
            if case.unknowns == 1:
                return quad(lambda z: z**power * density(z), LOW, HIGH, limit=200)[0]
            return dblquad(lambda b, a: (a, b)[axis] ** power * density(a, b), LOW, HIGH, LOW, HIGH, epsabs=1e-6)[0]

        total, rows = moment(0, 0), []
        for axis in range(case.unknowns):
            mean = moment(axis, 1) / total if total else np.nan
            rows.append([mean, np.sqrt(max(moment(axis, 2) / total - mean**2, 0.0)) if total else np.nan])
        return np.array(rows), len(known)

    return _by_row(case, answer)


def importance(case: Case) -> tuple[np.ndarray, int]:
    """10,000 draws from the prior for each row."""
    rng = np.random.default_rng(5)

    def answer(log: Callable[..., Any]) -> tuple[np.ndarray, int]:
        z = rng.normal(size=(case.unknowns, DRAWS))
        return _moments(z, log(*z)), DRAWS

    return _by_row(case, answer)


def _error(found: np.ndarray, right: np.ndarray) -> float:
    """The largest error over rows and unknowns, in standard deviations; infinite for NaN."""
    off = np.abs(found - right) / right[..., 1:]
    return float(np.nan_to_num(off, nan=np.inf).max())


def measure(names: list[str]) -> Found:
    """Evaluations per row and errors of each method, by case."""
    found = {}
    for name in names:
        case = CASES[name]
        right = beliefs(case)
        mine, points, stated = ours(case)
        of_case = {"ours": [points / case.rows, _error(mine, right), stated]}
        for way in (plain, adaptive, importance):
            answer, points = way(case)
            of_case[way.__name__] = [points / case.rows, _error(answer, right)]
        found[name] = {way: [float(f"{value:.2g}") for value in values] for way, values in of_case.items()}
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def _told(error: float, large: str = "wrong") -> str:
    return large if error >= 1 else f"{error:.0e}".replace("e-0", "e-")


def page(found: Found) -> str:
    """The table."""
    head = ["function", "ours", "error", "stated", "equal steps", "error", "SciPy", "error", "sampling", "error"]
    table = []
    for name, ways in found.items():
        row = [f"{name}: {CASES[name].title}"]
        for way in ("ours", "plain", "adaptive", "importance"):
            points, error, *stated = ways[way]
            row += [
                f"{points:,.0f}",
                _told(error),
                *(_told(max(each, ep.doubt.ENOUGH), "1 or more") for each in stated),
            ]
        table.append(row)
    return "\n".join(list_table(head, table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases, all if none is named")
    parser.add_argument("--keep", action="store_true", help="store what was measured and write the page")
    chosen = parser.parse_args()
    found = measure(chosen.names or list(CASES))
    if chosen.keep:
        known = pages.stored()
        pages.store({**known, "black_boxes": {**known.get("black_boxes", {}), **found}})
    else:
        print(page(found))
