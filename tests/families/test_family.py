"""Laws of every exponential family: algebra, duality of parameters, divergences, and the door."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from meanmap.core import InputError, KindError, ParameterError, ShapeError
from meanmap.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Flat, Gamma, MultivariateNormal, Normal


def points(family):
    """One valid point for each member."""
    return {
        "Normal": np.array([0.3, 1.2, -4.0]),
        "MultivariateNormal": np.array([[0.3, 1.2], [1.0, -1.0], [0.0, 2.0]]),
        "Beta": np.array([0.3, 0.6, 0.9]),
        "Gamma": np.array([0.3, 1.2, 4.0]),
        "Bernoulli": np.array([0.0, 1.0, 1.0]),
        "Categorical": np.array([0, 2, 1]),
        "Dirichlet": np.array([[0.3, 0.5, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]]),
    }[type(family).__name__]


def scipy_log_density(family, i, x):
    f, name = family, type(family).__name__
    return {
        "Normal": lambda: scipy.stats.norm.logpdf(x, f.mean()[i], f.sd()[i]),
        "MultivariateNormal": lambda: scipy.stats.multivariate_normal.logpdf(x, f.mean()[i], f.cov()[i]),
        "Beta": lambda: scipy.stats.beta.logpdf(x, f.a[i], f.b[i]),
        "Gamma": lambda: scipy.stats.gamma.logpdf(x, f.shape_parameter[i], scale=1 / f.rate[i]),
        "Bernoulli": lambda: scipy.stats.bernoulli.logpmf(x, f.mean()[i]),
        "Categorical": lambda: np.log(f.mean()[i][int(x)]) if np.ndim(x) == 0 else None,
        "Dirichlet": lambda: scipy.stats.dirichlet.logpdf(x, f.concentration[i]),
    }[name]()


def same(first, second, rtol=1e-10):
    for a, b in zip(first.natural, second.natural, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9)


def test_log_density_against_scipy(family):
    x = points(family)
    expected = [scipy_log_density(family, i, x[i]) for i in range(3)]
    np.testing.assert_allclose(family.log_density(x), expected, rtol=1e-12, atol=1e-12)
    free = family.log_unnormalised(x) - family.log_normaliser
    np.testing.assert_allclose(free, expected, rtol=1e-11, atol=1e-11)


def test_natural_and_mean_parameters_are_dual(family):
    back = type(family).from_moments(*family.expected_statistics)
    if isinstance(family, Categorical):  # logits are known up to a constant
        np.testing.assert_allclose(back.mean(), family.mean(), rtol=1e-13)
    else:
        same(back, family)
    same(type(family).from_natural(*family.natural), family, rtol=0)


def test_expected_statistics_are_the_gradient_of_the_normaliser(family):
    kind = type(family)
    with jax.enable_x64(True):
        natural = tuple(jnp.asarray(eta) for eta in family.natural)
        slopes = jax.jit(jax.grad(lambda *eta: kind._of(eta).log_normaliser.sum(), argnums=tuple(range(len(natural)))))
        for slope, moment in zip(slopes(*natural), family.expected_statistics, strict=True):
            np.testing.assert_allclose(slope, moment, rtol=1e-10, atol=1e-12)


def test_product_ratio_and_power(family):
    other = family[[1, 2, 0]]
    product = family * other
    x = points(family)
    np.testing.assert_allclose(
        product.log_unnormalised(x), family.log_unnormalised(x) + other.log_unnormalised(x), rtol=1e-12, atol=1e-12
    )
    same(product / other, family)
    same(family**2.0, family * family)
    np.testing.assert_allclose((family ** np.array([1.0, 2.0, 0.5]))[2].natural[0], 0.5 * family[2].natural[0])
    same(family * family[0], family * family[[0, 0, 0]])
    assert isinstance(product.natural[0], np.ndarray)
    flat = family / family
    same(flat * family, family)
    assert family * Flat() is family
    assert family / Flat() is family


def test_divergence_and_entropy_against_quadrature(family):
    # The second member and its divergence from the third, computed within the batch.
    entropy, divergence = family.entropy()[1], family.kl(family[[1, 2, 2]])[1]
    if isinstance(family, Normal | Beta | Gamma):
        low, high = {Normal: (-5, 8), Beta: (0, 1), Gamma: (0, 12)}[type(family)]

        def against(value):
            def integrand(x):
                _, p, q = family.log_density(np.full(3, x))
                return np.exp(p) * value(p, q)

            return scipy.integrate.quad(integrand, low, high, epsabs=1e-11, limit=200)[0]

        assert against(lambda p, q: 1.0) == pytest.approx(1, abs=1e-9)
        assert entropy == pytest.approx(against(lambda p, q: -p), abs=1e-8)
        assert divergence == pytest.approx(against(lambda p, q: p - q), rel=1e-8)
        return
    if isinstance(family, MultivariateNormal):
        (_, mean, other), (_, covariance, wide) = family.mean(), family.cov()
        expected = scipy.stats.multivariate_normal(mean, covariance).entropy()
        precision = np.linalg.inv(wide)
        shift = other - mean
        kl = 0.5 * (np.trace(precision @ covariance) - 2 + shift @ precision @ shift)
        kl += 0.5 * np.log(np.linalg.det(wide) / np.linalg.det(covariance))
    elif isinstance(family, Dirichlet):
        _, a, b = family.concentration
        expected = scipy.stats.dirichlet(a).entropy()
        logs = scipy.special.digamma(a) - scipy.special.digamma(a.sum())
        kl = scipy.special.gammaln(a.sum()) - scipy.special.gammaln(a).sum() + ((a - b) * logs).sum()
        kl += scipy.special.gammaln(b).sum() - scipy.special.gammaln(b.sum())
    else:
        _, a, b = family.mean() if isinstance(family, Categorical) else np.stack([1 - family.mean(), family.mean()], -1)
        expected, kl = scipy.stats.entropy(a), scipy.stats.entropy(a, b)
    assert entropy == pytest.approx(expected, rel=1e-12)
    assert divergence == pytest.approx(kl, rel=1e-12)


def test_divergence_is_zero_only_at_equality(family):
    np.testing.assert_allclose(family.kl(family), 0, atol=1e-14)
    assert (family.kl(family[[1, 2, 0]]) > 1e-3).all()


def test_weighted_samples_project(costly_family):
    family = costly_family
    rng = np.random.default_rng(0)
    draws = family.sample(10_000, rng=2)
    weights = rng.normal(size=10_000)
    x = np.eye(3)[draws] if isinstance(family, Categorical) else draws
    projected = type(family).from_weighted_samples(draws, weights)
    normal = np.exp(weights - weights.max())
    normal /= normal.sum()
    statistics = (x,) if isinstance(family, Categorical) else type(family).statistics(x)
    for statistic, moment in zip(statistics, projected.expected_statistics, strict=True):
        np.testing.assert_allclose(moment, np.tensordot(normal, statistic, 1), rtol=1e-9)
    if isinstance(family, Normal):
        each = np.repeat(weights[:, None], 3, 1) + 1e4  # one set of weights per member, with another constant
        same(projected, type(family).from_weighted_samples(draws, each), rtol=1e-8)
    # The projection onto the family that the draws came from: within 5 standard errors, about 10 per cent here.
    unweighted = type(family).from_weighted_samples(draws, np.zeros(10_000))
    np.testing.assert_allclose(unweighted.mean(), family.mean(), atol=5 * np.max(family.sd()) / 100)


def test_vanishing_and_bad_weights(family):
    draws = np.stack([points(family)] * 4)
    kind = type(family)
    with pytest.raises(InputError, match="all weights are zero: the proposal misses the factor"):
        kind.from_weighted_samples(draws, np.full(4, -np.inf))
    some = np.zeros((4, 3))
    some[:, 1] = -np.inf
    with pytest.raises(InputError, match=r"all weights are zero at \[1\]"):
        kind.from_weighted_samples(draws, some)
    with pytest.raises(InputError, match="log_weights holds NaN"):
        kind.from_weighted_samples(draws, [0.0, np.nan, 0.0, 0.0])
    with pytest.raises(InputError, match="log_weights holds \\+inf"):
        kind.from_weighted_samples(draws, [0.0, np.inf, 0.0, 0.0])
    with pytest.raises(ShapeError, match=r"log_weights has shape \(5,"):
        kind.from_weighted_samples(draws, np.zeros(5))
    with pytest.raises(InputError, match="x has no draws"):
        kind.from_weighted_samples(draws[:0], [])
    with pytest.raises(InputError, match=r"improper.*no projection \(the weighted sample has no spread"):
        kind.from_weighted_samples(draws, [0.0, -np.inf, -np.inf, -np.inf])


def read(f, x):
    return f.mean(), f.var(), f.entropy(), f.log_density(x), f.kl(f * f), *f.expected_statistics


def test_tracing_keeps_dtype_and_batch(family):
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), family)
    x = jnp.asarray(points(family)).astype(jnp.float32)
    for traced in (jax.eval_shape(read, single, x), jax.eval_shape(jax.vmap(read), single, x)):
        for value, exact in zip(traced, read(family, points(family)), strict=True):
            assert (value.dtype, value.shape) == (jnp.float32, exact.shape)


@pytest.mark.slow
def test_jit_vmap_and_dtype(family):
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), family)
    x = jnp.asarray(points(family)).astype(jnp.float32)
    known = read(family, points(family))
    at_once, mapped = jax.jit(read)(single, x), jax.jit(jax.vmap(read))(single, x)
    for one, two, exact in zip(at_once, mapped, known, strict=True):
        assert isinstance(exact, np.ndarray)
        assert exact.dtype == np.float64
        assert one.dtype == jnp.float32
        np.testing.assert_allclose(one, exact, rtol=3e-5, atol=3e-5)
        np.testing.assert_allclose(two, exact, rtol=3e-5, atol=3e-5)
    direct = single.mean()
    assert isinstance(direct, jax.Array)
    assert isinstance(jax.jit(lambda f: f * f / f)(single), type(family))
    assert bool(jax.jit(lambda f: f.is_proper())(single).all())


def test_gradients_against_differences(costly_family):
    family = costly_family
    with jax.enable_x64(True):
        kind = type(family)
        natural = [jnp.asarray(eta) for eta in family[0].natural]
        fixed = jax.tree.map(jnp.asarray, family[1])
        x = jnp.asarray(points(family)[0])

        def value(step, direction):
            moved = kind._of(tuple(eta + step * d for eta, d in zip(natural, direction, strict=True)))
            spread = moved.var().sum() + moved.mean().sum()
            return moved.kl(fixed) + moved.log_density(x) + 0.3 * moved.entropy() + spread

        rng = np.random.default_rng(0)
        direction = [jnp.asarray(rng.normal(size=eta.shape)) for eta in natural]
        if isinstance(family, MultivariateNormal):
            direction[1] = direction[1] + direction[1].T
        direction = [0.1 * d for d in direction]
        both = jax.jit(jax.value_and_grad(value))
        slope = both(0.0, direction)[1]
        difference = (both(1e-5, direction)[0] - both(-1e-5, direction)[0]) / 2e-5
        assert slope == pytest.approx(float(difference), rel=1e-7, abs=1e-7)


def test_sampling_is_repeatable_and_follows_keys(costly_family):
    family = costly_family
    first, again = family.sample(10_000, rng=2), family.sample(10_000, rng=2)
    assert first.shape == (10_000, 3, *family.event_shape)
    assert isinstance(first, np.ndarray)
    np.testing.assert_array_equal(first, again)
    assert np.isfinite(family.log_density(first)).all()


def test_standard_and_flat():
    for kind in (Normal, Gamma, Beta, Bernoulli):
        assert kind.standard((2, 3)).shape == (2, 3)
        assert all((eta == 0).all() for eta in kind.flat(4).natural)
    for kind in (MultivariateNormal, Dirichlet, Categorical):
        assert kind.standard(3, (2,)).shape == (2,)
        assert all((eta == 0).all() for eta in kind.flat(3, 4).natural)
        assert kind.flat(3).shape == ()
    assert not Normal.flat().is_proper()
    assert not MultivariateNormal.flat(2, 3).is_proper().any()
    assert Beta.flat().is_proper()


def test_where_chooses_members(family):
    chosen = family.where([True, False, True], family[0])
    same(chosen, family[[0, 0, 2]], rtol=0)
    with pytest.raises(KindError, match="within one family"):
        family.where(True, Flat())


def test_improper_members_are_known_and_named(family):
    improper = (family / family**2.0)[1:]
    if isinstance(family, Bernoulli | Categorical):
        assert improper.is_proper().all()  # every finite logit is a law
        return
    broken = family.where([True, False, False], family / family**4.0) / family[0] ** 0.0
    mask = ~np.asarray(broken.is_proper())
    assert mask.any()
    assert not mask[0]
    named = r".*".join(rf"\[{i}\]" for i in np.flatnonzero(mask))
    for action in (
        lambda: broken.mean(),
        lambda: broken.var(),
        lambda: broken.sd(),
        lambda: broken.expected_statistics,
        lambda: broken.log_normaliser,
        lambda: broken.entropy(),
        lambda: broken.kl(family),
        lambda: family.kl(broken),
        lambda: broken.log_density(points(family)),
        lambda: broken.sample(2, rng=0),
        lambda: broken.characteristic_function(np.ones(3) if family.event_shape != (2,) else np.ones(2)),
    ):
        with pytest.raises(ParameterError, match=rf"this {type(family).__name__} is improper at {named}, so it has no"):
            action()
    broken.log_unnormalised(points(family))
    assert "improper at" in repr(broken)


def test_messages():
    normal, gamma = Normal(), Gamma(1.0, 1.0)
    with pytest.raises(KindError, match="cannot multiply Normal and Gamma"):
        normal * gamma
    with pytest.raises(KindError, match="cannot divide Normal and Gamma"):
        normal / gamma
    with pytest.raises(TypeError, match="unsupported operand"):
        normal * 2.0
    with pytest.raises(KindError, match="one family; got Normal and Gamma"):
        normal.kl(gamma)
    with pytest.raises(ShapeError, match="differ in dimension: \\(2,\\) and \\(3,\\)"):
        MultivariateNormal.standard(2) * MultivariateNormal.standard(3)
    with pytest.raises(ShapeError, match=r"batch shapes \(2,\) and \(3,\) do not broadcast"):
        Normal.standard(2) * Normal.standard(3)
    with pytest.raises(ShapeError, match="Normal has 2 natural parameters \\(precision_mean, precision\\); got 1"):
        Normal.from_natural(1.0)
    with pytest.raises(ShapeError, match="Gamma has 2 statistics, mean_log, mean; got 3"):
        Gamma.from_moments(1.0, 2.0, 3.0)
    with pytest.raises(InputError, match="precision holds infinity"):
        Normal.from_natural(0.0, np.inf)
    with pytest.raises(InputError, match=r"mean holds NaN at \[1\]"):
        Normal([0.0, np.nan], 1.0)
    with pytest.raises(ShapeError, match=r"batch axes do not fit together: mean \(2,\), variance \(3,\)"):
        Normal([0.0, 1.0], [1.0, 2.0, 3.0])
    with pytest.raises(KindError, match="mean is None"):
        Normal(None)
    with pytest.raises(KindError, match="a holds Python objects"):
        Beta([object()], 1.0)
    with pytest.raises(ShapeError, match="x has shape \\(4,\\) and the batch \\(3,\\)"):
        Normal.standard(3).log_density(np.zeros(4))
    with pytest.raises(ParameterError, match="n is -1"):
        normal.sample(-1)
    assert issubclass(Normal, Family)
