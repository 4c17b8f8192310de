"""Online regression against batch fits by orthogonal factorisation, refits that leave rows out, and SciPy's density."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from meanmap.core import InputError, KindError, NonFiniteError, ParameterError, PrecisionError, ShapeError
from meanmap.linalg import OnlineRegression


def batch(phi, y, noise, prior_variance, new):
    """Predictive mean and variance by QR of the stacked system, which never squares its condition number."""
    dim = phi.shape[1]
    rows = np.vstack([phi / np.sqrt(noise), np.eye(dim) / np.sqrt(prior_variance)])
    right = np.vstack([y / np.sqrt(noise), np.zeros((dim, y.shape[1]))])
    orthonormal, triangle = scipy.linalg.qr(rows, mode="economic")
    weights = scipy.linalg.solve_triangular(triangle, orthonormal.T @ right)
    half = scipy.linalg.solve_triangular(triangle.T, new.T, lower=True)
    return new @ weights, (half**2).sum(0)


def fourier_problem(rows, dim, noise, seed=0):
    """Random Fourier features in four dimensions: nearly collinear columns, as in message learning."""
    rng = np.random.default_rng(seed)
    frequencies, phases = rng.normal(size=(4, dim)), rng.uniform(0, 2 * np.pi, size=dim)
    z = rng.normal(size=(rows + 500, 4))
    phi = np.sqrt(2 / dim) * np.cos(z @ frequencies + phases)
    y = np.stack([np.sin(z.sum(1)), z[:, 0] * np.cos(z[:, 1])], 1) + np.sqrt(noise) * rng.normal(size=(rows + 500, 2))
    return phi[:rows], y[:rows], phi[rows:]


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    return rng.normal(size=(60, 7)), rng.normal(size=(60, 3)), rng.normal(size=(9, 7))


def check_rank_one(rows, dim, noise, tolerance, refit_every):
    phi, y, new = fourier_problem(rows, dim, noise)
    model = OnlineRegression.start(dim, 2, noise=noise, refit_every=refit_every)
    for row, target in zip(phi, y, strict=True):
        model = model.update(row, target)
    mean, variance = model.predict(new)
    expected_mean, expected_variance = batch(phi, y, noise, 1.0, new)
    np.testing.assert_allclose(mean, expected_mean, atol=tolerance, rtol=0)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-6)
    assert (model.predict(phi)[1] >= 0).all()
    assert model.count == rows


@pytest.mark.parametrize("refit_every", [256, None])
@pytest.mark.parametrize(("noise", "tolerance"), [(1e-4, 1e-8), (1e-8, 1e-7)])
def test_rank_one_updates_equal_the_batch_fit(noise, tolerance, refit_every):
    check_rank_one(1500, 200, noise, tolerance, refit_every)


@pytest.mark.slow
@pytest.mark.parametrize("refit_every", [256, None])
@pytest.mark.parametrize(("noise", "tolerance"), [(1e-4, 1e-8), (1e-8, 1e-7)])
def test_twelve_thousand_rank_one_updates_equal_the_batch_fit(noise, tolerance, refit_every):
    check_rank_one(12_000, 500, noise, tolerance, refit_every)


@pytest.mark.parametrize("sizes", [(60,), (1, 59), (10, 3, 40, 7), (33, 1, 26)])
@pytest.mark.parametrize("refit_every", [None, 30])
def test_any_split_into_batches_gives_the_same(problem, sizes, refit_every):
    phi, y, new = problem
    model, start = OnlineRegression.start(7, 3, noise=0.1, prior_variance=2.0, refit_every=refit_every), 0
    for size in sizes:
        model = model.update(phi[start : start + size], y[start : start + size])
        start += size
    mean, variance = model.predict(new)
    expected_mean, expected_variance = batch(phi, y, 0.1, 2.0, new)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-12)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-11)
    for kept, expected in zip(model.statistics, (phi.T @ phi, phi.T @ y, y.T @ y), strict=True):
        np.testing.assert_allclose(kept, expected, atol=1e-12)
    np.testing.assert_allclose(model.covariance, model.refit().covariance, atol=1e-12)
    np.testing.assert_array_equal(model.covariance, model.covariance.T)


def test_a_long_batch_costs_no_square_of_its_length():
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(200_000, 3))  # k × k would be 320 GB
    for every in (None, 10**9):
        model = OnlineRegression.start(3, noise=1.0, refit_every=every).update(phi, phi @ np.ones(3))
        np.testing.assert_allclose(model.mean, np.ones((3, 1)), atol=1e-4)


def test_one_output_and_single_rows_in_plain_shapes(problem):
    phi, y, new = problem
    model = OnlineRegression.start(7, noise=0.1).update(phi[:59], y[:59, 0]).update(list(phi[59]), y[59, 0])
    np.testing.assert_allclose(model.predict(new)[0], batch(phi, y[:, :1], 0.1, 1.0, new)[0], atol=1e-12)
    assert model.predict(new[0])[0].shape == (1, 1)


def test_values_are_immutable_and_may_branch(problem):
    phi, y, _ = problem
    base = OnlineRegression.start(7, 3, noise=0.1).update(phi[:20], y[:20])
    row = phi[20].copy()
    left = base.update(row, y[20])
    row[:] = 1e9  # what the caller does to its array later is its own business
    right = base.update(phi[21], y[21])
    np.testing.assert_allclose(left.refit().mean, batch(phi[:21], y[:21], 0.1, 1.0, np.eye(7))[0], atol=1e-12)
    kept = [*range(20), 21]
    np.testing.assert_allclose(right.refit().mean, batch(phi[kept], y[kept], 0.1, 1.0, np.eye(7))[0], atol=1e-12)
    np.testing.assert_allclose(base.refit().mean, base.mean, atol=1e-12)
    assert int(base.count) == 20


def test_variance_is_never_negative_and_prior_is_the_start():
    rng = np.random.default_rng(2)
    start = OnlineRegression.start(30, noise=1e-8, prior_variance=3.0, refit_every=None)
    row = rng.normal(size=(1, 30))
    np.testing.assert_allclose(start.predict(row)[1], 3 * (row**2).sum(1))
    model = start
    for _ in range(50):  # the same row over and over: its variance goes to rounding level
        model = model.update(row, 1.0)
    assert 0 <= model.predict(row)[1][0] < 1e-9
    assert (model.predict(rng.normal(size=(1000, 30)))[1] >= 0).all()


@pytest.mark.parametrize("noise", [1e-1, 1e-4])
def test_leave_one_out_is_the_refit_without_each_row(problem, noise):
    phi, y, _ = problem
    mean, variance = OnlineRegression.start(7, 3, noise=noise).update(phi, y).leave_one_out(phi, y)
    for i in range(0, 60, 7):
        kept = np.arange(60) != i
        expected_mean, expected_variance = batch(phi[kept], y[kept], noise, 1.0, phi[i : i + 1])
        np.testing.assert_allclose(mean[i], expected_mean[0], atol=1e-9)
        np.testing.assert_allclose(variance[i], expected_variance[0], rtol=1e-9)


def test_merged_workers_equal_the_joint_fit(problem):
    phi, y, new = problem
    start = OnlineRegression.start(7, 3, noise=1e-3)
    merged = (
        start.update(phi[:25], y[:25]).merge(start.update(phi[25:26], y[25:26])).merge(start.update(phi[26:], y[26:]))
    )
    joint = start.update(phi, y)
    for one, two in zip(merged.predict(new), joint.predict(new), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-10)
    np.testing.assert_allclose(merged.log_marginal_likelihood(), joint.log_marginal_likelihood(), rtol=1e-10)
    assert int(merged.count) == 60
    with pytest.raises(ShapeError, match="maps 6 features to 3 outputs; expected 7 to 3"):
        start.merge(OnlineRegression.start(6, 3, noise=1e-3))
    with pytest.raises(InputError, match=r"noise=0\.01; expected 0\.001"):
        start.merge(OnlineRegression.start(7, 3, noise=1e-2))
    with pytest.raises(InputError, match="prior_variance=2; expected 1"):
        start.merge(OnlineRegression.start(7, 3, noise=1e-3, prior_variance=2.0))
    with pytest.raises(KindError, match="other is an ndarray"):
        start.merge(phi)


def test_log_marginal_likelihood_is_the_gaussian_density(problem):
    phi, y, _ = problem
    model = OnlineRegression.start(7, 3, noise=0.3, prior_variance=1.5)
    assert model.log_marginal_likelihood() == pytest.approx(0.0, abs=1e-12)
    normal = scipy.stats.multivariate_normal(np.zeros(60), 0.3 * np.eye(60) + 1.5 * phi @ phi.T)
    expected = sum(normal.logpdf(column) for column in y.T)
    assert model.update(phi, y).log_marginal_likelihood() == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
def test_jax_rows_under_jit_grad_and_scan(problem):
    phi, y, new = problem
    with jax.enable_x64(True):
        start = OnlineRegression.start(7, 3, noise=0.1, refit_every=16).update(phi[:5], y[:5])

        @jax.jit
        def learn(phi, y):
            def step(model, row):
                return model.update(*row), None

            first = start.update(phi[5], y[5])
            return jax.lax.scan(step, first, (phi[6:], y[6:]))[0]

        model = learn(jnp.asarray(phi), jnp.asarray(y))
        assert isinstance(model.mean, jax.Array)
        mean, variance = jax.jit(lambda model, new: model.predict(new))(model, jnp.asarray(new))
        expected_mean, expected_variance = batch(phi, y, 0.1, 1.0, new)
        np.testing.assert_allclose(mean, expected_mean, atol=1e-11)
        np.testing.assert_allclose(variance, expected_variance, rtol=1e-10)
        assert int(model.count) == 60
        joint = OnlineRegression.start(7, 3, noise=0.1).update(phi, y)
        np.testing.assert_allclose(model.log_marginal_likelihood(), joint.log_marginal_likelihood(), rtol=1e-10)
        for one, two in zip(model.leave_one_out(phi, y), joint.leave_one_out(phi, y), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9)
        np.testing.assert_allclose(model.merge(joint).count, 120)

        def evidence(noise):
            model = OnlineRegression.start(7, 3, noise=noise).update(jnp.asarray(phi), jnp.asarray(y))
            return model.log_marginal_likelihood()

        slope, step = jax.grad(evidence)(jnp.asarray(0.3)), 1e-6
        numeric = (evidence(jnp.asarray(0.3 + step)) - evidence(jnp.asarray(0.3 - step))) / (2 * step)
        np.testing.assert_allclose(slope, numeric, rtol=1e-6)


def test_single_precision_is_refused_where_it_cannot_hold(problem):
    phi, y, _ = problem
    rows, targets = jnp.asarray(phi, jnp.float32), jnp.asarray(y, jnp.float32)
    with pytest.raises(PrecisionError, match=r"float32 is not precise enough.*enable jax_enable_x64"):
        OnlineRegression.start(7, 3, noise=1e-6, refit_every=10).update(rows, targets).refit()
    model = OnlineRegression.start(7, 3, noise=0.1).update(rows, targets)
    assert model.mean.dtype == jnp.float32
    np.testing.assert_allclose(model.mean, batch(phi, y, 0.1, 1.0, np.eye(7))[0], atol=1e-4)


def test_messages(problem):
    phi, y, _ = problem
    model = OnlineRegression.start(7, 3, noise=0.1)
    with pytest.raises(ShapeError, match=r"phi has shape \(60, 6\); expected \(7,\) for one row or \(k, 7\) for k"):
        model.update(phi[:, :6], y)
    with pytest.raises(ShapeError, match=r"y has shape \(60, 2\); expected \(60, 3\)"):
        model.update(phi, y[:, :2])
    with pytest.raises(ShapeError, match=r"y has shape \(180,\); expected \(60, 3\)"):
        model.update(phi, y.ravel())
    with pytest.raises(NonFiniteError, match="y holds 1 value"):
        model.update(phi[0], [0.0, np.nan, 1.0])
    with pytest.raises(ShapeError, match="phi has shape"):
        model.predict(np.ones(3))
    for name in ("noise", "prior_variance"):
        with pytest.raises(ParameterError, match=f"{name} is 0.0; expected values above 0"):
            OnlineRegression.start(3, **{"noise": 1.0, name: 0.0})
    with pytest.raises(ParameterError, match="dim is 0"):
        OnlineRegression.start(0, noise=1.0)
    with pytest.raises(InputError, match=r"refit_every is 2.5; expected whole numbers"):
        OnlineRegression.start(3, noise=1.0, refit_every=2.5)


def test_jax_rows_are_counted_and_summed_as_on_the_host(problem):
    phi, y, _ = problem
    with jax.enable_x64(True):
        host = OnlineRegression.start(7, 3, noise=0.1, refit_every=16).update(phi[:9], y[:9])
        both = host.update(phi[9:13], y[9:13])
        followed = host.update(jnp.asarray(phi[9:13]), jnp.asarray(y[9:13]))
        assert int(followed.count) == both.count == 13
        np.testing.assert_allclose(followed.log_marginal_likelihood(), both.log_marginal_likelihood(), rtol=1e-11)
