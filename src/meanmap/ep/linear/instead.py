"""What to type in place of families and of names of a fit that other libraries have."""

from typing import Any

__all__ = ["called_here", "of_a_fit"]

_FAMILIES = {
    **dict.fromkeys(["student", "studentt", "student_t"], "t"),
    **dict.fromkeys(["normal", "linear"], "gaussian"),
    **dict.fromkeys(["negative_binomial", "negative binomial", "nbinom", "negbin", "nbinom2"], "negativebinomial"),
    **dict.fromkeys(["logistic", "logit"], "bernoulli"),
    **dict.fromkeys(["ordinal", "ordered"], "cumulative"),
}
_TABLE = "found.to_frame() for the table, found.mean and found.covariance for the effects that all rows share"
_SUMS = (
    f"{_TABLE}, found.group_effects() for what groups add; sums of both are those of columns of "
    "found.draws(groups=True)"
)
_LINK = "np.log(found.expected(rows)), or the logit, for draws on the scale of the link"
_FITTED = "found.predict()"
_PARTS = "found.to_frame(), where standard deviations of groups stand below the effects"
_EVIDENCE = "found.log_evidence, or found.leave_one_out().sum()"
_FIT = {
    **dict.fromkeys(["coef", "coefs", "get_coef", "coefficients"], _SUMS),
    **dict.fromkeys(["summary", "params", "fe_params", "fixef", "bse", "conf_int", "confint", "vcov"], _TABLE),
    **dict.fromkeys(["ranef", "random_effects"], "found.group_effects()"),
    **dict.fromkeys(["VarCorr", "vcomp", "cov_re"], _PARTS),
    **dict.fromkeys(["linear_predictor", "posterior_linpred"], _LINK),
    **dict.fromkeys(["fitted", "fittedvalues", "fitted_values"], _FITTED),
    **dict.fromkeys(["resid", "residuals"], f"the responses minus {_FITTED}['estimate']"),
    **dict.fromkeys(["aic", "bic", "llf", "loglik", "logLik", "loo", "waic"], _EVIDENCE),
    **dict.fromkeys(["sample", "posterior", "as_draws"], "found.draws(1000, rng=0)"),
    **dict.fromkeys(
        ["posterior_predictive", "posterior_predict", "pp_check"], "found.simulate() or found.plot_check()"
    ),
}


def called_here(family: Any) -> str:
    """The family that is meant, as the end of a sentence; or empty."""
    meant = _FAMILIES.get(str(family).lower())
    return f" {family!r} is {meant!r} here." if meant else ""


def of_a_fit(name: str) -> str:
    """What to type in place of an attribute of a fit, as the end of a sentence; or empty."""
    return f"; type {_FIT[name]}" if name in _FIT else ""
