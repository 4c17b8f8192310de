"""The conditional operator against dense formulas, refits and the linear-Gaussian pair."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core import EmptyError, KindError, ParameterError, PrecisionError, ShapeError
from meanmap.embeddings import conditional

K, L = mm.kernels.RBF(0.9), mm.kernels.RBF(1.1)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    return x, np.sin(x[:, 0]) + 0.2 * rng.normal(size=60)


def test_weights_are_the_dense_formula(pairs):
    x, y = pairs
    new = np.random.default_rng(1).normal(size=(7, 2))
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    beta = np.linalg.solve(K(x) + 60 * 1e-3 * np.eye(60), K(x, new)).T
    beliefs = op(new)
    np.testing.assert_allclose(beliefs.weights, beta, atol=1e-10)
    np.testing.assert_allclose(beliefs(y[:5]), beta @ L(y, y[:5]), atol=1e-10)
    np.testing.assert_allclose(op.expect(np.square, new), beta @ y**2, atol=1e-10)
    assert beliefs.mean().shape == (7,)
    np.testing.assert_allclose(beliefs.mean(), beta @ y + (1 - beta.sum(1)) * y.mean(), atol=1e-10)
    np.testing.assert_allclose(beliefs[2].mean(), beliefs.mean()[2], rtol=1e-10)
    np.testing.assert_allclose(beliefs[1:4].mean(), beliefs.mean()[1:4], rtol=1e-10)
    np.testing.assert_allclose(beliefs[np.array([5, 0])].mean(), beliefs.mean()[[5, 0]], rtol=1e-10)
    assert beliefs.batch == (7,)
    assert isinstance(beliefs[0].mean(), float)


def test_the_ridge_is_that_of_least_error_by_refitting(pairs):
    """Each ridge of the grid is scored by n refits at the same shift n λ."""
    x, y = pairs
    n = len(x)
    gram, target = K(x), L(y)
    op = mm.condition(x, y, kernel_x=K, kernel_y=L)
    ridges = np.geomspace(1e-8, 1.0, 25)

    def refit(lam):
        errors = []
        for i in range(n):
            kept = np.delete(np.arange(n), i)
            b = np.linalg.solve(gram[np.ix_(kept, kept)] + n * lam * np.eye(n - 1), gram[kept, i])
            errors.append(target[i, i] - 2 * b @ target[kept, i] + b @ target[np.ix_(kept, kept)] @ b)
        return np.mean(errors)

    best = ridges[np.argmin([refit(lam) for lam in ridges])]
    assert dict(op.chosen)["ridge"] == pytest.approx(best, rel=1e-6)


def test_dual_and_primal_forms_agree(pairs):
    x, y = pairs
    new = np.random.default_rng(1).normal(size=(7, 2))
    dual = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    phi = mm.features.PivotedCholesky.fit(K, x, tolerance=1e-14, max_rank=60)
    psi = mm.features.PivotedCholesky.fit(L, y, tolerance=1e-14, max_rank=60)
    mixed = mm.condition(x, y, kernel_x=phi, kernel_y=L, ridge=1e-2)
    np.testing.assert_allclose(mixed(new).weights, dual(new).weights, atol=1e-8)
    primal = mm.condition(x, y, kernel_x=phi, kernel_y=psi, ridge=1e-2)
    np.testing.assert_allclose(primal(new)(y), dual(new)(y), atol=1e-8)
    np.testing.assert_allclose(primal.norm(), dual.norm(), rtol=1e-7)
    linear = mm.features.TensorProduct.power(mm.features.PivotedCholesky.fit(mm.kernels.Linear(), x), 2)
    dual = mm.condition(x, y, kernel_x=mm.kernels.Linear() ** 2, kernel_y=L, ridge=1e-3)
    mixed = mm.condition(x, y, kernel_x=linear, kernel_y=L, ridge=1e-3)
    np.testing.assert_allclose(mixed(new)(y), dual(new)(y), atol=1e-8)


def test_choices_agree_between_forms(pairs):
    x, y = pairs
    phi = mm.features.PivotedCholesky.fit(K, x, tolerance=1e-14, max_rank=60)
    dual, mixed = mm.condition(x, y, kernel_x=K, kernel_y=L), mm.condition(x, y, kernel_x=phi, kernel_y=L)
    assert dict(mixed.chosen)["ridge"] == pytest.approx(dict(dual.chosen)["ridge"], rel=0.1)


def test_streamed_choice_is_generalised_cross_validation():
    rng = np.random.default_rng(0)
    n = 5000
    x = rng.normal(size=n)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=n)
    phi = mm.features.Fourier.draw(mm.kernels.RBF(0.5), like=1, n_features=40, rng=0)
    psi = mm.features.Fourier.draw(L, like=1, n_features=40, rng=1)
    op = mm.condition(x, y, kernel_x=phi, kernel_y=psi)
    a, b = phi(x), psi(y)
    values = np.linalg.eigvalsh(a.T @ a / n)
    ridges = np.geomspace(1e-8, 1, 25) * values.sum()

    def score(lam):
        fit = a @ np.linalg.solve(a.T @ a / n + lam * np.eye(40), a.T @ b / n)
        return np.sum((b - fit) ** 2) / n / (1 - np.sum(values / (values + lam)) / n) ** 2

    assert dict(op.chosen)["ridge"] == pytest.approx(ridges[np.argmin([score(lam) for lam in ridges])], rel=1e-6)
    lam = dict(op.chosen)["ridge"]
    expected = np.linalg.solve(a.T @ a / n + lam * np.eye(40), a.T @ b / n).T
    np.testing.assert_allclose(op.matrix, expected, rtol=1e-6, atol=1e-8)


def gaussian_error(m, seed):
    """Root mean squared RKHS error of μ_{Y|x} over x ~ N(0, 1), truth in closed form; y = .7 x + noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    y = 0.7 * x + np.sqrt(0.51) * rng.normal(size=m)
    new = np.random.default_rng(77).normal(size=40)
    k = mm.kernels.RBF(1.0)
    beliefs = mm.condition(x, y, kernel_x=k, kernel_y=k)(new)
    truth = mm.embed(mm.families.Normal(0.7 * new, np.full(40, 0.51)), k)
    return np.sqrt(np.mean((beliefs - truth).norm() ** 2))


def test_conditional_embeddings_converge_to_the_truth():
    """For so smooth a truth the rate is near n^(-1/2); n^(-1/4) is what is certain (Song et al. 2010, theorem 1)."""
    sizes = (50, 150, 450)
    errors = np.array([[gaussian_error(m, seed) for m in sizes] for seed in range(8)])
    slopes = np.polyfit(np.log(sizes), np.log(errors.T), 1)[0]
    se = slopes.std(ddof=1) / np.sqrt(8)
    assert slopes.mean() - 3 * se > -0.6, (slopes.mean(), se)
    assert slopes.mean() + 2 * se < -0.25, (slopes.mean(), se)
    assert errors[:, -1].mean() < 0.09


def test_one_factorisation_serves_every_query(pairs, monkeypatch):
    import scipy.linalg

    calls = []
    cholesky = scipy.linalg.cholesky
    monkeypatch.setattr(scipy.linalg, "cholesky", lambda *a, **k: calls.append(1) or cholesky(*a, **k))
    x, y = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    op(x).mean(), op(x[:3]).var(), op.expect(np.square, x), op.apply(mm.embed(x, K)), op.adjoint()(y).weights
    assert len(calls) == 1


def test_more_points_than_are_factored_go_through_pivots(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 700)
    y = np.sin(x) + 0.1 * rng.normal(size=700)
    dense = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    monkeypatch.setattr(conditional, "DENSE_ROWS", 500)
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-3)
    assert "features -> 700 points" in repr(op)
    new = np.linspace(-2.5, 2.5, 9)
    np.testing.assert_allclose(op(new).mean(), dense(new).mean(), atol=1e-4)
    prior = mm.embed(rng.normal(size=50), K)
    np.testing.assert_allclose(op.apply(prior).mean(), dense.apply(prior).mean(), atol=1e-4)
    chosen = mm.condition(x, y)
    assert np.abs(chosen(new).mean() - np.sin(new)).max() < 0.1


def test_few_pivots_that_hold_the_kernel_are_as_good_as_all_points(monkeypatch):
    monkeypatch.setattr(conditional, "LOW_RANK_FROM", 300)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=400)
    op, new = mm.condition(x[:, :1], y, kernel_x=K, kernel_y=L), np.linspace(-4, 4, 9)[:, None]
    assert "features -> 400 points" in repr(op)
    dense = mm.condition(x[:, :1], y, kernel_x=K, kernel_y=L, ridge=dict(op.chosen)["ridge"])
    assert "features" not in repr(dense)
    np.testing.assert_allclose(op(new).weights, dense(new).weights, atol=1e-4)
    np.testing.assert_allclose(op(new).quantile(0.3), dense(new).quantile(0.3), atol=1e-3)
    assert "features" not in repr(mm.condition(x, y, kernel_x=K, kernel_y=L))  # many pivots would be needed
    assert "features" not in repr(mm.condition(x[:, :1], np.sin(x[:, 0]), kernel_x=K, kernel_y=L))  # without noise


def test_the_ridge_of_many_points_keeps_the_shift(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    y = x[:, 0] + 0.5 * rng.normal(size=900)
    exact = dict(mm.condition(x, y, kernel_x=K, kernel_y=L).chosen)["ridge"]
    monkeypatch.setattr(conditional, "RIDGE_ROWS", 300)
    quick = dict(mm.condition(x, y, kernel_x=K, kernel_y=L).chosen)["ridge"]
    assert exact / 5 < quick < exact * 5  # within two steps of the grid


def test_defaults_find_a_sharp_function():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=600)
    y = np.sin(5 * x) + 0.1 * rng.normal(size=600)
    new = np.linspace(-2.5, 2.5, 50)
    searched = mm.condition(x, y)
    assert np.sqrt(np.mean((searched(new).mean() - np.sin(5 * new)) ** 2)) < 0.06
    assert set(dict(searched.chosen)) == {"ridge", "lengthscale"}


def test_labels_texts_and_tables():
    rng = np.random.default_rng(0)
    colour = np.array(["red", "green", "blue"])[rng.integers(3, size=300)]
    y = np.select([colour == "red", colour == "green"], [1.0, 2.0], 3.0)
    op = mm.condition(colour, y + 0.01 * rng.normal(size=300))
    np.testing.assert_allclose(op(["red", "green", "blue"]).mean(), [1, 2, 3], atol=0.02)
    back = mm.condition(y, colour)
    share = back([1.0, 2.0]).expect((colour == "red").astype(float))
    np.testing.assert_allclose(share, [1, 0], atol=0.02)
    assert back([3.0]).mode(candidates=["red", "green", "blue"]).tolist() == [2]
    texts = ["aaaa", "aaab", "bbbb", "bbba"] * 5
    op = mm.condition(texts, np.tile([0.0, 0.0, 1.0, 1.0], 5), kernel_x=mm.kernels.Spectrum(2), kernel_y=L)
    low, high = op(["aaaa", "bbbb"]).mean()
    assert low < 0.1 < 0.9 < high

    import pandas as pd

    x = rng.normal(size=300)
    op = mm.condition(pd.DataFrame({"x": x, "colour": colour}), pd.DataFrame({"y": y + x}))
    belief = op(pd.DataFrame({"x": [0.5], "colour": ["green"]}))
    assert belief.mean().shape == (1, 1)
    assert belief.mean()[0, 0] == pytest.approx(2.5, abs=0.1)


def test_jax_in_jax_out_through_jit_vmap_and_grad(pairs):
    x, y = (jnp.asarray(v, jnp.float32) for v in pairs)
    new = jnp.asarray(pairs[0][:4] + 0.1, jnp.float32)

    def means(x, y, new, ridge):
        return mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=ridge)(new).mean()

    expected = means(*pairs, np.asarray(new, float), 1e-2)
    got = jax.jit(means)(x, y, new, 1e-2)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, expected, atol=1e-4)
    np.testing.assert_allclose(means(x, y, new, 1e-2), expected, atol=1e-4)
    np.testing.assert_allclose(jax.vmap(lambda r: means(x, y, new, r))(jnp.array([1e-2, 1e-1]))[0], expected, atol=1e-4)
    gradient = jax.grad(lambda r: means(x, y, new, r).sum())(jnp.float32(1e-2))
    h = 1e-6
    up, down = (means(*pairs, np.asarray(new, float), 1e-2 + s).sum() for s in (h, -h))
    assert float(gradient) == pytest.approx((up - down) / (2 * h), rel=1e-2)
    belief = mm.condition(x, y, kernel_x=K, kernel_y=L)(new)
    assert isinstance(belief.var(), jax.Array)


def test_messages(pairs):
    x, y = pairs
    with pytest.raises(ParameterError, match="ridge is 0 but the Gram matrix is singular"):
        mm.condition(np.zeros((5, 1)) + np.arange(5)[:, None] // 2, np.arange(5.0), kernel_x=K, ridge=0)
    with pytest.raises(ParameterError, match=r"ridge is -0\.1; expected values of at least 0"):
        mm.condition(x, y, ridge=-0.1)
    with pytest.raises(EmptyError, match="x has 1 point; expected at least 2"):
        mm.condition(x[:1], y[:1], kernel_x=K, kernel_y=L)
    with pytest.raises(ShapeError, match="x has 60 points and y has 59; expected pairs"):
        mm.condition(x, y[1:], kernel_x=K, kernel_y=L)
    with pytest.raises(KindError, match="kernel_y is features but kernel_x is a kernel"):
        mm.condition(x, y, kernel_x=K, kernel_y=mm.features.Fourier.draw(L, like=1, n_features=4, rng=0))
    with pytest.raises(PrecisionError, match="float32"):
        mm.condition(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), kernel_x=K, kernel_y=L, ridge=1e-7)
    for settings in ({}, {"ridge": 1e-2}, {"kernel_x": K, "kernel_y": L}):
        with pytest.raises(ParameterError, match="inside jit nothing can be chosen from the data: pass kernel_x"):
            jax.jit(lambda x, y, s=settings: mm.condition(x, y, **s)(x).mean())(jnp.asarray(x), jnp.asarray(y))
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    with pytest.raises(ShapeError, match="x has 3 columns; expected 2, as before"):
        op(np.zeros((2, 3)))
    with pytest.warns(UserWarning, match="far outside"):
        assert op(np.full((1, 2), 1e3)).mean() == pytest.approx(y.mean())
    both = mm.features.Fourier.draw(K, like=2, n_features=4, rng=0)
    with pytest.raises(KindError, match="expect needs an output on points"):
        mm.condition(x, x, kernel_x=both, kernel_y=both, ridge=1e-2).expect(np.sin, x)


def in_a_process(code):
    """Run and measure in a process of its own: wall and CPU seconds and the peak of memory."""
    head = "import json, time, resource\nimport numpy as np\nimport meanmap as mm\n"
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_five_thousand_points_in_ten_dimensions_are_fitted_in_seconds():
    """Processor seconds on two cores: wall seconds depend on who else is computing."""
    result = in_a_process("""
rng = np.random.default_rng(0)
x = rng.normal(size=(5000, 10)); y = np.sin(x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=5000)
new = rng.normal(size=(10_000, 10))
out = {}
for name, kernel in (("given", mm.kernels.RBF(mm.median_heuristic(x))), ("searched", None)):
    mm.condition(x[:100], y[:100], kernel_x=kernel)
    start = time.process_time(); op = mm.condition(x, y, kernel_x=kernel); out[name] = time.process_time() - start
op(new).mean()
start = time.process_time(); mean = op(new).mean(); out["queries"] = time.process_time() - start
out["error"] = float(np.sqrt(np.mean((mean - np.sin(new[:, 0]) - new[:, 1]) ** 2)))
print(json.dumps(out))
""")
    assert result["given"] < 10, result
    assert result["searched"] < 12, result
    assert result["queries"] < 2, result
    assert result["error"] < 0.2, result


def test_many_points_in_features_are_solved_in_blocks_with_the_ridge_of_some(pairs, monkeypatch):
    x, y = pairs
    phi = mm.features.PivotedCholesky.fit(K, x, tolerance=1e-8, max_rank=20)
    monkeypatch.setattr(conditional, "RIDGE_ROWS_IN_FEATURES", 30)
    monkeypatch.setattr(conditional, "BLOCK", 16)
    op = mm.condition(x, y, kernel_x=phi, kernel_y=L)
    some = conditional.spread_rows(60, 30)
    of_some = mm.condition(x[some], y[some], kernel_x=phi, kernel_y=L)
    ridge = dict(op.chosen)["ridge"]
    assert ridge == dict(of_some.chosen)["ridge"] / 2
    z = phi(x)
    beta = np.linalg.solve(z @ z.T + 60 * ridge * np.eye(60), z @ phi(x[:3]).T).T
    np.testing.assert_allclose(op(x[:3]).weights, beta, atol=1e-8)


@pytest.mark.slow
def test_a_million_rows_in_features_fit_in_two_gigabytes():
    result = in_a_process("""
rng = np.random.default_rng(0)
n = 1_000_000
x = rng.normal(size=(n, 5)); y = x[:, 0] + 0.3 * rng.normal(size=n)
phi = mm.features.Fourier.draw(mm.kernels.RBF(2.0), like=5, n_features=500, rng=0)
psi = mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=500, rng=1)
start = time.process_time(); op = mm.condition(x, y, kernel_x=phi, kernel_y=psi)
cpu = time.process_time() - start
mean = float(op([[1.0, 0, 0, 0, 0]]).to_points(np.linspace(-4, 4, 81)).mean()[0])
print(json.dumps({"cpu": cpu, "mean": mean, "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
""")
    assert result["cpu"] < 120, result
    assert result["gib"] < 2, result
    assert result["mean"] == pytest.approx(1.0, abs=0.02)


def test_far_from_all_x_a_belief_is_that_of_y():
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    y = np.sin(x) + 0.2 * rng.normal(size=120)
    with pytest.warns(UserWarning, match=r"x\['x0'\] has 2 values far outside"):
        belief = mm.condition(x, y)(np.array([0.5, 300.0, 1e9]))
    far = mm.embed(y, belief.kernel)
    for element in (belief[1:], belief[1], belief[2]):
        np.testing.assert_allclose(element.mean(), np.broadcast_to(y.mean(), element.batch), atol=1e-12)
        np.testing.assert_allclose(element.sd(), np.broadcast_to(y.std(), element.batch), atol=1e-12)
        expected = np.broadcast_to(far.quantile([0.05, 0.95]), (*element.batch, 2))
        np.testing.assert_allclose(element.quantile([0.05, 0.95]), expected, atol=1e-12)
    assert belief[0].mean() == pytest.approx(np.sin(0.5), abs=0.2)
