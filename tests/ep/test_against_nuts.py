"""Logistic regression on the four UCI sets of the paper, against long Hamiltonian Monte Carlo."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep


def read(name):
    """At most 300 standardised rows with a bias; a constant column is dropped."""
    folder = os.environ.get("MEANMAP_DATA")
    if folder is None:
        pytest.skip("set MEANMAP_DATA to the folder that holds uci/banknote.csv and the others")
    table = np.loadtxt(Path(folder) / "uci" / f"{name}.csv", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1].astype(int)
    X = X[:, X.std(0) > 0]
    X = np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])
    keep = np.random.default_rng(0).permutation(len(X))[:300]
    return X[keep], y[keep]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["banknote", "fertility", "ionosphere", "transfusion"])
def test_posteriors_of_the_uci_sets_are_those_of_nuts(name):
    X, y = read(name)
    infer = pytest.importorskip("numpyro.infer", reason="numpyro is not installed")
    d = X.shape[1]
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(d)), ep.Variable("z", ep.Normal, plate=len(y))
    post = ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y)))
    assert post.report.converged
    with jax.enable_x64(True):

        def potential(w):
            return (w**2).sum() / 2 + jnp.logaddexp(0, (1 - 2 * y) * (X @ w)).sum()

        kernel = infer.NUTS(potential_fn=potential)
        chains = infer.MCMC(kernel, num_warmup=1000, num_samples=10_000, progress_bar=False)
        chains.run(jax.random.key(1), init_params=jnp.zeros(d))
        draws = np.asarray(chains.get_samples())
    sd = draws.std(0)
    assert (np.abs(post["w"].mean - draws.mean(0)) < 0.1 * sd).all()
    assert (np.abs(post["w"].sd / sd - 1) < 0.1).all()
