import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.kernels import RBF


def samples(n, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(shift, 1.0, size=n)


def truth(at, shift, scale):
    """The embedding of N(μ, 1) under RBF(ℓ) at a point is ℓ/√(ℓ² + 1) exp(−(a − μ)²/2(ℓ² + 1))."""
    bumps = [np.exp(-((at - mean) ** 2) / 2 / (scale**2 + 1)) for mean in (0.0, shift)]
    return scale / np.sqrt(scale**2 + 1) * (bumps[0] - bumps[1])


@pytest.mark.parametrize(("n", "scale"), [(50, 1.0), (400, 0.5)])
def test_intervals_cover_the_true_witness(n, scale):
    """Share of [-2, 4] where the 80% interval holds the truth, over 60 pairs of samples: .76 to .88, as for one."""
    at = np.linspace(-2.0, 4.0, 61)
    shares = []
    for seed in range(60):
        low, high = mm.embeddings.posterior_witness(*samples(n, seed=seed), RBF(scale)).interval(at, 0.8)
        shares.append(np.mean((low < truth(at, 2.0, scale)) & (truth(at, 2.0, scale) < high)))
    assert 0.76 <= np.mean(shares) <= 0.88, np.mean(shares)


def test_of_one_kernel_it_is_the_difference_of_two_posteriors():
    x, y = samples(80)
    at, k = np.array([-1.0, 0.5]), RBF(0.7)
    witness = mm.embeddings.posterior_witness(x, y, k)
    both = mm.embeddings.posterior_embedding(x, k) - mm.embeddings.posterior_embedding(y, k)
    np.testing.assert_allclose(witness.mean(at), both.mean(at))
    np.testing.assert_allclose(witness.cov(at), both.cov(at))
    np.testing.assert_allclose(witness.interval(at, 0.9), both.interval(at, 0.9))


def test_regions_are_where_zero_is_excluded():
    witness = mm.embeddings.posterior_witness(*samples(300), RBF(0.7))
    regions = witness.regions(0.99)
    assert [region.sign for region in regions] == [1, -1]
    inside = np.array([(region.low + region.high) / 2 for region in regions])
    assert witness.excludes_zero(inside, 0.99).all()
    between = np.array([(regions[0].high + regions[1].low) / 2])
    assert not witness.excludes_zero(between, 0.99).any()
    assert mm.embeddings.posterior_witness(*samples(60, shift=0.0), RBF(1.0)).regions(0.999) == ()


def test_the_learned_kernel_is_that_of_the_pooled_sample():
    x, y = samples(60)
    witness = mm.embeddings.posterior_witness(x, y, rng=4)
    pooled = np.concatenate([x, y])[:, None]
    assert witness.parts[0].first.kernel.lengthscale == mm.learn_kernel(pooled, rng=4).kernel.lengthscale


def test_pictures():
    one = mm.embeddings.posterior_witness(*samples(60), RBF(1.0)).plot(0.8)
    assert one.get_ylabel() == "μ_P − μ_Q"
    rng = np.random.default_rng(1)
    two = mm.embeddings.posterior_witness(rng.normal(size=(60, 2)), rng.normal(1.0, 1.0, (60, 2)), RBF(1.0)).plot(0.8)
    assert "excluded at 80%" in two.get_legend().get_texts()[0].get_text()


def test_bad_input():
    x, y = samples(30)
    with pytest.raises(KindError, match="draws of one, or 'learned'"):
        mm.embeddings.posterior_witness(x, y, "median")
    with pytest.raises(ShapeError, match="columns"):
        mm.embeddings.posterior_witness(x, np.ones((30, 2)), RBF(1.0))
    wide = mm.embeddings.posterior_witness(np.eye(12)[:, :3], np.eye(12)[:, :3], RBF(1.0))
    with pytest.raises(KindError, match="1 column"):
        wide.regions()
    with pytest.raises(KindError, match="1 or 2 columns"):
        wide.plot()
    with pytest.raises(ParameterError, match="between 0 and 1"):
        mm.embeddings.posterior_witness(x, y, RBF(1.0)).interval([0.0], 80)
