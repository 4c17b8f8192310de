"""Targets and operators on recorded messages of the logistic factor, against quadrature and finite differences."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.core import EmptyError, InputError, KindError, ParameterError
from meanmap.ep.learned import Derivatives, KernelRegression, MessageOperator, Recorded, TiltedMoments
from meanmap.ep.learned.kernel_regression import newest, surprise

Z, P, T = ep.Variable("z", ep.Normal), ep.Variable("p", ep.Beta), ep.Variable("t", ep.Gamma)
LABEL = ep.Logistic(Z, observed=1)
SIGMOID = ep.BlackBox(jax.nn.sigmoid, Z, P)


# Few features, so that a test takes a moment.
SMALL = KernelRegression(d_in=100, d_out=200, tune=None)


def log_compound(t):
    return -2 * jnp.log1p(t)


def cavities(n, seed, low=0.05):
    rng = np.random.default_rng(seed)
    return ep.Normal(2 * rng.normal(size=n), np.exp(rng.uniform(np.log(low), np.log(3), n)))


@pytest.fixture(scope="module")
def trained():
    came = cavities(256, 0)
    return MessageOperator(SMALL).learn((came,), ep.extending.ask(LABEL, came))


def test_numbers_of_a_normal_are_derivatives_of_log_z_with_respect_to_its_mean():
    came, step = cavities(16, 1), 1e-4
    answer = ep.extending.ask(LABEL, came)
    numbers = Derivatives().of(came, answer.messages[0])

    def log_z(shift):
        moved = ep.Normal(came.mean() + shift, came.var())
        return ep.extending.ask(LABEL, moved).log_normaliser - moved.log_normaliser

    up, here, down = (log_z(shift) for shift in (step, 0.0, -step))
    np.testing.assert_allclose(numbers[:, 0], (up - down) / (2 * step), atol=1e-8)
    curvature = -(up - 2 * here + down) / step**2
    np.testing.assert_allclose(np.exp(numbers[:, 1]), curvature / (1 - came.var() * curvature), rtol=1e-4)


@pytest.mark.parametrize("target", [Derivatives(), Derivatives(logarithm=False), TiltedMoments()])
def test_messages_follow_from_their_numbers(target):
    rng = np.random.default_rng(2)
    pairs = [
        (ep.Normal(rng.normal(size=9), rng.uniform(1, 2, 9)), ep.Normal(rng.normal(size=9), rng.uniform(1, 2, 9))),
        (ep.Beta(*rng.uniform(1, 9, (2, 9))), ep.Beta(*rng.uniform(1, 9, (2, 9)))),
        (ep.Gamma(*rng.uniform(1, 9, (2, 9))), ep.Gamma(*rng.uniform(1, 9, (2, 9)))),
    ]
    for came, went in pairs:
        again = target.message(came, target.of(came, went))
        np.testing.assert_allclose(again.natural, went.natural, rtol=1e-11, atol=1e-11)


def test_derivatives_exist_where_a_message_is_improper_and_tilted_moments_do_not():
    came, went = ep.Gamma([3.0], [2.0]), ep.Gamma.from_natural([-1.5], [0.5])
    assert not went.is_proper().any()
    assert np.isfinite(Derivatives().of(came, went)).all()
    assert not np.isfinite(TiltedMoments().of(came, went)).all()


def test_predictions_are_within_what_the_operator_says_of_quadrature(trained):
    new = cavities(256, 3)
    exact, said = ep.extending.ask(LABEL, new), trained.predict((new,))
    beliefs, predicted = new * exact.messages[0], new * said.messages[0]
    assert np.quantile(beliefs.kl(predicted), 0.99) < 1e-4
    assert (np.sqrt((trained.scores((new,), exact) ** 2).mean(0)) < 1).all()
    assert np.sqrt(((said.log_normaliser - exact.log_normaliser) ** 2).mean()) < 0.02
    # What is said of beliefs holds for them too: 2 KL is below the square of the doubt on average.
    doubt = trained.doubt((new,), said)
    assert 2 * beliefs.kl(predicted).mean() < (doubt**2).mean()


def test_derivatives_of_log_z_are_learned_better_than_tilted_moments():
    came, new = cavities(256, 4, low=0.01), cavities(256, 5, low=0.01)
    answer, exact = ep.extending.ask(LABEL, came), ep.extending.ask(LABEL, new)
    errors = {}
    for target in ("derivatives", "tilted moments"):
        operator = MessageOperator(SMALL, target).learn((came,), answer)
        tau = operator.predict((new,)).messages[0].precision
        errors[target] = np.median(abs(tau / exact.messages[0].precision - 1))
    assert errors["derivatives"] < 0.02
    assert errors["tilted moments"] > 10 * errors["derivatives"]


def test_what_is_learned_in_parts_is_what_is_learned_at_once(trained):
    came, new = cavities(300, 6), cavities(50, 7)
    answer = ep.extending.ask(LABEL, came)
    recorded = Recorded.of((came,), answer)
    parts = MessageOperator(SMALL).learn_recorded(recorded[:256])
    fixed: Any = parts.regression
    target: Any = parts.target
    for start in range(256, 300, 4):
        parts = parts.learn_recorded(recorded[start : start + 4])
    numbers = target.table(recorded)
    whole = fixed.features, (numbers - parts.centre) / parts.scale
    dense = _dense(whole[0]((came,)), whole[1], fixed.noise, whole[0]((new,)))
    said = parts.regression.predict((new,))
    np.testing.assert_allclose(said.mean, dense[0], atol=1e-8)
    np.testing.assert_allclose(said.novelty * fixed.noise, dense[1], atol=1e-9)


def _dense(phi, y, noise, new):
    inverse = np.linalg.inv(phi.T @ phi / noise + np.eye(phi.shape[1]))
    return new @ inverse @ phi.T @ y / noise, np.einsum("nd,de,ne->n", new, inverse, new)


def test_a_batch_is_chosen_so_that_none_is_left_in_doubt(trained):
    far = ep.Normal(np.linspace(6, 12, 60), 0.5)
    before = trained.predict((far,)).novelty
    chosen = trained.regression.choose((far,), 0.5)
    assert before.min() > 0.5
    assert 0 < len(chosen) < 30
    after = trained.learn((far[chosen],), ep.extending.ask(LABEL, far[chosen])).predict((far,)).novelty
    assert after[np.setdiff1d(np.arange(60), chosen)].max() <= 0.5 + 1e-6


def test_more_is_doubted_where_left_out_errors_are_larger():
    """Numbers with noise of .5 where the mean is above 2, in a tenth of all messages, and hardly any elsewhere."""
    rng = np.random.default_rng(5)
    mean = np.where(rng.random(256) < 0.1, rng.uniform(2, 3, 256), rng.uniform(-3, 1.5, 256))
    noise = np.where(mean > 2, 0.5, 1e-3)
    came = ep.Normal(mean, 0.3)
    learned = SMALL.fit((came,), (np.sin(mean) + noise * rng.normal(size=256))[:, None])
    at = np.repeat([-1.0, 2.5], 500)
    found = learned.predict((ep.Normal(at, 0.3),))
    z = (np.sin(at) + np.where(at > 2, 0.5, 1e-3) * rng.normal(size=1000) - found.mean[:, 0]) / found.deviation[:, 0]
    assert 0.5 < np.sqrt(np.mean(z[500:] ** 2)) < 1.5  # one number for all promises a third of it there
    # Nowhere less than the average of what was left out.
    assert found.deviation[0, 0] >= 0.01 * np.sqrt(learned.excess.mean())


def test_pivots_leave_no_variance_above_the_limit():
    rng = np.random.default_rng(8)
    root = rng.normal(size=(40, 5))
    shared, noise, limit = root @ root.T, 0.1, 0.2
    picked = newest(shared, noise, limit)
    cross = shared[:, picked]
    left = shared - cross @ np.linalg.solve(shared[np.ix_(picked, picked)] + noise * np.eye(len(picked)), cross.T)
    rest = np.setdiff1d(np.arange(40), picked)
    assert left.diagonal()[rest].max() <= limit
    assert len(picked) < 15


def test_doubt_grows_away_from_what_was_learned(trained):
    away = ep.Normal(np.linspace(5, 9, 8), 1.0)  # and from there it is that of the prior
    kernel = trained.predict((away,)).novelty
    assert (np.diff(kernel) > 0).all()
    assert kernel[-1] > 100 * kernel[0]


@pytest.mark.parametrize("kernel", ["embedding", "mean and variance"])
def test_lengthscales_by_marginal_likelihood_are_those_of_the_dense_formula(kernel):
    came = cavities(40, 16)
    numbers = np.random.default_rng(16).normal(size=(40, 2))
    found = {
        tune: KernelRegression(kernel, d_in=20, d_out=40, tune=tune).fit((came,), numbers)
        for tune in ("marginal likelihood", "leave-one-out", None)
    }

    def evidence(fitted):
        phi = fitted.features((came,))
        gram = phi @ phi.T + fitted.noise * np.eye(40)
        quadratic = np.einsum("nq,nm,mq->", numbers, np.linalg.inv(gram), numbers)
        return -(2 * np.linalg.slogdet(2 * np.pi * gram)[1] + quadratic) / 2

    best: Any = found["marginal likelihood"]
    assert float(best.posterior.log_marginal_likelihood()) == pytest.approx(evidence(best), rel=1e-6)
    assert evidence(best) >= max(evidence(found["leave-one-out"]), evidence(found[None]))
    assert evidence(best) > evidence(found[None])  # something else than the median was chosen


def test_a_few_messages_far_from_all_others_do_not_choose_the_lengthscale():
    """Their left-out errors are the largest, and smaller the wider a kernel is, whatever it does for all others."""
    rng = np.random.default_rng(21)

    def drawn(n, far):
        mean = np.concatenate([rng.uniform(-2, 2, n), far])
        return ep.Normal(mean, np.full(len(mean), 0.02)), (mean + 0.3 * np.sin(15 * mean))[:, None]

    came, numbers = drawn(250, [-9.0, -6.0, 6.0, 9.0])
    new, truth = drawn(100, [])
    found = {
        tune: KernelRegression(d_in=60, d_out=120, tune=tune).fit((came,), numbers).predict((new,)).mean
        for tune in ("leave-one-out", None)
    }
    chosen, widest = (np.median(abs(found[tune] - truth)) for tune in ("leave-one-out", None))
    assert chosen < widest / 10


def test_the_surprise_of_left_out_numbers_is_that_of_the_normal_density():
    rng = np.random.default_rng(22)
    stated, z = rng.uniform(0.1, 2, 50), rng.normal(size=(50, 2))
    errors = np.sqrt(stated)[:, None] * z * np.array([3.0, 0.5])
    scale = np.maximum((errors**2 / stated[:, None]).mean(0), 1.0)
    density = -0.5 * (np.log(2 * np.pi * stated[:, None] * scale) + errors**2 / (stated[:, None] * scale))
    expected = -2 * density.sum() / 50 - 2 * np.log(2 * np.pi)
    assert surprise(errors**2, stated) == pytest.approx(expected)


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param("product of embeddings", marks=pytest.mark.slow),
        pytest.param("sum of embeddings", marks=pytest.mark.slow),
        pytest.param("expected product", marks=pytest.mark.slow),
        pytest.param("mean and variance", marks=pytest.mark.slow),
    ],
)
def test_every_kernel_of_the_draft_can_be_chosen(kernel):
    rng = np.random.default_rng(11)
    came, labels = cavities(256, 12), rng.integers(0, 2, 256)
    to_p = ep.Beta(1.0 + labels, 2.0 - labels)
    answer = ep.extending.ask(SIGMOID, came, to_p)
    operator = MessageOperator(KernelRegression(kernel)).learn((came, to_p), answer)
    alpha = Derivatives().of(came, answer.messages[0])[:, 0]
    said = operator.predict((came, to_p)).numbers[:, 0]
    assert np.corrcoef(alpha, said)[0, 1] > 0.98


def test_merged_operators_have_learned_what_both_have():
    came, new = cavities(256, 13), cavities(40, 14)
    recorded = Recorded.of((came,), ep.extending.ask(LABEL, came))
    one, two = (MessageOperator(SMALL).learn_recorded(part) for part in (recorded[:128], recorded[128:]))
    both = MessageOperator(SMALL).learn_recorded(recorded)
    merged, expected = one.merge(two).predict((new,)), both.predict((new,))
    np.testing.assert_allclose(merged.numbers, expected.numbers, atol=1e-9)
    np.testing.assert_allclose(merged.deviation, expected.deviation, rtol=1e-6)
    with pytest.raises(InputError, match=r"has seed 1; expected 0"):
        one.merge(MessageOperator(replace(SMALL, seed=1)))
    with pytest.raises(KindError, match="expected a MessageOperator"):
        one.merge("both")  # pyright: ignore[reportArgumentType]
    gamma = ep.Gamma(*np.random.default_rng(0).uniform(1, 9, (2, 64)))
    other = MessageOperator(SMALL).learn((gamma,), ep.extending.ask(ep.Density(log_compound, T), gamma))
    with pytest.raises(KindError, match="of Gamma do not continue those into one of Normal"):
        one.merge(other)


def test_what_cannot_be_learned_is_said(trained):
    with pytest.raises(EmptyError, match=r"learned nothing yet: type operator\.learn"):
        MessageOperator().predict((cavities(3, 0),))
    with pytest.raises(KindError, match="trained on messages of Normal; got Beta"):
        trained.predict((ep.Beta([1.0], [2.0]),))
    with pytest.raises(ParameterError, match="did you mean 'tilted moments'"):
        MessageOperator(target="moments")
    with pytest.raises(ParameterError, match="expected one of 'embedding'"):
        KernelRegression("rbf")
    with pytest.raises(ParameterError, match="expected one of 'leave-one-out', 'marginal likelihood', None"):
        KernelRegression(tune="evidence")
    came = cavities(20, 0)
    same = ep.extending.Answer((ep.Normal.from_natural(np.zeros(20), np.zeros(20)),), np.full(20, np.nan))
    with pytest.raises(InputError, match="all 20 answers are the same: there is nothing to learn"):
        MessageOperator().learn((came,), same)
    vague = ep.extending.Answer((ep.Normal.from_natural(np.zeros(20), -2 * came.precision),), np.full(20, np.nan))
    with pytest.raises(InputError, match="none of 20 answers can be learned from"):
        MessageOperator(target="tilted moments").learn((came,), vague)
