"""Ridge scores against refits that really leave points out, and against SciPy's Gaussian density."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from meanmap.core import KindError, ParameterError, PrecisionError, ShapeError
from meanmap.linalg import choose_ridge, choose_ridge_features, pivoted_cholesky

RIDGES = np.array([1e-6, 1e-3, 1e-1, 2.0])


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(30, 2))
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1))
    y = np.stack([np.sin(x[:, 0]), np.cos(2 * x[:, 1])], 1) + 0.1 * rng.normal(size=(30, 2))
    return K, y


def leave_out(K, L, ridge, labels):
    """Refit without each fold; errors in the RKHS of the targets, whose Gram matrix is L."""
    n, total = len(K), 0.0
    for label in np.unique(labels):
        out, kept = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
        weights = np.linalg.solve(K[np.ix_(kept, kept)] + n * ridge * np.eye(kept.size), K[np.ix_(kept, out)]).T
        error = np.zeros((out.size, n))
        error[:, kept] = -weights
        error[np.arange(out.size), out] = 1.0
        total += np.trace(error @ L @ error.T)
    return total / n


@pytest.mark.parametrize("criterion", ["leave-one-out", "k-fold"])
def test_left_out_errors_are_those_of_refits(problem, criterion):
    K, y = problem
    labels = np.arange(30) % 4 if criterion == "k-fold" else np.arange(30)
    path = choose_ridge(K, y, ridges=RIDGES, criterion=criterion, folds=4)
    np.testing.assert_allclose(path.scores, [leave_out(K, y @ y.T, lam, labels) for lam in RIDGES], rtol=1e-8)
    assert path.best == RIDGES[np.argmin(path.scores)]
    hats = [np.trace(K @ np.linalg.inv(K + 30 * lam * np.eye(30))) for lam in RIDGES]
    np.testing.assert_allclose(path.degrees_of_freedom, hats, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["leave-one-out", "k-fold"])
def test_targets_in_an_rkhs(problem, criterion):
    K, y = problem
    L = np.exp(-((y[:, None] - y) ** 2).sum(-1))
    labels = np.arange(30) % 3 if criterion == "k-fold" else np.arange(30)
    path = choose_ridge(K, target_gram=L, ridges=RIDGES, criterion=criterion, folds=labels)
    np.testing.assert_allclose(path.scores, [leave_out(K, L, lam, labels) for lam in RIDGES], rtol=1e-8)


def test_rkhs_formula_from_the_smoother(problem):
    K, y = problem
    L = np.exp(-np.abs(y[:, :1] - y[:, 0]))
    A = np.eye(30) - K @ np.linalg.inv(K + 30 * 1e-3 * np.eye(30))
    expected = np.mean(np.diag(A @ L @ A.T) / np.diag(A) ** 2)
    np.testing.assert_allclose(choose_ridge(K, target_gram=L, ridges=1e-3).scores, [expected], rtol=1e-9)


def test_generalised_is_its_formula(problem):
    K, y = problem
    expected = []
    for lam in RIDGES:
        A = np.eye(30) - K @ np.linalg.inv(K + 30 * lam * np.eye(30))
        expected.append(np.sum((A @ y) ** 2) / 30 / (np.trace(A) / 30) ** 2)
    np.testing.assert_allclose(choose_ridge(K, y, ridges=RIDGES, criterion="generalised").scores, expected, rtol=1e-9)


def test_evidence_is_the_gaussian_density_at_its_best_scale(problem):
    K, y = problem
    expected = []
    for lam in RIDGES:
        C = K + 30 * lam * np.eye(30)

        def loss(log_scale, C=C):
            normal = scipy.stats.multivariate_normal(np.zeros(30), np.exp(log_scale) * C)
            return -sum(normal.logpdf(column) for column in y.T) / y.size

        expected.append(scipy.optimize.minimize_scalar(loss, bracket=(-3, 3), options={"xtol": 1e-9}).fun)
    np.testing.assert_allclose(choose_ridge(K, y, ridges=RIDGES, criterion="evidence").scores, expected, rtol=1e-8)
    # For targets known by their Gram matrix the count of outputs moves every score by the same amount.
    gram = choose_ridge(K, target_gram=y @ y.T, ridges=RIDGES, criterion="evidence").scores
    np.testing.assert_allclose(np.diff(gram), np.diff(expected), rtol=1e-6)


@pytest.mark.parametrize("criterion", ["leave-one-out", "generalised", "evidence", "k-fold"])
@pytest.mark.parametrize("shape", ["tall", "wide", "many outputs"])
def test_features_score_as_their_gram_matrix(criterion, shape):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(40, 60 if shape == "wide" else 6))
    y = rng.normal(size=(40, 70 if shape == "many outputs" else 2))
    primal = choose_ridge_features(features, y, ridges=RIDGES, criterion=criterion, folds=5)
    dual = choose_ridge(features @ features.T, y, ridges=RIDGES, criterion=criterion, folds=5)
    np.testing.assert_allclose(primal.scores, dual.scores, rtol=1e-7)
    np.testing.assert_allclose(primal.degrees_of_freedom, dual.degrees_of_freedom, rtol=1e-7)
    assert primal.rank == min(features.shape)


def test_features_are_never_squared_to_n_by_n():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(100_000, 4))  # n × n would be 80 GB
    y = features @ np.ones(4) + rng.normal(size=100_000)
    path = choose_ridge_features(features, y)
    assert path.scores.min() == pytest.approx(1.0, abs=0.05)


def test_low_rank_route_approaches_the_exact_one_within_its_certificate():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 3))
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1) / 6)
    y = np.sin(x.sum(1))[:, None] + 0.3 * rng.normal(size=(400, 2))
    L = np.exp(-((y[:, None] - y) ** 2).sum(-1) / 2)
    exact = choose_ridge(K, target_gram=L)
    low = choose_ridge(K, target_gram=L, method="low-rank", rank=200)
    assert low.rank <= 200
    assert (exact.error_bounds == 0).all()
    certain = low.error_bounds < 0.01
    assert certain.sum() > 8
    np.testing.assert_allclose(low.scores[certain], exact.scores[certain], rtol=0.01)
    assert 0.4 < low.best / exact.best < 2.5
    # The bound on the leverages themselves.
    coarse = choose_ridge(K, y, method="low-rank", rank=60)
    factor = pivoted_cholesky(K.diagonal(), lambda i: K[i], tolerance=0.0, max_rank=60).factor
    for lam, bound in zip(coarse.ridges[::4], coarse.error_bounds[::4], strict=True):
        left, left_low = (
            1 - np.einsum("ij,ji->i", M, np.linalg.inv(M + 400 * lam * np.eye(400))) for M in (K, factor @ factor.T)
        )
        assert (left <= left_low * (1 + 1e-6)).all()
        assert (left * (1 + bound) >= left_low * (1 - 1e-6)).all()
    assert any(
        "certified only within a factor" in note
        for note in choose_ridge(K, y, ridges=1e-8, rank=5, method="low-rank").report.notes
    )


def test_default_grid_follows_the_scale_of_the_matrix(problem):
    K, y = problem
    path, scaled = choose_ridge(K, y), choose_ridge(100 * K, y)
    assert len(path.ridges) == 25
    np.testing.assert_allclose([path.ridges[0], path.ridges[-1]], [1e-8, 1.0])
    np.testing.assert_allclose(scaled.ridges, 100 * path.ridges)
    np.testing.assert_allclose(scaled.scores, path.scores, rtol=1e-6)
    assert isinstance(path.scores, np.ndarray)


def test_report_says_when_the_best_is_at_the_edge(problem):
    K, y = problem
    report = choose_ridge(K, y, ridges=[1.0, 10.0]).report
    assert not report.converged
    assert "the best ridge is the smallest of the grid" in report.notes[0]
    noise = np.random.default_rng(4).normal(size=30)
    assert "largest of the grid" in choose_ridge(K, noise, ridges=[1e-8, 1e-7]).report.notes[0]


@pytest.mark.slow
def test_jax_in_jax_out_under_jit_and_vmap(problem):
    K, y = problem
    with jax.enable_x64(True):
        for options in ({}, {"criterion": "evidence"}, {"criterion": "k-fold"}, {"method": "low-rank", "rank": 25}):
            path = jax.jit(lambda K, y, options=options: choose_ridge(K, y, ridges=RIDGES[1:], **options))(
                jnp.asarray(K), jnp.asarray(y)
            )
            assert isinstance(path.best, jax.Array)
            np.testing.assert_allclose(path.scores, choose_ridge(K, y, ridges=RIDGES[1:], **options).scores, rtol=1e-6)
        many = jax.vmap(lambda scale: choose_ridge(scale * jnp.asarray(K), jnp.asarray(y)).best)(
            jnp.array([1.0, 100.0])
        )
        np.testing.assert_allclose(many[1], 100 * many[0], rtol=1e-6)
        with pytest.raises(KindError, match="read it outside jit"):
            jax.jit(lambda K: choose_ridge(K, y).report.steps)(jnp.asarray(K))
    single = choose_ridge(jnp.asarray(K, jnp.float32), jnp.asarray(y, jnp.float32))
    assert single.scores.dtype == jnp.float32
    assert float(single.ridges[0]) > 1e-4


def test_messages(problem):
    K, y = problem
    with pytest.raises(ParameterError, match="criterion is 'aic'; expected one of 'leave-one-out'"):
        choose_ridge(K, y, criterion="aic")
    with pytest.raises(ParameterError, match="method is 'fast'; expected one of 'auto'"):
        choose_ridge(K, y, method="fast")
    with pytest.raises(KindError, match="got neither of targets and target_gram"):
        choose_ridge(K)
    with pytest.raises(KindError, match="got both of targets and target_gram"):
        choose_ridge_features(y, y, target_gram=K)
    with pytest.raises(ShapeError, match="targets has 29 rows; expected 30"):
        choose_ridge(K, y[1:])
    with pytest.raises(ShapeError, match=r"target_gram has shape \(30, 2\); expected a square"):
        choose_ridge(K, target_gram=y)
    with pytest.raises(ParameterError, match=r"ridges is .*; expected values above 0"):
        choose_ridge(K, y, ridges=[0.1, 0.0])
    with pytest.raises(PrecisionError, match="not precise enough"):
        choose_ridge(K, y, ridges=[0.1, 1e-16])
    with pytest.raises(ParameterError, match="the matrix is zero"):
        choose_ridge(0 * K, y)
    with pytest.raises(ParameterError, match="folds is 31; expected between 2 and the number of rows, 30"):
        choose_ridge(K, y, criterion="k-fold", folds=31)
    with pytest.raises(ShapeError, match=r"folds has shape \(3,\)"):
        choose_ridge(K, y, criterion="k-fold", folds=[0, 1, 2])
    with pytest.raises(ParameterError, match="every row in one fold"):
        choose_ridge(K, y, criterion="k-fold", folds=np.zeros(30))


def test_low_rank_scores_do_not_depend_on_the_unit_of_the_kernel():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 1))
    K, y = np.exp(-((x - x.T) ** 2)), np.sin(2 * x[:, 0]) + 0.01 * rng.normal(size=30)
    one, million = (
        choose_ridge(unit * K, y, ridges=unit * RIDGES, criterion="evidence", method="low-rank") for unit in (1.0, 1e6)
    )
    np.testing.assert_allclose(million.best / 1e6, one.best, rtol=1e-12)


def test_two_folds_are_enough():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 3))
    assert choose_ridge_features(features, rng.normal(size=12), criterion="k-fold", folds=2).best > 0


def test_what_a_line_took_is_left_out_with_its_row():
    """Features as many as rows, free of a line, seem to predict all unless rows are left out of the line, too."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(12, 2))
    line = np.c_[np.ones(12), x]
    basis = np.linalg.qr(line)[0]
    features = np.linalg.cholesky(np.exp(-np.square(x[:, None] - x).sum(-1)) + 1e-9 * np.eye(12))
    beyond = features - basis @ (basis.T @ features)
    y = rng.normal(size=12)
    rest = y - basis @ (basis.T @ y)
    ridges = np.geomspace(1e-6, 1.0, 7)
    path = choose_ridge_features(beyond, rest[:, None], ridges=ridges, taken=np.sum(basis**2, axis=1))
    for ridge, score in zip(ridges, path.scores, strict=True):
        smoother = beyond @ np.linalg.solve(beyond.T @ beyond + 12 * ridge * np.eye(12), beyond.T) + basis @ basis.T
        left = (y - smoother @ y) / (1 - smoother.diagonal())
        assert score == pytest.approx(np.mean(left**2), rel=1e-4)
    assert path.scores.min() > 0.1 * np.mean(rest**2)  # noise is not predicted
    assert choose_ridge_features(beyond, rest[:, None], ridges=ridges).scores.min() < 1e-3  # and seemed to be
