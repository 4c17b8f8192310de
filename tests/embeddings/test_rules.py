"""The sum, chain and Bayes rules against dense formulas and conjugate normal laws."""

import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core import InputError, KindError
from meanmap.embeddings import bayes_rule, chain_rule, sum_rule

K, L = mm.kernels.RBF(0.9), mm.kernels.RBF(1.1)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    return x, 2 * x + 0.3 * rng.normal(size=60), rng.normal(0.5, 0.4, size=30)


def test_sum_rule_is_the_average_of_conditionals(pairs):
    x, y, z = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    mu = sum_rule(op, mm.embed(z, K))
    np.testing.assert_allclose(mu.weights, op(z).weights.mean(0), atol=1e-11)
    exact = sum_rule(op, mm.embed(mm.families.Normal(0.5, 0.16), K))  # an exact prior goes through the same door
    assert exact.mean() == pytest.approx(1.0, abs=0.1)


def test_chain_rule_is_the_dense_formula_and_has_the_sum_rule_as_margin(pairs):
    x, y, z = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    prior = mm.embed(z, K)
    joint = chain_rule(op, prior)
    M = np.linalg.solve(K(x) + 60e-3 * np.eye(60), K(x, z)) / 30
    np.testing.assert_allclose(joint.dense(), M, atol=1e-11)
    # ⟨g, C f⟩ = Σⱼ γⱼ E[g | zⱼ] f(zⱼ)
    f, g = mm.embed(x[:5], K), mm.embed(y[:4], L)
    assert g.inner(joint.apply(f)) == pytest.approx(np.mean(op(z).inner(g) * f(z)), rel=1e-9)


def test_bayes_rule_with_a_flat_prior_is_condition():
    rng = np.random.default_rng(0)
    y = np.array(rng.normal(size=20))
    x = y + 0.1 * rng.normal(size=20)
    tight = mm.kernels.Delta()  # each y is its own category: the prior below weighs all pairs alike
    k = mm.kernels.RBF(1.0)
    op = bayes_rule(x, y, mm.embed(y, tight), kernel_x=k, kernel_y=tight, ridge=1e-2)
    expected = mm.condition(x, y, kernel_x=k, kernel_y=tight, ridge=1e-2)
    np.testing.assert_allclose(op([0.3])[0].weights, expected([0.3])[0].weights, rtol=1e-9, atol=1e-12)


def test_bayes_rule_finds_the_posterior_of_normal_laws():
    """Prior N(0, .25), x | y ~ N(y, .25): the posterior is N(x / 2, .125)."""
    errors, spreads = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.uniform(-3, 3, size=400)
        x = y + 0.5 * rng.normal(size=400)
        k = mm.kernels.RBF(0.5)
        prior = mm.embed(mm.families.Normal(0.0, 0.25).sample(400, rng=seed), k)
        beliefs = bayes_rule(x, y, prior, kernel_x=k, kernel_y=k)([-0.8, 0.0, 0.8])
        errors.append(beliefs.mean() - np.array([-0.4, 0.0, 0.4]))
        spreads.append(beliefs.sd())
    assert np.sqrt(np.mean(np.square(errors))) < 0.1
    assert np.mean(spreads) == pytest.approx(0.125**0.5, abs=0.08)


def test_rules_follow_jax(pairs):
    x, y, z = (jnp.asarray(v, jnp.float32) for v in pairs)
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    expected = sum_rule(mm.condition(*pairs[:2], kernel_x=K, kernel_y=L, ridge=1e-2), mm.embed(pairs[2], K)).mean()
    assert float(sum_rule(op, mm.embed(z, K)).mean()) == pytest.approx(expected, abs=1e-3)
    assert chain_rule(op, mm.embed(z, K)).dense().dtype == jnp.float32


def test_messages(pairs):
    x, y, z = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    with pytest.raises(InputError, match="applying an operator needs two elements of the same space"):
        sum_rule(op, mm.embed(z, L))
    with pytest.raises(InputError, match="the chain rule needs two elements of the same space"):
        chain_rule(op, mm.embed(z, L))
    with pytest.raises(KindError, match="prior must be one embedding on points"):
        chain_rule(op, mm.embed(mm.families.Normal.standard(), K))
    with pytest.raises(InputError, match="the Bayes rule needs two elements of the same space"):
        bayes_rule(x, y, mm.embed(z, L), kernel_y=K)
    with pytest.raises(InputError, match="the prior gives no weight to any pair"):
        bayes_rule(x, y, mm.embed([1e4, 1e4 + 1], L), kernel_x=K, kernel_y=L, ridge=1e-2)
    with pytest.raises(InputError, match="x has 6001 points; the Bayes rule is made on at most 6000 pairs: pass fewer"):
        bayes_rule(np.arange(6001.0), np.arange(6001.0), mm.embed(z, L), kernel_x=K, kernel_y=L, ridge=1e-2)
    phi = mm.features.Fourier.draw(K, like=1, n_features=4, rng=0)
    with pytest.raises(KindError, match="kernel_x is features; the Bayes rule needs points"):
        bayes_rule(x, y, mm.embed(z, L), kernel_x=phi, kernel_y=L, ridge=1e-2)
