"""Learned messages about normal vectors: their numbers, their embedding, what must not matter, and whole runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.core import KindError
from meanmap.ep.learned import Card, Derivatives, KernelRegression, MessageOperator, Recorded, TiltedMoments
from meanmap.ep.learned.points import coordinates
from meanmap.families import PointMass

# Few features, so that a test takes a moment.
SMALL = KernelRegression(d_in=100, d_out=200, tune=None)


def vectors(n, d, seed, low=0.1):
    """Means around 0, covariances with correlations, of eigenvalues from `low` to 1."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    covariance = axes * np.exp(rng.uniform(np.log(low), 0, (n, 1, d))) @ axes.swapaxes(1, 2)
    return ep.MultivariateNormal(rng.normal(size=(n, d)), (covariance + covariance.swapaxes(1, 2)) / 2)


def moved(law, matrix):
    """The laws of Bx."""
    covariance = matrix @ law.cov() @ matrix.T
    return ep.MultivariateNormal(law.mean() @ matrix.T, (covariance + covariance.swapaxes(1, 2)) / 2)


def bend(w):
    """Log density of a curved ridge: no normal law, and not log-concave."""
    return -2 * (w[1] - 0.5 * w[0] ** 2) ** 2 - 0.5 * jnp.log1p(w[0] ** 2)


W = ep.Variable("w", ep.MultivariateNormal, dimension=2)
BEND = ep.Density(bend, W, name="bend")


def by_grid(came, size=301, reach=9.0):
    """Exact messages of `bend` for laws on the plane, by a grid over each of them."""
    messages, totals = [], []
    for mean, covariance in zip(came.mean(), came.cov(), strict=True):
        root, line = np.linalg.cholesky(covariance), np.linspace(-reach, reach, size)
        u = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
        w = mean + u @ root.T
        log_weights = np.asarray(bend(w.T)) - (u**2).sum(1) / 2
        weights = np.exp(log_weights - log_weights.max())
        total = weights.sum()
        tilted_mean = weights @ w / total
        tilted = ((w - tilted_mean).T * weights) @ (w - tilted_mean) / total
        messages.append((tilted_mean, (tilted + tilted.T) / 2))
        totals.append(np.log(total) + log_weights.max() + 2 * np.log(line[1] - line[0]) - np.log(2 * np.pi))
    tilted = ep.MultivariateNormal(*map(np.stack, zip(*messages, strict=True)))
    return ep.extending.Answer((tilted / came,), np.array(totals) + came.log_normaliser)


@pytest.fixture(scope="module")
def trained():
    came = vectors(400, 2, 0)
    return MessageOperator().learn((came,), by_grid(came))


def test_numbers_are_derivatives_of_log_z():
    """Of exp(−½ (w − c)ᵀ A (w − c)): log Z is that of N(m; c, V + A⁻¹), and the precision that is sent is A."""
    came, rng = vectors(9, 3, 1), np.random.default_rng(1)
    root, c = rng.normal(size=(3, 3)), rng.normal(size=3)
    a = root @ root.T + np.eye(3)
    sent = ep.MultivariateNormal.from_natural(np.tile(a @ c, (9, 1)), np.tile(a, (9, 1, 1)))
    numbers = Derivatives().of(came, sent)
    gradient = -np.linalg.solve(came.cov() + np.linalg.inv(a), (came.mean() - c)[..., None])[..., 0]
    np.testing.assert_allclose(numbers[:, :3], gradient, rtol=1e-9)
    # By any root of the covariance, here the symmetric one: (I + L A L) = exp(L N L).
    values, axes = np.linalg.eigh(came.cov())
    half = (axes * np.sqrt(values)[:, None]) @ axes.swapaxes(1, 2)
    matrix = np.empty((9, 3, 3))
    rows, columns = np.triu_indices(3)
    matrix[:, rows, columns] = matrix[:, columns, rows] = numbers[:, 3:]
    for root, n in zip(half, matrix, strict=True):
        np.testing.assert_allclose(jax.scipy.linalg.expm(root @ n @ root), np.eye(3) + root @ a @ root, rtol=1e-5)


@pytest.mark.parametrize("target", [Derivatives(), TiltedMoments()])
def test_messages_follow_from_their_numbers_improper_ones_too(target):
    came, tilted = vectors(20, 3, 2), vectors(20, 3, 3)
    sent = tilted / came
    assert not sent.is_proper().all()
    again = target.message(came, target.of(came, sent))
    for mine, exact in zip(again.natural, sent.natural, strict=True):
        np.testing.assert_allclose(mine, exact, atol=1e-9 * np.abs(exact).max())
    # Where no tilted law exists there are no numbers.
    none = ep.MultivariateNormal.from_natural(sent.precision_mean, -2 * came.precision)
    assert np.isnan(target.of(came, none)).all()


def test_whatever_is_predicted_the_belief_is_a_law():
    came = vectors(200, 3, 4, low=1e-3)
    values = 3 * np.random.default_rng(4).normal(size=(200, 9))
    assert (came * Derivatives().message(came, values)).is_proper().all()


def test_numbers_change_with_the_coordinates_as_a_gradient_and_a_precision_do():
    came, tilted, rng = vectors(9, 3, 5), vectors(9, 3, 6), np.random.default_rng(5)
    matrix = rng.normal(size=(3, 3))
    inverse = np.linalg.inv(matrix)
    there = moved(came, matrix)
    numbers, others = Derivatives().of(came, tilted / came), Derivatives().of(there, moved(tilted, matrix) / there)
    np.testing.assert_allclose(others[:, :3], numbers[:, :3] @ inverse, rtol=1e-6)
    rows, columns = np.triu_indices(3)
    full = np.empty((9, 3, 3))
    full[:, rows, columns] = full[:, columns, rows] = numbers[:, 3:]
    np.testing.assert_allclose(others[:, 3:], (inverse.T @ full @ inverse)[:, rows, columns], rtol=1e-6, atol=1e-9)


def test_a_vector_of_one_number_is_that_number():
    came, sent = ep.Normal([0.3, -2.0], [0.5, 2.0]), ep.Normal([1.0, 0.0], [0.7, 3.0])
    one, two = (
        ep.MultivariateNormal.from_natural(law.precision_mean[:, None], law.precision[:, None, None])
        for law in (came, sent)
    )
    alpha, _ = Derivatives().of(came, sent).T
    numbers = Derivatives().of(one, two)
    np.testing.assert_allclose(numbers[:, 0], alpha, rtol=1e-12)
    np.testing.assert_allclose(numbers[:, 1], np.log1p(came.var() * sent.precision) / came.var(), rtol=1e-12)
    np.testing.assert_allclose(coordinates((one,)), coordinates((came,)), rtol=1e-12)


def test_features_are_means_of_the_features_of_draws():
    """The mean embedding of N(m, V) in closed form, against 200,000 draws."""
    came, n = vectors(12, 3, 7), 200_000
    fitted = SMALL.fit((came,), np.random.default_rng(7).normal(size=(12, 2)))
    (inner,) = fitted.features.inner
    (law,) = fitted._points((came,))
    exact = inner((law,))
    for at in (0, 5):
        draws = inner((PointMass(law[at].sample(n, rng=at), event_axes=1),))
        errors = (draws.mean(0) - exact[at]) / (draws.std(0) / np.sqrt(n))
        assert np.sqrt((errors**2).mean()) == pytest.approx(1, abs=0.35)  # of a hundred, correlated
        assert np.abs(errors).max() < 5


def test_predictions_are_within_what_the_operator_says_of_a_grid(trained):
    new = vectors(200, 2, 8)
    exact, said = by_grid(new), trained.predict((new,))
    beliefs, predicted = new * exact.messages[0], new * said.messages[0]
    kl, doubt = beliefs.kl(predicted), trained.doubt((new,), said)
    inside = ~said.outside
    assert inside.mean() > 0.9
    assert np.isinf(doubt[~inside]).all()
    assert np.median(kl[inside]) < 0.01 * np.median(beliefs.kl(new))
    near = inside & (said.novelty < 4)
    assert near.sum() > 60
    assert 2 * kl[near].mean() < (doubt[near] ** 2).mean()
    # Of normal errors 5% are beyond two deviations; of 190 up to 11% may be, at three standard errors.
    assert (np.sqrt(2 * kl) > 2 * doubt)[inside].mean() < 0.11
    assert (np.sqrt((trained.scores((new,), exact) ** 2)[inside].mean(0)) < 1.5).all()
    # It tells where it is off.
    from scipy.stats import spearmanr

    assert spearmanr(kl[inside], doubt[inside]).statistic > 0.5


def test_units_and_the_order_of_rows_do_not_matter(trained):
    new, exact = vectors(100, 2, 10), trained.seen.answer.messages[0]
    said = trained.predict((new,))
    units, came = np.diag([1e3, 1e-2]), trained.seen.incoming[0]
    there, total = moved(came, units), trained.seen.log_normaliser
    # log ∫ f(w) exp(η·t(w)) dw is in the units of w.
    answer = ep.extending.Answer((moved(came * exact, units) / there,), total + np.log(units.diagonal()).sum())
    other = MessageOperator().learn((there,), answer).predict((moved(new, units),))
    np.testing.assert_allclose(other.novelty, said.novelty, rtol=1e-4)
    back = moved(moved(new, units) * other.messages[0], np.linalg.inv(units))
    assert (new * said.messages[0]).kl(back).max() < 1e-6
    order = np.random.default_rng(9).permutation(256)
    one, two = (MessageOperator(SMALL).learn_recorded(seen) for seen in (trained.seen[:256], trained.seen[:256][order]))
    np.testing.assert_allclose(one.predict((new,)).numbers, two.predict((new,)).numbers, atol=1e-6)


def test_a_rotation_matters_as_little_as_other_features_do(trained):
    """Both operators are in doubt, and differ by less than that."""
    new, came = vectors(200, 2, 10), trained.seen.incoming[0]
    rotation = np.linalg.qr(np.random.default_rng(9).normal(size=(2, 2)))[0]
    there, sent = moved(came, rotation), moved(came * trained.seen.messages[0], rotation)
    answer = ep.extending.Answer((sent / there,), trained.seen.log_normaliser)
    said, other = trained.predict((new,)), MessageOperator().learn((there,), answer).predict((moved(new, rotation),))
    back = moved(moved(new, rotation) * other.messages[0], rotation.T)
    squares, doubt = 2 * (new * said.messages[0]).kl(back), trained.doubt((new,), said)
    inside = ~(said.outside | other.outside)
    assert (squares < 2 * doubt**2)[inside].mean() > 0.8


def test_correlations_leave_the_range_too(trained):
    tied = ep.MultivariateNormal(np.zeros((1, 2)), np.array([[[0.5, 0.49999], [0.49999, 0.5]]]))
    assert trained.beyond((tied,)).tolist() == [True]
    low, high = trained.range.low, trained.range.high
    assert len(low) == len(high) == 5


def test_a_card_names_the_entries_of_a_vector(trained):
    fresh = vectors(40, 2, 11)
    card = Card.of(trained, BEND, Recorded.of((fresh,), by_grid(fresh)))
    names = [name for name, *_ in card.ranges]
    assert names == ["w[0], mean", "w[1], mean", "w[0], variance", "w[1], variance", "w[0] and w[1], correlation"]
    ((_, low, high),) = card.ranges[-1:]
    assert -1 < low < -0.5 < 0.5 < high < 1
    assert card.audited == 40


def test_an_operator_of_vectors_is_kept_in_a_file_and_reused(trained, tmp_path):
    pytest.importorskip("safetensors", reason="operators are kept in safetensors files")
    path = ep.learned.save_operator(trained, tmp_path / "bend.operator", BEND)
    again, new = ep.learned.load_operator(path, BEND), vectors(20, 2, 12)
    np.testing.assert_allclose(again.predict((new,)).numbers, trained.predict((new,)).numbers, atol=1e-9)
    assert ep.Learned().reuse(BEND, again).trained(BEND) is again
    longer = ep.Density(bend, ep.Variable("w", ep.MultivariateNormal, dimension=3), name="bend")
    with pytest.raises(KindError, match=r"messages of MultivariateNormal\[2\]; bend has MultivariateNormal\[3\]"):
        ep.Learned().reuse(longer, again)


def test_what_is_far_from_what_was_learned_is_asked(trained):
    known = trained.seen.incoming[0]
    means, covariances = [known.mean()[0], [40.0, 0.0], [0.0, 0.0]], [known.cov()[0], np.eye(2), 900 * np.eye(2)]
    far, sampled = ep.MultivariateNormal(np.stack(means), np.stack(covariances)), ep.ImportanceSampling(2000)
    learned = ep.Learned(sampled, initial=20, audit=0.0, refresh=False, threshold=1.0).reuse(BEND, trained)
    learned.check(BEND)
    answer = learned.answer(ep.extending.Questions.of(BEND, (far,), 1.0, jax.random.key(0), 0))
    assert learned.diary("bend").outside == 2
    assert learned.counts(BEND)["asked of the oracle"] == 2
    assert np.isfinite(answer.log_normaliser).all()


def shares(n, seed):
    rng = np.random.default_rng(seed)
    return ep.Dirichlet(rng.uniform(1.0, 10.0, (n, 1)) * rng.dirichlet(np.full(3, 2.0), n) + 0.3)


LIKELY = np.array([0.7, 0.2, 0.1])


def one_of_three(came):
    """Exact messages of log(p · LIKELY): the tilted law is a mixture of three Dirichlets."""
    alpha = came.concentration
    weights = LIKELY * alpha / alpha.sum(1, keepdims=True)
    logs = np.stack([ep.Dirichlet(alpha + row).mean_in("log") for row in np.eye(3)], axis=1)
    total = weights.sum(1)
    tilted = ep.Dirichlet.from_moments(((weights / total[:, None])[:, :, None] * logs).sum(1))
    return ep.extending.Answer((tilted / came,), np.log(total) + came.log_normaliser)


def test_messages_about_shares_are_learned_too():
    came, new = shares(300, 13), shares(100, 14)
    operator, exact = MessageOperator().learn((came,), one_of_three(came)), one_of_three(new)
    said = operator.predict((new,))
    kl, inside = (new * exact.messages[0]).kl(new * said.messages[0]), ~said.outside
    assert inside.mean() > 0.9
    # Without a message beliefs are a hundred times further away.
    assert kl[inside].mean() < 0.01 * (new * exact.messages[0]).kl(new)[inside].mean()
    assert 2 * kl[inside].mean() < (operator.doubt((new,), said)[inside] ** 2).mean()
    np.testing.assert_allclose(said.log_normaliser[inside], exact.log_normaliser[inside], atol=0.05)
    sent = exact.messages[0]
    assert not (sent.concentration > 1).all()
    for target in (Derivatives(), TiltedMoments()):
        again = target.message(new, target.of(new, sent))
        np.testing.assert_allclose(again.concentration, sent.concentration, rtol=1e-9)


def test_features_of_shares_are_means_of_the_features_of_draws():
    came, n = shares(12, 15), 200_000
    fitted = SMALL.fit((came,), np.random.default_rng(15).normal(size=(12, 2)))
    (inner,) = fitted.features.inner
    logs = np.log(came[3].sample(n, rng=0))
    scaled = logs / inner.kernel.kernel[0].lengthscale
    draws = inner.scale * np.exp(1j * scaled @ np.asarray(inner.frequencies[0]).T)
    draws = np.concatenate([draws.real, draws.imag], axis=1)
    errors = (draws.mean(0) - inner((came,))[3]) / (draws.std(0) / np.sqrt(n))
    assert np.sqrt((errors**2).mean()) == pytest.approx(1, abs=0.35)


def two_sources(w, near, away, count):
    """Log likelihood of a count from two sources, seen with these weights; NumPy, many points at once."""
    rate = near * np.exp(w[..., 0]) + away * np.exp(w[..., 1])
    return count * np.log(rate) - rate


class Grid(ep.extending.HostOracle):
    """Messages about vectors of two numbers by a grid over each incoming one."""

    def __init__(self, size=91, reach=6.0):
        line = np.linspace(-reach, reach, size)
        self.u = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)

    def answer(self, questions):
        came, *given = questions.incoming
        root = np.linalg.cholesky(came.cov())
        w = came.mean()[:, None] + self.u @ root.swapaxes(1, 2)
        logs = two_sources(w, *(each[:, None] for each in given)) - (self.u**2).sum(1) / 2
        top = logs.max(1, keepdims=True)
        weights = np.exp(logs - top)
        total = weights.sum(1)
        mean = (weights[:, None] @ w)[:, 0] / total[:, None]
        gaps = w - mean[:, None]
        covariance = (gaps * (weights / total[:, None])[..., None]).swapaxes(1, 2) @ gaps
        tilted = ep.MultivariateNormal(mean, (covariance + covariance.swapaxes(1, 2)) / 2)
        area = np.exp(-(self.u**2).sum(1) / 2).sum()
        return ep.extending.Answer(
            (tilted / came, *(None for _ in given)), np.log(total / area) + top[:, 0] + came.log_normaliser
        )


def counts_of(units, seed):
    """Three counts of each unit, whose two sources have unknown logarithms."""
    rng, which = np.random.default_rng([seed, 3]), np.repeat(np.arange(units), 3)
    logs, (near, away) = (1 + 0.7 * rng.normal(size=(units, 2)))[which], rng.uniform(0.2, 2, (2, 3 * units))
    count = rng.poisson(near * np.exp(logs[:, 0]) + away * np.exp(logs[:, 1])).astype(float)
    w = ep.Variable("w", ep.MultivariateNormal(np.ones(2), 0.49 * np.eye(2)), plate=units)
    return ep.FactorGraph(ep.Density(two_sources, w[which], near, away, count, name="counts", vectorised=True))


def test_a_python_function_of_vectors_is_learned_while_a_run_goes_on():
    model, learned = counts_of(16, 20), ep.Learned(Grid(), initial=200, operator=MessageOperator(SMALL))
    for _ in range(2):  # the second run is of the same function, and knows it
        post = ep.infer(model, learned, rng=0, sweeps=8)
        assert len(learned._learners) == 1
        assert post["w"].is_proper().all()
    assert post.report.counts["counts: predicted"] > 0
    # As good as the exact run is after as many sweeps, within what is doubted.
    exact = ep.infer(model, Grid(), rng=0, sweeps=8)
    assert np.median(2 * exact["w"].kl(post["w"])) < 0.01


@pytest.mark.slow
def test_a_run_with_vectors_ends_where_its_oracle_does():
    """It asks for everything where predictions keep sweeps from converging, and says so."""
    model, learned = counts_of(30, 11), ep.Learned(Grid())
    exact, post = (ep.infer(model, messages, rng=0, tolerance=1e-4) for messages in (Grid(), learned))
    assert (2 * exact["w"].kl(post["w"])).max() < 0.01
    diary = learned.diary("counts")
    assert diary.predicted > 0
    if diary.gave_up:
        assert any("from then on the oracle answered all messages" in note for note in post.report.notes)
