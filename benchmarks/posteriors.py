"""Beliefs of the ready models beside exact ones: python -m benchmarks.posteriors [NAME ...].

The No-U-Turn sampler (numpyro) draws 10,000 times from the same model and priors. Its own errors are as large as those
of expectation propagation, so 200,000 independent draws around its mean, weighted by the density, are the judge; they
give the evidence too. The whole takes part in `python -m benchmarks`, which stores the results and writes
docs/benchmarks/posteriors.rst.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.posterior_tables import TABLES
from benchmarks.table import duration, list_table
from meanmap.core.errors import InputError
from meanmap_papers.messages.judges import nuts, weighted

__all__ = ["exact", "measure", "measured", "page"]

Found = dict[str, Any]


def exact(name: str) -> dict[str, Any]:
    """Mean, deviations and evidence, with their standard errors, what the sampler says of deviations, and seconds."""
    table = TABLES[name]()
    began = time.process_time()
    draws = nuts(table.log_density, table.unknowns)
    spent = time.process_time() - began
    points, weights, evidence, error = weighted(table.log_density, draws)
    read = table.read(points)
    mean = weights @ read
    squares = (read - mean) ** 2
    sd = np.sqrt(weights @ squares)
    return {
        "mean": mean,
        "sd": sd,
        "sd error": np.sqrt((weights**2) @ (squares / sd**2 - 1) ** 2) / 2,
        "skewness": weights @ ((read - mean) / sd) ** 3,
        "evidence": evidence,
        "evidence error": error,
        "sampler's sd": table.read(draws).std(0),
        "seconds": spent,
    }


def measured(name: str) -> Found:
    """How far each way is from the judge: the worst mean in its deviations, the worst deviation, and the evidence."""
    table, judge = TABLES[name](), exact(name)
    ways = {}
    for way, call in table.ways.items():
        began = time.process_time()
        try:
            belief = call()
        except InputError as error:
            # An improper belief has no moments. The page says so, and the other ways and tables go on.
            ways[way] = {"failed": str(error), "seconds": float(f"{time.process_time() - began:.2g}")}
            continue
        ways[way] = {
            "mean": round(float((np.abs(belief.mean - judge["mean"]) / judge["sd"]).max()), 3),
            "sd": round(float(np.abs(belief.sd / judge["sd"] - 1).max()), 3),
            "evidence": round(float(belief.evidence - judge["evidence"]), 4),
            **({} if belief.stated is None else {"stated": float(f"{belief.stated:.1g}")}),
            "converged": belief.converged,
            "seconds": float(f"{time.process_time() - began:.2g}"),
        }
    return {
        "rows": table.rows,
        "unknowns": table.unknowns,
        "ways": ways,
        "skewness": round(float(np.abs(judge["skewness"]).max()), 2),
        "sampler": {
            "sd": round(float(np.abs(judge["sampler's sd"] / judge["sd"] - 1).max()), 3),
            "seconds": float(f"{judge['seconds']:.2g}"),
        },
        "errors": {
            "sd": float(f"{judge['sd error'].max():.1g}"),
            "evidence": float(f"{judge['evidence error']:.1g}"),
        },
    }


def measure() -> Found:
    """All tables."""
    found = {}
    for name in TABLES:
        found[name] = measured(name)
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """One line for each table and way, and one for the sampler."""
    head = [
        "table",
        "rows",
        "unknowns",
        "skewness",
        "model",
        "error of means (sd)",
        "error of sds",
        "error of log evidence",
    ]
    rows = []
    for name, of in found.items():
        for at, (way, one) in enumerate(of["ways"].items()):
            told = [name, of["rows"], of["unknowns"], of["skewness"]] if not at else [""] * 4
            if "failed" in one:
                rows.append([*told, f"{way} (no answer)", *["–"] * 3, duration(one["seconds"])])
                continue
            label = way if one["converged"] else f"{way} (not converged)"
            evidence = f"{one['evidence']:+.3f}".replace("-", "−")
            stated = f" (± {one['stated']:g} stated)" if "stated" in one else ""
            worst = [f"{one['mean']:.3f}", f"{one['sd']:.1%}", evidence + stated]
            rows.append([*told, label, *worst, duration(one["seconds"])])
        sampler = of["sampler"]
        rows.append([*[""] * 4, "NUTS", "", f"{sampler['sd']:.1%}", "", duration(sampler["seconds"])])
    return "\n".join(list_table([*head, "seconds"], rows))


if __name__ == "__main__":
    print(page({name: measured(name) for name in sys.argv[1:] or TABLES}))
