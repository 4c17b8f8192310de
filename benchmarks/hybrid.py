"""Tables of numbers and labels, cells of new rows predicted from the others: nice python -m benchmarks.hybrid --keep.

Beside networks of pgmpy, of bins and conditional Gaussian ones, in a quarter of an hour. It needs MEANMAP_PGMPY: see
benchmarks/peers.
"""

import sys
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.imputation import within
from benchmarks.peers import Elsewhere
from benchmarks.table import list_table
from meanmap.core.executors import worked

__all__ = ["METHODS", "measure", "page", "tables"]

PEER = Elsewhere("pgmpy_hybrid.py", "MEANMAP_PGMPY")
SEED, REPEATS = 8_000_000, 3
MOST_NEW = 30
METHODS = ("DependencyNetwork", "BayesianNetwork", "pgmpy, 4 bins", "pgmpy, 8 bins", "conditional Gaussian")
Found = dict[str, Any]


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Eight tables, and which columns are labels: these are codes from 0, the others are standardised."""
    from sklearn import datasets

    found = {}
    for name, load, width in (
        ("iris", datasets.load_iris, 4),
        ("wine", datasets.load_wine, 8),
        ("cancer", datasets.load_breast_cancer, 7),
    ):
        data = load()
        found[name] = np.column_stack([data.data[:, :width], data.target]), [width]
    found["diabetes"] = np.column_stack([datasets.load_diabetes(scaled=False)[k] for k in ("data", "target")]), [1]
    for name, chosen in (("banknote", slice(None)), ("transfusion", slice(None)), ("ionosphere", slice(2, 10))):
        table, classes = mm.datasets.uci(name)
        found[name] = np.column_stack([table.matrix()[:, chosen], np.unique(classes, return_inverse=True)[1]]), [-1]
    table, classes = mm.datasets.uci("fertility")
    x = np.column_stack([table.matrix(), np.unique(classes, return_inverse=True)[1]])
    found["fertility"] = x, [j for j in range(x.shape[1]) if len(np.unique(x[:, j])) <= 5]
    return {name: coded(x, labels) for name, (x, labels) in found.items()}


def coded(x: np.ndarray, labels: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Labels as codes, numbers standardised."""
    label = np.isin(np.arange(x.shape[1]), np.arange(x.shape[1])[labels])
    columns = [
        np.unique(column, return_inverse=True)[1].astype(float) if one else (column - column.mean()) / column.std()
        for column, one in zip(x.T, label, strict=True)
    ]
    return np.stack(columns, axis=1), label


def frame(x: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """Columns by name, labels as words."""
    return {f"x{j}": np.char.mod("s%d", c.astype(int)) if label[j] else c for j, c in enumerate(x.T)}


def scored(belief: Any, truth: np.ndarray, states: int | None) -> np.ndarray:
    """Of beliefs about numbers the ranked probability score, by their quantiles; of labels half of Brier's score."""
    if states:
        each = belief.probabilities()
        shares = np.stack([np.broadcast_to(each.get(f"s{k}", 0.0), truth.shape) for k in range(states)], axis=-1)
        return np.sum((shares - np.eye(states)[truth.astype(int)]) ** 2, axis=-1) / 2
    levels = (np.arange(200) + 0.5) / 200
    quantiles = np.reshape(belief.quantile(levels), (len(truth), -1))
    # The score is the mean over levels of twice the pinball loss (Laio & Tamea 2007).
    gap = truth[:, None] - quantiles
    return 2 * np.mean(np.where(gap > 0, levels * gap, (levels - 1) * gap), axis=1)


def compared(x: np.ndarray, label: np.ndarray, seed: int) -> dict[str, float]:
    """The mean score of each method."""
    order = np.random.default_rng(seed).permutation(len(x))
    cut = max(int(0.3 * len(x)), 1)
    new, rows = x[order[:cut]][:MOST_NEW], x[order[cut:]]
    # No network knows what a label that it never learned says about the rest of a row.
    new = new[np.all([np.isin(new[:, j], rows[:, j]) for j in np.flatnonzero(label)], axis=0)]
    states = np.where(label, x.max(axis=0) + 1, 0).astype(int)
    names, known, asked = [f"x{j}" for j in range(x.shape[1])], frame(rows, label), frame(new, label)
    found = {}
    with PEER.start(rows=rows, label=label, states=states) as peer:
        for bins in (4, 8):
            found[f"pgmpy, {bins} bins"] = peer.ask(method="bins", new=new.tolist(), bins=bins)
        found["conditional Gaussian"] = peer.ask(method="gaussian", new=new.tolist())
        arrows = [(names[int(a)], names[int(b)]) for a, b in peer.ask(method="graph", new=[])]
    model = mm.bp.DependencyNetwork().fit(known)
    found["DependencyNetwork"] = np.stack(
        [scored(model.predict(asked, [n])[n], new[:, j], states[j]) for j, n in enumerate(names)], axis=1
    )
    network = mm.bp.BayesianNetwork(mm.graphs.PDAG.of(arrows, nodes=names)).fit(known)
    scores = np.empty(new.shape)
    for i in range(len(new)):
        cells = {n: column[i].item() for n, column in asked.items()}
        for j, n in enumerate(names):
            belief = network.query({k: v for k, v in cells.items() if k != n}, [n], rng=0)[n]
            scores[i, j] = scored(belief, new[i : i + 1, j], states[j])[0]
    found["BayesianNetwork"] = scores
    return {name: float(np.mean(each)) for name, each in found.items()}


def measure(executor: Executor | None = None) -> Found:
    """All tables."""
    found: Found = {}
    for name, (x, label) in tables().items():
        each = list(worked(partial(compared, x, label), range(SEED, SEED + REPEATS), executor))
        found[name] = {"rows": len(x), "numbers": int((~label).sum()), "labels": int(label.sum())}
        found[name] |= {method: [float(f"{one[method]:.4g}") for one in each] for method in METHODS}
        print(name, {m: round(float(np.mean(found[name][m])), 4) for m in METHODS}, file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """One table; what is within a standard error of the best is bold."""
    rows = []
    for table, each in found.items():
        values = {name: np.array(each[name]) for name in METHODS}
        best = min(values.values(), key=lambda v: v.mean())
        shown = [f"**{v.mean():.3f}**" if within(v, best) else f"{v.mean():.3f}" for v in values.values()]
        rows.append([f"{table}, {each['rows']}, {each['numbers']} + {each['labels']}", *shown])
    told = (
        "Tables with their numbers of rows, numeric + label columns. Three tenths of the rows are held out, "
        "and every cell of up to "
        f"{MOST_NEW} of them is predicted from the others, {REPEATS} times. Rows with a label that does not occur "
        "in training, three of fertility's, are dropped for all methods. Bold: the best and those within a "
        "standard error of it."
    )
    return "\n".join([*list_table(["table", *METHODS], rows), told, ""])


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "hybrid": found})
    print(page(found))


if __name__ == "__main__":
    main()
