"""Exact answers in the networks of pgmpy, beside its variable elimination: python -m benchmarks.networks --keep.

About five minutes of processor time, most of it pgmpy's. It needs MEANMAP_PGMPY: see benchmarks/peers.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks import pages, peers
from benchmarks.table import duration, list_table
from meanmap.bp import CliqueTree
from meanmap.graphs import Factors

__all__ = ["NETWORKS", "measure", "page"]

PEER = peers.Elsewhere("pgmpy_networks.py", "MEANMAP_PGMPY")
SEED, SEEN, FEW, REPEATS = 9_000_000, 3, 3, 3
NETWORKS = (
    *("asia", "cancer", "earthquake", "sachs", "survey", "alarm", "child", "insurance", "water", "mildew", "barley"),
    *("hailfinder", "hepar2", "win95pts", "pathfinder", "munin1", "andes", "diabetes", "pigs", "link"),
    *("munin2", "munin3", "munin4", "munin"),
)
Found = dict[str, Any]


def read(peer: peers.Running) -> Factors:
    """The tables of a network."""
    sizes = peer.ask(method="sizes")
    scopes = [tuple(int(i) for i in scope if i >= 0) for scope in peer.ask(method="scopes")]
    ends = np.cumsum([np.prod(sizes[list(scope)]) for scope in scopes]).astype(int)
    parts = np.split(peer.ask(method="tables"), ends[:-1])
    tables = tuple(part.reshape(sizes[list(scope)]) for part, scope in zip(parts, scopes, strict=True))
    return Factors(sizes, tuple(scopes), tables)


def drawn(factors: Factors, rng: np.random.Generator) -> np.ndarray:
    """A state of every variable, causes first: the first variable of a scope is the effect of the others."""
    row, waiting = np.full(factors.size, -1), list(range(factors.size))
    while waiting:
        i = waiting.pop(0)
        scope, table = factors.scopes[i], factors.tables[i]
        if (row[list(scope[1:])] < 0).any():
            waiting.append(i)
            continue
        law = table[(slice(None), *row[list(scope[1:])])]
        row[i] = rng.choice(len(law), p=law / law.sum())
    return row


def compared(name: str) -> Found:
    """Processor seconds of both sides, for few targets and for all, and the largest difference."""
    with PEER.start(name=np.array(name)) as peer:
        factors = read(peer)
        rng = np.random.default_rng(SEED)
        row, order = drawn(factors, rng), rng.permutation(factors.size).tolist()
        number = min(SEEN, factors.size // 3)
        evidence = {i: int(row[i]) for i in order[:number]}
        rest = order[number:]
        started = time.process_time()
        tree = CliqueTree(factors)
        found: Found = {"variables": factors.size, "made": time.process_time() - started}
        for key, targets in (("few", rest[:FEW]), ("all", rest)):
            seconds = []
            for _ in range(REPEATS if key == "few" else 1):
                started = time.process_time()
                ours = tree.query(evidence, targets=targets)
                seconds.append(time.process_time() - started)
            before = peers.spent()
            theirs = peer.ask(method="marginals", targets=targets, evidence=list(evidence.items()))
            found[key] = [float(f"{each:.3g}") for each in (min(seconds), peers.spent() - before)]
            found["gap"] = float(f"{np.abs(np.concatenate([ours[i] for i in targets]) - theirs).max():.2g}")
    return found | {"made": float(f"{found['made']:.3g}")}


def measure() -> Found:
    """All networks."""
    CliqueTree(Factors([2], ((0,),), (np.ones(2),))).query({0: 0})  # what begins once in a process
    found: Found = {}
    for name in NETWORKS:
        found[name] = compared(name)
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """One table, from few variables to many."""
    rows = []
    for name, each in sorted(found.items(), key=lambda item: item[1]["variables"]):
        times = [duration(max(seconds, 1e-4)) for seconds in (each["made"], *each["few"], *each["all"])]
        rows.append([f"{name}, {each['variables']}", *times, f"{each['gap']:.0e}"])
    head = ["network, variables", "building", f"{FEW} targets", "pgmpy", "all targets", "pgmpy", "largest difference"]
    ahead = [sum(each[key][0] <= each[key][1] for each in found.values()) for key in ("few", "all")]
    told = (
        f"Evidence on {SEEN} variables from a row drawn from the network. Processor seconds, the minimum of "
        f"{REPEATS} runs for {FEW} targets. pgmpy is queried for one target at a time, within 8 GiB, and answers for "
        f"all {len(found)} networks. ``CliqueTree`` is at least as fast on {ahead[0]} of {len(found)} for {FEW} "
        f"targets, on {ahead[1]} for all."
    )
    return "\n".join([*list_table(head, rows), told, ""])


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "networks": found})
    print(page(found))


if __name__ == "__main__":
    main()
