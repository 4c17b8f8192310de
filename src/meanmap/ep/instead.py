"""What to type in place of names that other libraries have."""

__all__ = ["of_posterior", "of_the_module"]

_BELIEFS = "post['name'].mean(), .sd() or .quantile(q), and print(post) shows all beliefs"
_DRAWS = "mm.io.posterior_draws(post, 1000), or post['name'].sample(1000, rng=0) for one belief"
_POSTERIOR = {
    **dict.fromkeys(["mean", "sd", "std", "var", "median", "quantile", "interval"], _BELIEFS),
    **dict.fromkeys(["summary", "describe", "marginals"], _BELIEFS),
    **dict.fromkeys(["sample", "samples", "draws", "rvs", "posterior"], _DRAWS),
    **dict.fromkeys(["converged", "status", "notes"], "post.report"),
}
_POSITIVE = "ep.Gamma(shape, rate), whose mean is shape/rate"
_TURNED = "ep.Normal(mean, variance), and {} of the number inside the function"
_FACTOR = "ep.Density(log_factor, ...) with the log probability of a row"
_MODULE = {
    "Exponential": "ep.Gamma(1.0, rate)",
    "HalfNormal": _POSITIVE,
    "HalfCauchy": _POSITIVE,
    "HalfStudentT": _POSITIVE,
    "InverseGamma": "ep.Gamma(shape, rate) of the precision, which is one over the variance",
    "LogNormal": _TURNED.format("jax.numpy.exp"),
    "Uniform": "ep.Beta(1.0, 1.0), and low + (high - low) times the number inside the function",
    "StudentT": "ep.Student(x, observed=y, scale=..., degrees=...)",
    "MvNormal": "ep.MultivariateNormal(mean, covariance)",
    **dict.fromkeys(["Binomial", "NegativeBinomial", "Weibull", "Laplacian", "Cauchy"], _FACTOR),
}


def of_posterior(name: str) -> str:
    """What to type in place of an attribute of a posterior, as the end of a sentence; or empty."""
    return f"; type {_POSTERIOR[name]}" if name in _POSTERIOR else ""


def of_the_module(name: str) -> str:
    """What to type in place of a name of the package, as the end of a sentence; or empty."""
    return f"; type {_MODULE[name]}" if name in _MODULE else ""
