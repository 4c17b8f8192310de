"""Networks of pgmpy, learned from rows drawn from them: nice python -m benchmarks.learned_networks --keep.

The graph is the true one: what is compared is how probable new rows are. It needs MEANMAP_PGMPY: see benchmarks/peers.
"""

import sys
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.networks import PEER as TABLES
from benchmarks.networks import read
from benchmarks.peers import Elsewhere
from benchmarks.table import list_table
from meanmap.graphs import Factors

__all__ = ["COUNTED", "measure", "page"]

LEARNED = Elsewhere("pgmpy_learned.py", "MEANMAP_PGMPY")
SEED = 15_000_000
# New rows, and rows to learn from; regressions take longer than tables.
NEW, SIZES = 10_000, (5000, 50_000)
NEW_NUMBERS, SIZES_NUMBERS = 1000, (1000, 5000)
DISCRETE = ("asia", "alarm", "insurance", "hailfinder", "win95pts")
GAUSSIAN = ("ecoli70", "magic-niab", "magic-irri", "arth150")
# Tables of counts with this many rows before the first (Heckerman et al. 1995), and with one more of each; pgmpy's.
COUNTED = {"BDeu": "BDeu 5", "K2": "counts + 1", "likelihood": "counts"}
OURS, LINEAR = "BayesianNetwork", "linear, normal noise"
# Aims: so much a row of the best, and so much of its absolute value.
WITHIN, SHARE = 0.02, 0.01
Found = dict[str, Any]


def drawn(factors: Factors, rng: np.random.Generator, rows: int) -> np.ndarray:
    """States (rows, n), causes first: the first variable of a scope is the effect of the others."""
    found, known = np.zeros((rows, factors.size), dtype=int), set()
    while len(known) < factors.size:
        for i, (scope, table) in enumerate(zip(factors.scopes, factors.tables, strict=True)):
            if i in known or not known.issuperset(scope[1:]):
                continue
            shares = np.cumsum(table, axis=0)[(slice(None), *found[:, list(scope[1:])].T)].reshape(len(table), -1)
            found[:, i] = np.sum(rng.random(rows) * shares[-1] > shares, axis=0)
            known.add(i)
    return found


def log_shares(factors: Factors, rows: np.ndarray, among: set[int]) -> np.ndarray:
    """The log probability of some variables in rows under the true tables."""
    each = [
        np.log((table / table.sum(axis=0))[tuple(rows[:, list(scope)].T)])
        for scope, table in zip(factors.scopes, factors.tables, strict=True)
        if scope[0] in among
    ]
    return np.sum(each, axis=0)


def ours(columns: dict[str, np.ndarray], new: dict[str, np.ndarray], scopes: list[tuple[int, ...]]) -> np.ndarray:
    """The scores of new rows."""
    arrows = [(f"x{cause}", f"x{scope[0]}") for scope in scopes for cause in scope[1:]]
    graph = mm.graphs.PDAG.of(arrows, nodes=list(columns))
    return mm.bp.BayesianNetwork(graph).fit(columns).score(new)


def summed(truth: np.ndarray, methods: dict[str, np.ndarray]) -> Found:
    """The mean of the truth, and how much less each method gives to a row, with the standard error of that."""
    found: Found = {"truth": round(float(truth.mean()), 4)}
    for name, each in methods.items():
        less = truth - each
        told = [less.mean(), less.std() / np.sqrt(len(less))] if np.isfinite(less).all() else [np.inf, np.inf]
        found[name] = [float(f"{one:.4g}") if np.isfinite(one) else None for one in told]
    return found


def of_labels(name: str) -> dict[str, Found]:
    """Of a network of tables, by the number of rows; without variables that are the same in all of these."""
    with TABLES.start(name=np.array(name)) as peer:
        factors = read(peer)
    new, found = drawn(factors, np.random.default_rng([SEED, 0]), NEW), {}
    for rows in SIZES:
        known = drawn(factors, np.random.default_rng([SEED, rows]), rows)
        varied = set(np.flatnonzero(np.ptp(known, axis=0)).tolist())
        scopes = [tuple(i for i in scope if i in varied) for scope in factors.scopes if scope[0] in varied]
        columns, held = ({f"x{i}": labels[f"x{i}"] for i in varied} for labels in map(labelled, (known, new)))
        methods = {OURS: ours(columns, held, scopes)}
        with LEARNED.start(rows=known, new=new, scopes=padded(scopes), sizes=factors.cardinalities) as peer:
            methods |= {told: peer.ask(method=method) for method, told in COUNTED.items()}
        truth = log_shares(factors, new, varied)
        found[f"{name}; {rows}"] = {"variables": len(varied), **summed(truth, methods)}
        print(found, file=sys.stderr, flush=True)
    return found


def padded(scopes: list[tuple[int, ...]]) -> np.ndarray:
    """As an array, −1 behind."""
    most = max(map(len, scopes))
    return np.array([[*scope, *[-1] * (most - len(scope))] for scope in scopes])


def labelled(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Codes as words."""
    return {f"x{i}": np.char.mod("s%d", column) for i, column in enumerate(rows.T)}


def of_numbers(name: str) -> dict[str, Found]:
    """Of a network of lines with normal noise, by the number of rows."""
    with LEARNED.start(name=np.array(name)) as peer:
        lines = peer.ask(method="lines")
    slopes, means, deviations = lines[:, :-2], lines[:, -2], lines[:, -1]
    scopes = [(i, *np.flatnonzero(row).tolist()) for i, row in enumerate(slopes)]

    def rows_of(seed: int, rows: int) -> np.ndarray:
        noise = np.random.default_rng([SEED, seed]).normal(size=(rows, len(lines))) * deviations
        return np.linalg.solve(np.eye(len(lines)) - slopes, (means + noise).T).T

    new, found = rows_of(0, NEW_NUMBERS), {}
    left = (new - means - new @ slopes.T) / deviations
    truth = np.sum(-(left**2) / 2 - np.log(deviations) - np.log(2 * np.pi) / 2, axis=1)
    for rows in SIZES_NUMBERS:
        known = rows_of(rows, rows)
        methods = {OURS: ours(named(known), named(new), scopes)}
        with LEARNED.start(rows=known, new=new, scopes=padded(scopes)) as peer:
            methods[LINEAR] = peer.ask(method="linear")
        found[f"{name}; {rows}"] = {"variables": len(lines), **summed(truth, methods)}
        print(found, file=sys.stderr, flush=True)
    return found


def named(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Columns by name."""
    return {f"x{i}": column for i, column in enumerate(rows.T)}


def measure() -> Found:
    """All networks."""
    found: Found = {}
    for name in DISCRETE:
        found |= of_labels(name)
    for name in GAUSSIAN:
        found |= of_numbers(name)
    return found


def page(found: Found) -> str:
    """How much less a row has than under the truth, a table for labels and one for numbers."""
    parts = []
    for title, methods in (("Labels", (OURS, *COUNTED.values())), ("Numbers", (OURS, LINEAR))):
        rows = []
        for key, one in found.items():
            if methods[-1] not in one:
                continue
            name, number = key.rsplit("; ", 1)
            best = min(one[method][0] for method in methods[1:] if one[method][0] is not None)
            behind = one[OURS][0] - best
            aim = WITHIN if title == "Labels" else SHARE * abs(one["truth"] - best)
            cells = ["−∞" if one[m][0] is None else f"{one[m][0]:.3f}" for m in methods]
            behind = f"{behind:+.3f}" if behind <= aim else f"**{behind:+.3f}**"
            rows.append([f"{name}, {one['variables']}", number, f"{one['truth']:.2f}", *cells, behind])
        head = ["network, variables", "rows", "true network", *methods, "behind the best other"]
        parts += list_table(head, rows, f"{title}: log probability of a new row, and the loss of each method")
    return "\n".join(parts)


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "learned_networks": found})
    print(page(found))


if __name__ == "__main__":
    main()
