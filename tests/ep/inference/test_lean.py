"""What errors that messages share add up to: beside linear regression written out, and in whole runs."""

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.doubt import Lean
from meanmap.ep.learned import KernelRegression, MessageOperator
from meanmap.ep.learned.just_in_time import _Sample
from meanmap.ep.learned.regression import Estimate


def problem(n=64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(2)), ep.Variable("z", ep.Normal, plate=n)
    labels = (rng.random(n) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).astype(int)
    return X, ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=labels))


class Wrong(ep.extending.HostOracle):
    """Means that are off while sweeps go, and right at the end; it keeps what it was told and what it said."""

    predicts = True

    def __init__(self):
        self.told, self.said = [], {}

    def answer(self, questions):
        exact = questions.ask(ep.Quadrature())
        if questions.sweep is None:
            self.said["end"] = exact.messages[0]
            return exact
        message = exact.messages[0]
        message = ep.Normal.from_natural(message.precision_mean + 0.02 * np.cos(questions.members), message.precision)
        self.said["sweeps"] = message
        return ep.extending.Answer((message, None), exact.log_normaliser)

    def accepts(self, factor, lean):
        self.told.append(lean)
        return len(self.told) > 1


def regression(X, message):
    precision = np.eye(2) + X.T @ (np.asarray(message.precision)[:, None] * X)
    return ep.MultivariateNormal(np.linalg.solve(precision, X.T @ message.precision_mean), np.linalg.inv(precision))


def test_the_move_is_that_of_linear_regression_with_the_messages_of_the_end():
    (X, model), oracle = problem(), Wrong()
    post = ep.infer(model, messages=oracle)
    before, end = oracle.said["sweeps"], oracle.said["end"]

    def moved(chosen):
        mixed = ep.Normal.from_natural(*(np.where(chosen, b, a) for a, b in zip(before.natural, end.natural)))  # noqa: B905
        return np.sqrt(2 * regression(X, mixed).kl(regression(X, before)))

    assert float(post["w"].kl(regression(X, before))) < 1e-8
    (whole,), (error,) = oracle.told[-1]
    assert whole == pytest.approx(moved(np.ones(64, bool)), rel=1e-4)
    members = np.arange(64)
    parts = np.array([moved((members + 1) % 8 == group) for group in range(8)])
    assert error == pytest.approx(np.sqrt(8 / 7 * ((parts**2).sum() - whole**2 / 8)), rel=1e-3)
    # A run that was not accepted goes on from where it stands.
    assert len(oracle.told) == 2
    assert post.report.converged


class Leaning(KernelRegression):
    """Sure of itself, and always off to one side."""

    def predict(self, incoming):
        mean, deviation, novelty = super().predict(incoming)
        return Estimate(mean + np.array([0.2, 0.0, 0.0]), deviation, 0 * novelty)


def leaning():
    return MessageOperator(Leaning(d_in=100, d_out=200, tune=None))


def test_predictions_that_lean_whatever_is_learned_are_given_up():
    _, model = problem()
    learned = ep.Learned(ep.Quadrature(), initial=20, audit=1e-9, operator=leaning())
    exact, post = ep.infer(model), ep.infer(model, messages=learned, rng=0)
    assert post.report.converged
    assert float(exact["w"].kl(post["w"])) < 1e-8
    assert post.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    diary = learned.diary("Logistic(z)")
    # Samples of 10, 20 and 40, and the whole plate twice.
    assert (diary.looks, diary.whole_looks, diary.evidence_error) == (5, 2, 0)
    assert any("predictions stayed biased whatever was learned" in note for note in post.report.notes)


class Noisy(ep.extending.HostOracle):
    """Exact messages with noise that depends on the keys alone, as that of samplers does; it keeps the keys."""

    def __init__(self, noise):
        self.noise, self.keys = noise, []

    def answer(self, questions):
        exact, drawn = questions.ask(ep.Quadrature()), [np.random.default_rng(key).normal() for key in questions.keys]
        message = exact.messages[0]
        moved = ep.Normal.from_natural(message.precision_mean + self.noise * np.array(drawn), message.precision)
        self.keys.append((questions.sweep, questions.members, questions.keys))
        return ep.extending.Answer((moved, None), exact.log_normaliser, doubt=np.full(len(drawn), self.noise))


def test_noise_of_the_oracle_is_no_bias_of_predictions():
    """One draw served all sweeps and all checks: where it was off by more than two errors, every check said so."""
    _, model = problem()
    operator, exact = MessageOperator(KernelRegression(d_in=100, d_out=200, tune=None)), ep.infer(model)
    gave_up = 0
    learned = ep.Learned(Noisy(0.1), initial=60, operator=operator)
    for seed in range(6):
        post = ep.infer(model, learned, rng=seed)
        diary = learned.diary("Logistic(z)")
        gave_up += bool(diary.gave_up)
        assert float(exact["w"].kl(post["w"])) < 0.1
    assert gave_up == 0
    checks = [keys for sweep, _, keys in learned.oracle.keys if sweep is None]
    swept = np.concatenate([keys for sweep, _, keys in learned.oracle.keys if sweep is not None])
    assert not (np.concatenate(checks)[:, None] == swept).all(2).any()


def test_two_checks_beyond_three_errors_or_four_beyond_two_give_up():
    _, model = problem()
    factor = next(each for each in model.factors if each.name == "Logistic(z)")
    for errors, looks in ((5.0, 2), (2.5, 4)):
        learned = ep.Learned(Noisy(0.1), initial=20, operator=MessageOperator(KernelRegression(d_in=20, d_out=40)))
        learned.check(factor)
        came, accepted = (ep.Normal(np.linspace(-1, 1, 64), 1.0), np.ones(64)), []
        asked = [ep.extending.Questions.of(factor, came, 1.0, jax.random.key(0), at) for at in range(3)]
        for each in asked:
            learned.answer(each)
        while not learned.diary(factor.name).gave_up:
            exact = asked[0].ask(ep.ImportanceSampling(100))
            learned._samples[factor.name] = _Sample(asked[0], exact, 64)
            accepted.append(learned.accepts(factor, Lean(np.array([0.1 * errors]), np.array([0.1]))))
        assert accepted == [False] * looks


def test_without_audits_the_report_says_what_predictions_lead_to():
    _, model = problem()
    learned = ep.Learned(ep.Quadrature(), initial=128, audit=0.0, operator=leaning())
    off = float(np.sqrt(2 * ep.infer(model)["w"].kl(ep.infer(model, messages=learned, rng=0)["w"])))
    diary = learned.diary("Logistic(z)")
    assert diary.sampled == 64
    assert 0.1 < off == pytest.approx(diary.lean.most, rel=0.2)
    assert f"moves beliefs by {diary.lean.most:.2g} standard deviations, as 64 answers show" in diary.notes()[0]


def test_doubts_of_samples_add_up_to_what_the_joint_belief_is_off_by():
    # The largest doubt was .06, below what is worth a note, while w ended .4 standard deviations away.
    _, model = problem()
    oracle = ep.ImportanceSampling(1000, paired=False)
    exact, post = ep.infer(model), ep.infer(model, messages=oracle, rng=0)
    assert post.report.converged
    doubt = post.doubt["Logistic(z)"]
    total = np.sqrt((doubt**2).sum())
    assert doubt.max() < 0.1 < total
    assert total / 3 < np.sqrt(2 * exact["w"].kl(post["w"])) < 3 * total
    (note,) = [note for note in post.report.notes if "add up" in note]
    assert f"errors of its 64 messages, if independent, may add up to {total:.2g} standard deviations" in note
    # Members that share nothing have nothing to add up.
    z = ep.Variable("z", ep.Normal(np.zeros(64), 1.0))
    alone = ep.FactorGraph(ep.Logistic(z, observed=np.ones(64)))
    assert not any("add up" in note for note in ep.infer(alone, messages=oracle, rng=0).report.notes)


def test_a_sample_stands_for_its_plate():
    lean = Lean(np.array([0.01, 0.02]), np.array([0.004, 0.03]))
    assert not lean.matters(0.05)
    many = lean.times(10.0)
    np.testing.assert_allclose(many, [[0.1, 0.2], [0.04, 0.3]])
    assert many.matters(0.05)  # .1 beyond twice .04
    assert not many.matters(0.15)  # .2 is within twice .3
    assert Lean(np.array([np.inf]), np.array([np.nan])).matters(0.05)
    assert not Lean(np.zeros(0), np.zeros(0)).matters(0.05)


class Astray(ep.extending.HostOracle):
    """Predictions with which sweeps do not come to rest, until it is told so."""

    predicts = True

    def __init__(self, moved):
        self.moved, self.told = moved, 0

    def answer(self, questions):
        exact = questions.ask(ep.Quadrature())
        if self.told or questions.sweep is None:
            return exact
        message = exact.messages[0]
        moved = self.moved(message.precision_mean, message.precision, questions.sweep)
        return ep.extending.Answer((ep.Normal.from_natural(*moved), None), exact.log_normaliser)

    def stop_predicting(self, factor):
        assert factor.name == "Logistic(z)"
        self.told += 1
        return self.told == 1


@pytest.mark.parametrize(
    ("moved", "starts"),
    [
        (lambda first, precision, sweep: (first, precision - 10), "the run restarted after sweep"),
        (lambda first, precision, sweep: (first + 0.1 * 0.98**sweep, precision), ""),
    ],
)
def test_a_run_that_predictions_keep_from_coming_to_rest_asks_about_everything(moved, starts):
    _, model = problem()
    oracle = Astray(moved)
    exact, post = ep.infer(model), ep.infer(model, messages=oracle)
    assert (post.report.converged, oracle.told) == (True, 1)
    assert float(exact["w"].kl(post["w"])) < 1e-10
    assert post.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    assert bool(starts) == any("restarted" in note for note in post.report.notes)
    assert starts in " ".join(post.report.notes)


def test_learned_messages_are_asked_once_sweeps_are_known_not_to_come_to_rest():
    class Restless(Leaning):
        def predict(self, incoming):
            mean, deviation, novelty = super().predict(incoming)
            return Estimate(mean - np.array([0, 10, 0]), deviation, 0 * novelty)

    _, model = problem()
    learned = ep.Learned(
        ep.Quadrature(), initial=20, operator=MessageOperator(Restless(d_in=100, d_out=200, tune=None))
    )
    exact, post = ep.infer(model), ep.infer(model, messages=learned, rng=0)
    assert post.report.converged
    assert float(exact["w"].kl(post["w"])) < 1e-10
    (note,) = [note for note in post.report.notes if "from then on the oracle answered all messages" in note]
    assert "sweeps with predictions did not converge" in note
    # What is asked already cannot be given up again.
    assert not learned.stop_predicting(model.factors[1])
