"""Mixed models in GPBoost and statsmodels: estimates of fixed effects and of standard deviations."""

import warnings

import gpboost
import numpy as np
from serving import serve
from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

warnings.simplefilter("ignore")
LIKELIHOODS = {
    "gaussian": "gaussian",
    "bernoulli": "bernoulli_logit",
    "binomial": "binomial_logit",
    "poisson": "poisson",
    "negativebinomial": "negative_binomial",
}


def prepare(model):
    """`y`, `trials`, `offset` (n,), `columns` (n, p), `groups` (n, factors), and `slopes_0`, ... (n, m) of each."""
    y, trials, offset, columns, groups = (model[k] for k in ("y", "trials", "offset", "columns", "groups"))
    slopes = [model[f"slopes_{k}"] for k in range(groups.shape[1])]

    def laplace(family):
        """Laplace's method; slopes are independent of intercepts, for it has no correlated ones."""
        also = {}
        if sum(each.shape[1] for each in slopes):
            also["group_rand_coef_data"] = np.concatenate(slopes, axis=1)
            also["ind_effect_group_rand_coef"] = [k + 1 for k, each in enumerate(slopes) for _ in range(each.shape[1])]
        shares = y / trials if family == "binomial" else y
        weights = trials if family == "binomial" else None
        given = gpboost.GPModel(
            likelihood=LIKELIHOODS[family],
            group_data=groups.astype(int),
            weights=weights,
            num_parallel_threads=1,
            **also,
        )
        given.fit(y=shares, X=columns, offset=offset if offset.any() else None)
        fixed = np.asarray(given.get_coef(), float).ravel()[: columns.shape[1]]
        variances = np.asarray(given.get_cov_pars(), float).ravel()
        noise, variances = (variances[:1], variances[1:]) if family == "gaussian" else (variances[:0], variances)
        # Intercepts of all factors come first, then all slopes.
        after = np.cumsum([groups.shape[1], *(each.shape[1] for each in slopes)])
        of_factor = [[variances[k], *variances[after[k] : after[k + 1]]] for k in range(groups.shape[1])]
        sds = list(np.sqrt(np.concatenate([*of_factor, noise])))
        if family == "negativebinomial":
            sds.append(float(np.ravel(np.asarray(given.get_aux_pars(format_pandas=False)))[0]))
        return fixed, sds

    def restricted():
        """Restricted maximum likelihood: groups of the coarsest factor, and those of others as components in these."""
        sizes = [len(np.unique(each)) for each in groups.T]
        outer = int(np.argmin(sizes))
        nested = all(
            len(np.unique(each * 1e6 + groups[:, outer])) == n for each, n in zip(groups.T, sizes, strict=True)
        )
        within = groups[:, outer] if nested else np.zeros(len(y))
        inner = [k for k in range(groups.shape[1]) if not (nested and k == outer)]
        labels = np.unique(within)
        names, columns_of, matrices = [f"factor {k}" for k in inner], [], []
        for k in inner:
            of_group = []
            for label in labels:
                codes = groups[within == label, k]
                of_group.append((codes[:, None] == np.unique(codes)).astype(float))
            matrices.append(of_group)
            columns_of.append([[f"{i}" for i in range(each.shape[1])] for each in of_group])
        extra = {"exog_vc": VCSpec(names, columns_of, matrices)} if inner else {}
        if nested:
            extra["exog_re"] = np.column_stack([np.ones(len(y)), slopes[outer]])
        given = MixedLM(y, columns, groups=within, **extra).fit(reml=True)
        sds = {k: [np.sqrt(value)] for k, value in zip(inner, given.vcomp, strict=True)}
        if nested:
            sds[outer] = list(np.sqrt(np.diag(np.atleast_2d(np.asarray(given.cov_re)))))
        return np.asarray(given.fe_params), [x for k in range(groups.shape[1]) for x in sds[k]] + [np.sqrt(given.scale)]

    def answer(peer, family):
        """Fixed effects, then standard deviations factor by factor, then the parameter of the family."""
        fixed, sds = laplace(family) if peer == "GPBoost" else restricted()
        return np.r_[fixed, sds]

    return answer


serve(prepare)
