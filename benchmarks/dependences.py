"""How often independence tests see a dependence that is there: python -m benchmarks.dependences.

Every method sees the same data sets, at level 0.05, with 199 permutations: problems of our own, and the twenty
relations of `benchmarks.relations` with 100 points in one and in three columns. The whole takes part in
`python -m benchmarks`, which stores the results and writes docs/benchmarks/dependences.rst.
"""

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.relations import RELATIONS
from benchmarks.table import error_of_mean, list_table

__all__ = ["METHODS", "PROBLEMS", "measure", "page", "panel"]

LEVEL, PERMUTATIONS, REPEATS, SEED = 0.05, 199, 40, 2028
Found = dict[str, Any]
Generator = np.random.Generator
Pair = tuple[Any, Any]


def wave(frequency: int, noise: float) -> Callable[[Generator], Pair]:
    """A sine of this frequency on an interval."""

    def draw(rng: Generator) -> Pair:
        x = rng.uniform(-np.pi, np.pi, 100)
        return x, np.sin(frequency * x) + noise * rng.normal(size=100)

    return draw


def independent(rng: Generator) -> Pair:
    """The hypothesis itself."""
    return rng.normal(size=(60, 2)), rng.exponential(size=60)


def linear(rng: Generator) -> Pair:
    """A weak correlation."""
    x = rng.normal(size=100)
    return x, 0.3 * x + rng.normal(size=100)


def quadratic(rng: Generator) -> Pair:
    """No correlation."""
    x = rng.uniform(-1, 1, 100)
    return x, x**2 + 0.45 * rng.normal(size=100)


def circle(rng: Generator) -> Pair:
    """A noisy ring."""
    angle = rng.uniform(0, 2 * np.pi, 100)
    return np.cos(angle) + 0.3 * rng.normal(size=100), np.sin(angle) + 0.3 * rng.normal(size=100)


def heteroscedastic(rng: Generator) -> Pair:
    """Only the spread depends on x."""
    x = rng.normal(size=100)
    return x, rng.normal(size=100) * (0.35 + 0.8 * np.minimum(np.abs(x), 2))


def one_of_ten(rng: Generator) -> Pair:
    """One coordinate of ten on each side is correlated."""
    x, y = rng.normal(size=(2, 150, 10))
    y[:, 0] += 0.8 * x[:, 0]
    return x, y


def square_of_five(rng: Generator) -> Pair:
    """One coordinate of five depends on a square."""
    x, y = rng.normal(size=(2, 200, 5))
    y[:, 0] += 0.9 * (x[:, 0] ** 2 - 1)
    return x, y


def units(rng: Generator) -> Pair:
    """As `one_of_ten` with 100 rows, every column in units of its own."""
    x, y = one_of_ten(rng)
    return x[:100] * 10.0 ** np.arange(-5, 5), y[:100]


def group_means(rng: Generator) -> Pair:
    """A label of three groups and a number of different means."""
    group = rng.integers(0, 3, 100)
    return np.array(["a", "b", "c"])[group], 0.35 * group + rng.normal(size=100)


def group_variances(rng: Generator) -> Pair:
    """A label of three groups and a number of different spreads."""
    group = rng.integers(0, 3, 100)
    return np.array(["a", "b", "c"])[group], (1 + 0.35 * group) * rng.normal(size=100)


def mixed(rng: Generator) -> Pair:
    """A table of a label and a number, whose sign the label turns."""
    group, number = rng.integers(0, 2, 100), rng.normal(size=100)
    table = {"group": np.array(["a", "b"])[group], "number": number}
    return table, 0.6 * np.where(group == 1, number, -number) + rng.normal(size=100)


def heavy_tails(rng: Generator) -> Pair:
    """A correlation of variables without a variance."""
    x = rng.standard_t(1.5, 100)
    return x, 0.35 * x + rng.standard_t(1.5, 100)


def checkerboard(rng: Generator) -> Pair:
    """Four by four fields, half of them empty."""
    column = rng.integers(0, 4, 150)
    row = 2 * rng.integers(0, 2, 150) + column % 2
    noise = 0.2 * rng.normal(size=(2, 150))
    return column + rng.uniform(size=150) + noise[0], row + rng.uniform(size=150) + noise[1]


PROBLEMS: dict[str, Callable[[Generator], Pair]] = {
    "independent": independent,
    "linear": linear,
    "quadratic": quadratic,
    "sine 1": wave(1, 1.8),
    "sine 2": wave(2, 1.2),
    "sine 4": wave(4, 0.8),
    "sine 8": wave(8, 0.25),
    "circle": circle,
    "heteroscedastic": heteroscedastic,
    "one of ten": one_of_ten,
    "square of five": square_of_five,
    "units": units,
    "group means": group_means,
    "group variances": group_variances,
    "mixed table": mixed,
    "heavy tails": heavy_tails,
    "checkerboard": checkerboard,
}


def distance_covariance(x: Any, y: Any, rng: int) -> float:
    """The permutation p-value of the biased distance covariance (Székely et al. 2007); labels as indicators."""
    from scipy.spatial.distance import cdist

    generator, centred = np.random.default_rng(rng), []
    for data in (x, y):
        columns = [np.asarray(part) for part in (data.values() if isinstance(data, dict) else [data])]
        blocks = [(c[:, None] == np.unique(c)).astype(float) if c.dtype.kind == "U" else c for c in columns]
        points = np.concatenate([block.reshape(len(block), -1) for block in blocks], axis=1)
        distances = cdist(points, points)
        distances -= distances.mean(axis=0)
        centred.append(distances - distances.mean(axis=1)[:, None])
    first, second = centred
    orders = [np.arange(len(first)), *(generator.permutation(len(first)) for _ in range(PERMUTATIONS))]
    values = np.array([np.vdot(first, second[np.ix_(order, order)]) for order in orders])
    return float(np.mean(values >= values[0] * (1 - 1e-12)))


METHODS: dict[str, Callable[..., Any]] = {
    "default": lambda x, y, rng: mm.independence_test(x, y, n_permutations=PERMUTATIONS, rng=rng),
    "median": lambda x, y, rng: mm.independence_test(x, y, "median", n_permutations=PERMUTATIONS, rng=rng),
    "distance covariance": distance_covariance,
}


def relations() -> dict[str, Callable[[Generator], Pair]]:
    """The twenty relations with 100 points, in one column and in three."""
    return {
        f"{name}, {'1 column' if d == 1 else f'{d} columns'}": lambda rng, draw=draw, d=d: draw(rng, 100, d)
        for d in (1, 3)
        for name, draw in RELATIONS.items()
    }


def panel(
    problems: dict[str, Callable[[Generator], Pair]], repeats: int, seed: int, executor: Executor | None = None
) -> dict[str, dict[str, float]]:
    """Rejection rates, problem by problem and method by method, each method on the same data sets."""
    found = {}
    for name, draw in problems.items():
        found[name] = {
            method: mm.stats.rejection_rate(test, draw, repeats=repeats, level=LEVEL, executor=executor, rng=seed).rate
            for method, test in METHODS.items()
        }
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def measure(executor: Executor | None = None) -> Found:
    """Our own problems and the relations of others."""
    own, shared = (panel(problems, REPEATS, SEED, executor) for problems in (PROBLEMS, relations()))
    return {"repeats": REPEATS, "own": own, "relations": shared}


def mean_power(rates: dict[str, dict[str, float]], method: str, columns: str = "") -> float:
    """Over all problems, or those with "1 column" or "3 columns"."""
    return float(np.mean([of_method[method] for name, of_method in rates.items() if name.endswith(columns)]))


def mean_error(rates: dict[str, dict[str, float]], method: str, repeats: int) -> float:
    """The standard error of the mean over all problems."""
    return error_of_mean((of_method[method] for of_method in rates.values()), repeats)


NOTE = """\
The twenty relations of Vogelstein et al. (2019), 100 points each. The last of them is independence, where the rate is
the level: in three columns the mean of the default is {three:.2f} over all twenty, and {related:.2f} over the nineteen
dependent ones. The multiscale graph correlation does best on the diamond, the square and the two parabolas. On
the square, where only the corners depend, it remains ahead of the default, with a power of 0.65 to {square:.2f} in one
column. On 60 other data sets the power of the default is 0.50 there, and that of the best single pair of kernels,
chosen in hindsight, 0.60. A head start of 1.5 standard deviations for that pair and its neighbours gives 0.62, but
costs 0.20 on sine 4π, 0.23 on sine 16π and 0.07 on joint normal; so they have none."""


def page(found: Found) -> str:
    """Both tables as reStructuredText."""
    told = f"{found['repeats']} data sets per problem; standard errors in brackets; {PERMUTATIONS} permutations."
    rates = found["relations"]
    three, null = mean_power(rates, "default", "3 columns"), rates["multimodal independence, 3 columns"]["default"]
    note = NOTE.format(three=three, related=(20 * three - null) / 19, square=rates["square, 1 column"]["default"])
    own, shared = (_table(found[part], found["repeats"]) for part in ("own", "relations"))
    return "\n".join([*own, told, "", note, "", *shared, told, ""])


def _table(rates: dict[str, dict[str, float]], repeats: int) -> list[str]:
    """With the mean over all problems at the end."""
    rows = [
        [name, *(f"{rate:.2f} ({np.sqrt(rate * (1 - rate) / repeats):.2f})" for rate in of_method.values())]
        for name, of_method in rates.items()
    ]
    mean = ["mean", *(f"{mean_power(rates, name):.2f} ({mean_error(rates, name, repeats):.2f})" for name in METHODS)]
    return list_table(["problem", *METHODS], [*rows, mean])


if __name__ == "__main__":
    print(page(measure()))
