"""Mixed models in Bambi: means of draws by PyMC of fixed effects and of standard deviations."""

import logging
import warnings

import bambi
import numpy as np
import pandas
from serving import serve

warnings.simplefilter("ignore")
logging.disable()


def prepare(model):
    """`y`, `trials`, `offset` (n,), `columns` (n, p), `groups` (n, factors), and `slopes_0`, ... (n, m) of each."""
    y, columns, groups = model["y"], model["columns"], model["groups"]
    frame = pandas.DataFrame({"y": y, "trials": model["trials"].astype(int), "away": model["offset"]})
    constant = columns.std(0) == 0
    terms = ["1" if constant.any() else "0"]
    for k in np.flatnonzero(~constant):
        frame[f"c{k}"] = columns[:, k]
        terms.append(f"c{k}")
    effects = []
    for k in range(groups.shape[1]):
        frame[f"g{k}"], inside = groups[:, k].astype(int).astype(str), ["1"]
        effects.append(f"1|g{k}")
        for j in range(model[f"slopes_{k}"].shape[1]):
            frame[f"s{k}_{j}"] = model[f"slopes_{k}"][:, j]
            inside.append(f"s{k}_{j}")
            effects.append(f"s{k}_{j}|g{k}")
        terms.append(f"({' + '.join(inside)} | g{k})")
    terms += ["offset(away)"] if model["offset"].any() else []

    def answer(family, draws):
        """Fixed effects, then standard deviations factor by factor, then the parameter of the family."""
        whole = family in ("binomial", "bernoulli", "poisson", "negativebinomial")
        table = frame.astype({"y": int}) if whole else frame
        left = "p(y, trials)" if family == "binomial" else "y"
        built = bambi.Model(f"{left} ~ {' + '.join(terms)}", table, family=family)
        found = built.fit(draws=draws, tune=draws, chains=2, cores=1, random_seed=1, progressbar=False)
        means = found.posterior.mean(["chain", "draw"])
        names = ["Intercept" if constant[k] else f"c{k}" for k in range(len(constant))]
        last = {"gaussian": ["sigma"], "negativebinomial": ["alpha"]}.get(family, [])
        asked = [*names, *(f"{each}_sigma" for each in effects), *last]
        return np.array([float(means[name]) for name in asked])

    return answer


serve(prepare)
