"""Ready models: logistic regression by expectation propagation, beside a maximum and beside sampling."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case
from meanmap import ep

COLUMNS = 5
Data = tuple[np.ndarray, np.ndarray]


def labelled(n: int) -> Data:
    """n rows of five columns, and labels that follow a logistic regression."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-X @ np.linspace(-1, 1, COLUMNS)))).astype(int)


def ours(data: Data) -> np.ndarray:
    """Means and standard deviations of the coefficients."""
    fit = ep.models.logistic_regression(*data, prior_sd=1.0, standardise=False, intercept=False)
    return np.stack([fit.mean, np.sqrt(np.diag(fit.covariance))])


def beyond_half_a_deviation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """A maximum is no mean, and draws scatter: by how much a coefficient is further off than half its deviation."""
    return float(np.maximum(np.abs(ours[0] - theirs) - ours[1] / 2, 0).max())


def scikit_learn(data: Data) -> np.ndarray:
    """The maximum of the posterior, without any spread: for orientation."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, fit_intercept=False).fit(*data).coef_[0]


def numpyro(data: Data) -> np.ndarray:
    """Means of 1000 draws after 500 of warming up, by NUTS."""
    from numpyro.infer import MCMC, NUTS

    X, y = data

    def potential(w):
        return (w**2).sum() / 2 + jnp.logaddexp(0, (1 - 2 * y) * (X @ w)).sum()

    chain = MCMC(NUTS(potential_fn=potential), num_warmup=500, num_samples=1000, progress_bar=False)
    chain.run(jax.random.key(0), init_params=jnp.zeros(COLUMNS))
    return np.asarray(chain.get_samples()).mean(0)


CASES = (
    Case(
        name="logistic-regression",
        title="Posterior of logistic regression, 5 coefficients, by quadrature (scikit-learn: the maximum only).",
        sizes=(200, 2000),
        setup=labelled,
        ours=ours,
        difference=beyond_half_a_deviation,
        peers={"scikit-learn": scikit_learn, "numpyro NUTS": numpyro},
    ),
)
