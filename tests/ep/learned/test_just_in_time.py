"""Learned messages inside expectation propagation: right, sparing, honest about themselves."""

import os
import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.core import InputError, KindError, ParameterError
from meanmap.ep.factor import replaced
from meanmap.ep.learned import KernelRegression, MessageOperator
from meanmap.ep.learned.diary import Diary


def classification(seed, n=200, d=5):
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=d), rng.normal(size=(n, d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ w))).astype(int)


def model_of(X, y):
    w = ep.Variable("w", ep.MultivariateNormal.standard(X.shape[1]))
    z = ep.Variable("z", ep.Normal, plate=len(y))
    return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y))


NAME = "Logistic(z)"
# Few features, so that a test takes a moment.
SMALL = MessageOperator(KernelRegression(d_in=100, d_out=200, tune=None))


@pytest.mark.parametrize("factor", [ep.Density, ep.BlackBox])
def test_a_factor_may_name_it_as_its_own_oracle(factor):
    """It asked itself for an oracle, without end."""
    learned = ep.Learned(ep.Quadrature(), initial=20)
    theta, outcome = ep.Variable("theta", ep.Normal.standard()), ep.Variable("outcome", ep.Normal)
    if factor is ep.Density:
        made = ep.Density(lambda t: -0.5 * (t - 1.0) ** 2, theta, oracle=learned)
    else:
        made = ep.BlackBox(lambda t: 2.0 * t, theta, outcome, oracle=learned)
    assert made.oracle is learned
    model = ep.FactorGraph(made)
    assert (
        float(ep.infer(model, rng=0)["theta"].kl(ep.infer(ep.FactorGraph(replaced(made, oracle=None)))["theta"])) < 1e-6
    )


@pytest.mark.slow
def test_a_second_problem_asks_less_and_both_end_where_quadrature_ends():
    learned, asked = ep.Learned(ep.Quadrature(), initial=100, operator=SMALL), []
    for seed in (1, 2):
        model = model_of(*classification(seed, n=128, d=3))
        exact, post = ep.infer(model), ep.infer(model, messages=learned, rng=0)
        assert post.report.converged
        assert float(exact["w"].kl(post["w"])) < 1e-3
        assert post.log_evidence == pytest.approx(exact.log_evidence, abs=0.5)
        asked.append(post.report.counts[f"{NAME}: asked of the oracle"])
        assert "learning did not pay" in " ".join(post.report.notes)  # quadrature is quicker than any learning
        assert post.doubt[NAME].max() < 0.2
        # The next one starts from what this one has learned.
        factor = model.factors[1]
        learned = ep.Learned(initial=100, operator=SMALL).reuse(factor, learned.trained(factor))
    assert asked[1] < 0.75 * asked[0]
    with pytest.raises(KindError, match="expected a trained"):
        learned.reuse(factor, MessageOperator())
    counts = ep.Density(lambda t: -t, ep.Variable("t", ep.Gamma), name="decay")
    with pytest.raises(KindError, match=r"trained on messages of Normal, given; decay has Gamma"):
        ep.Learned().reuse(counts, learned.trained(factor))
    with pytest.raises(ParameterError, match="nothing was learned for"):
        ep.Learned().trained(factor)
    with pytest.raises(ParameterError, match="factor 'other' was not learned; known are"):
        learned.diary("other")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["synthetic", "uci"])
def test_four_problems_in_sequence_end_where_quadrature_ends(which):
    from meanmap_papers.messages.problems import four_synthetic, four_uci

    if which == "uci" and "MEANMAP_DATA" not in os.environ:
        pytest.skip("the UCI sets are not here: MEANMAP_DATA names no folder")
    learned, asked, calls, scores = ep.Learned(ep.Quadrature()), 0, 0, []
    for X, y, *_ in four_synthetic(11) if which == "synthetic" else four_uci():
        model = model_of(X, y)
        exact, post = ep.infer(model), ep.infer(model, messages=learned, rng=0)
        assert post.report.converged
        assert float(exact["w"].kl(post["w"])) < 1e-3
        asked += post.report.counts[f"{NAME}: asked of the oracle"]
        calls += len(y) * (exact.report.steps + 1)
        scores += learned.diary(NAME).scores
    # Of the calls that quadrature needs; and the audits of all problems together.
    assert asked < 0.15 * calls
    assert np.sqrt((np.stack(scores) ** 2).mean(0)).max() < 1


@pytest.mark.slow
def test_errors_of_student_noise_do_not_add_up_from_scale_to_scale():
    # The third scale ended .098 standard deviations away, with a doubt of .008 for each message.
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150, [2, 3, 8]], y[:150]
    rows = np.column_stack([np.ones(150), (X - X.mean(0)) / X.std(0)])
    scaled = (y - np.median(y)) / (1.4826 * np.median(np.abs(y - np.median(y))))
    learned = ep.Learned(ep.Quadrature())
    for log_scale in (-0.5, -0.4, -0.3):
        w = ep.Variable("w", ep.MultivariateNormal(np.zeros(4), np.diag([100.0, 6.25, 6.25, 6.25])))
        z = ep.Variable("z", ep.Normal, plate=150)
        noise = ep.Density(_student, z, scaled, np.full(150, np.exp(log_scale)))
        model = ep.FactorGraph(ep.Dot(rows, w, z), noise)
        exact, post = ep.infer(model), ep.infer(model, learned, rng=0)
        assert post.report.converged
        assert (np.abs(post["w"].mean() - exact["w"].mean()) / exact["w"].sd()).max() < 0.06
        assert post.log_evidence == pytest.approx(exact.log_evidence, abs=2e-3)
        lean = learned.diary("_student(z)").lean
        assert lean is None or lean.most <= 0.05


def _student(z, y, scale):
    return -jax.numpy.log(scale) - 2.5 * jax.numpy.log1p(((y - z) / scale) ** 2 / 4)


@pytest.mark.slow
def test_the_first_batch_is_drawn_over_two_sweeps_the_same_for_the_same_seed():
    seen = []

    class Watching(ep.extending.HostOracle):
        def answer(self, questions):
            seen.append((questions.sweep, len(questions)))
            return questions.ask(ep.Quadrature())

    model = model_of(*classification(1, n=128, d=3))
    one, two = (
        ep.infer(model, messages=ep.Learned(Watching(), initial=100, audit=0, operator=SMALL), rng=5, sweeps=3)
        for _ in range(2)
    )
    assert seen[:2] == [(0, 50), (1, 50)]
    np.testing.assert_array_equal(one["w"].mean(), two["w"].mean())
    assert one.report.counts == two.report.counts


@pytest.mark.slow
@pytest.mark.parametrize("refresh", [False, True])
def test_a_drift_away_from_what_was_learned_is_asked_about(refresh):
    # Widths set on wide cavities cannot tell narrow ones apart: all of these were predicted, and wrong.
    rng = np.random.default_rng(0)
    factor = ep.Density(_wiggle, ep.Variable("z", ep.Normal))
    wide = ep.Normal(rng.normal(size=400), rng.uniform(20, 40, 400))
    narrow = ep.Normal(rng.normal(size=400), rng.uniform(0.05, 0.1, 400))
    regression = KernelRegression(widths="within", tune=None)
    learned = ep.Learned(ep.Quadrature(), refresh=refresh, audit=0.05, operator=MessageOperator(regression))
    learned.check(factor)
    answers = [
        learned.answer(ep.extending.Questions.of(factor, (came,), 1.0, jax.random.key(sweep), sweep))
        for sweep, came in enumerate((wide, wide, wide, *[narrow] * 6))
    ]
    exact, diary = ep.extending.ask(factor, narrow), learned.diary(factor.name)
    assert np.quantile((narrow * exact.messages[0]).kl(narrow * answers[-1].messages[0]), 0.9) < 1e-3
    assert diary.sweeps[3][:2] == (400, 400)
    assert diary.outside >= 400
    assert ("messages left the range" in diary.reasons) == refresh
    assert diary.z.max() < 2


def _wiggle(z):
    return -0.5 * jax.numpy.log1p(z**2) + 0.3 * jax.numpy.sin(3 * z)


def test_failed_audits_lower_the_threshold_and_are_told():
    diary = Diary()
    diary.compare(np.full((12, 2), 3.0))
    assert diary.recent_audits() == 12
    assert diary.recent_score() == pytest.approx(3.0)
    assert "12 audits: errors were 3, 3 times the stated ones (root mean square, of each number" in diary.notes()[0]
    assert diary.notes()[0].endswith("; do not trust the stated ones")
    diary.refreshed("audits failed")
    assert diary.recent_audits() == 0


def test_the_report_says_when_learning_does_not_pay():
    diary = Diary()
    diary.asking, diary.predicted = 1e-5, 1000
    diary.seconds["predicting"] = 0.1
    assert "learning did not pay: the oracle takes 0.01 ms per message" in diary.notes()[0]
    diary.asking = 1e-2
    assert diary.notes() == ()


def test_messages_that_are_no_laws_go_to_the_oracle():
    # Nothing is known yet about t: what comes in from it is flat, and has no embedding.
    factor = ep.BlackBox(jax.numpy.exp, ep.Variable("z", ep.Normal), ep.Variable("t", ep.Gamma))
    incoming = ep.Normal(np.linspace(-1, 1, 16), 1.0), ep.Gamma.flat((16,))
    learned = ep.Learned(ep.Quadrature(), initial=20)
    learned.check(factor)
    questions = [ep.extending.Questions.of(factor, incoming, 1.0, jax.random.key(0), sweep) for sweep in range(3)]
    answer = [learned.answer(each) for each in questions][-1]
    exact = ep.extending.ask(factor, *incoming)
    np.testing.assert_allclose(answer.messages[1].natural, exact.messages[1].natural, rtol=1e-9)
    assert learned.counts(factor)["predicted"] == 0
    assert learned.counts(factor)["asked of the oracle"] == 3 * 16


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 0}, ParameterError, "the oracle would always be asked"),
        ({"threshold": -9}, ParameterError, r"The limit −9 of the papers is .234 \(ep\.Learned\.published"),
        ({"initial": 3}, ParameterError, "initial"),
        ({"audit": 2}, ParameterError, "between 0 and 1"),
        ({"operator": "kernel"}, KindError, "expected an ep.learned.MessageOperator"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ep.Learned(**arguments)


class Votes(ep.Dirichlet):
    """A family that nobody taught a target."""


def test_families_that_are_not_learned_are_refused_before_the_run():
    p, z = ep.Variable("p", Votes.standard(3)), ep.Variable("z", ep.Normal(0.0, 1.0))
    votes, label = ep.Density(lambda p: jax.numpy.log(p[0]), p, name="votes"), ep.Logistic(z, observed=1, name="label")
    refused = r"votes has 'p', a Votes; expected numbers, normal vectors or a Dirichlet: other messages are not learned"
    with pytest.raises(KindError, match=refused) as error:
        ep.infer(ep.FactorGraph(votes, label), messages=ep.Learned())
    # What it says to type is an answer: one vote for the first of three.
    (typed,) = re.findall(r"Type messages=({.*?});", str(error.value))
    messages = eval(typed, {"ep": ep}) | {"label": ep.Learned()}
    post = ep.infer(ep.FactorGraph(votes, label), messages=messages, rng=0)
    np.testing.assert_allclose(post["p"].mean(), [0.5, 0.25, 0.25], atol=0.01)


def label(n):
    rng = np.random.default_rng(0)
    return ep.Logistic(ep.Variable("z", ep.Normal, plate=n), observed=np.ones(n)), rng


def test_messages_far_from_those_that_were_answered_are_asked():
    # To a kernel all wide laws look alike, so that nothing far away is new to it.
    factor, rng = label(200)
    came = ep.Normal(3 * rng.normal(size=200), np.exp(rng.normal(size=200)))
    operator = ep.learned.MessageOperator().learn((came, np.ones(200)), ep.extending.ask(factor, came))
    learned = ep.Learned(initial=20, audit=0.0, refresh=False).reuse(factor, operator)
    learned.check(factor)
    far = ep.Normal([0.0, -5000.0, -500.0, 0.0], [1.0, 1e6, 1e6, 1e7])
    answer = learned.answer(ep.extending.Questions.of(factor, (far, np.ones(4)), 1.0, jax.random.key(0), 0))
    assert operator.beyond((far, np.ones(4))).tolist() == [False, True, True, True]
    exact = ep.extending.ask(ep.Logistic(ep.Variable("z", ep.Normal), observed=1), far[1:])
    np.testing.assert_allclose(answer.log_normaliser[1:], exact.log_normaliser, rtol=1e-6)
    assert learned.diary(factor.name).asked == 3
    # The report says so, and so does the answer of the operator itself.
    assert learned.counts(factor)["asked outside the range that was learned"] == 3
    (note, *_) = learned.notes(factor)
    assert note.startswith("3 messages lay outside the range that the reused operator was trained on (z, mean -")
    said = operator.predict((far, np.ones(4)))
    assert np.isinf(operator.doubt((far, np.ones(4)), said)).tolist() == said.outside.tolist() == [False] + [True] * 3


def test_an_error_that_all_predictions_share_is_taken_out_of_the_evidence():
    factor, rng = label(200)
    came = ep.Normal(rng.normal(size=200), np.ones(200))
    learned, diary = ep.Learned(ep.Quadrature(), initial=60), Diary()
    learned.check(factor)
    questions = ep.extending.Questions.of(factor, (came, np.ones(200)), 1.0, jax.random.key(0), None)
    exact = questions.ask(ep.Quadrature())
    off = replace(exact, log_normaliser=exact.log_normaliser + 0.01 + 0.001 * rng.normal(size=200))
    answer = learned._with_sample(questions, off, np.zeros(200, bool), diary)
    error = answer.log_normaliser.sum() - exact.log_normaliser.sum()
    assert abs(error) < 4 * diary.evidence_error < 0.25  # uncorrected it is 2
    assert any("predictions were corrected by 30 answers, which leaves a standard error" in n for n in diary.notes())


def test_nothing_is_audited_before_the_first_batch_is_learned():
    factor, rng = label(40)
    learned = ep.Learned(ep.Quadrature(), initial=60, audit=1.0)
    learned.check(factor)
    for sweep in range(2):
        came = ep.Normal(rng.normal(size=40), np.ones(40))
        learned.answer(ep.extending.Questions.of(factor, (came, np.ones(40)), 1.0, jax.random.key(0), sweep))
    assert learned.diary(factor.name).audited == 0


def test_answers_that_their_oracle_doubts_are_neither_learned_nor_audited():
    """Of one sampled point a precision was 10²³, and audits had an rms z of as much; all messages were asked then."""

    class Sampled(ep.extending.HostOracle):
        def answer(self, questions):
            exact, bad = questions.ask(ep.Quadrature()), questions.members % 10 == 0
            message = exact.messages[0]
            message = ep.Normal.from_natural(message.precision_mean, np.where(bad, 1e23, message.precision))
            doubt = np.where(bad, 0.98, 1e-3)
            return ep.extending.Answer((message, None), exact.log_normaliser, doubt=doubt)

    factor, rng = label(200)
    learned = ep.Learned(Sampled(), initial=60, audit=1.0, operator=SMALL)
    learned.check(factor)
    for sweep in range(5):
        came = ep.Normal(rng.normal(size=200), rng.uniform(0.5, 2, 200)), np.ones(200)
        learned.answer(ep.extending.Questions.of(factor, came, 1.0, jax.random.key(0), sweep))
    diary = learned.diary(factor.name)
    assert diary.audited > 100
    assert diary.z.max() < 2
    assert not diary.gave_up
    assert (learned.trained(factor).seen.messages[0].precision < 1e3).all()


def test_counters_and_memos_make_no_new_learner_and_other_data_do():
    data, known = {"centre": 1.0}, {}
    calls = 0

    def density(z):
        nonlocal calls
        calls += 1
        known[float(z)] = calls
        return -((float(z) - data["centre"]) ** 2)

    learned = ep.Learned(ep.Quadrature(), initial=20)
    z = ep.Variable("z", ep.Normal(np.linspace(-1.0, 1.0, 12), 1.0))
    model = ep.FactorGraph(ep.Density(density, z, name="d"))
    for centre, learners in ((1.0, 1), (1.0, 1), (3.0, 2), (3.0, 2)):
        data["centre"] = centre
        post = ep.infer(model, learned, rng=0)
        np.testing.assert_allclose(post["z"].mean(), (np.linspace(-1, 1, 12) + 2 * centre) / 3, atol=1e-2)
        assert len(learned._learners) == learners
    assert learned.trained(model.factors[0]).fitted


def test_what_no_look_at_the_code_shows_is_seen_in_its_values(tmp_path):
    path, means = tmp_path / "centre", np.linspace(-1, 1, 12)

    def density(z):
        return -((float(z) - float(path.read_text())) ** 2)

    learned = ep.Learned(ep.Quadrature(), initial=20)
    model = ep.FactorGraph(ep.Density(density, ep.Variable("z", ep.Normal(means, 1.0)), name="d"))
    for centre, learners in ((1.0, 1), (3.0, 2), (1.0, 2)):
        path.write_text(str(centre))
        post = ep.infer(model, learned, rng=0)
        np.testing.assert_allclose(post["z"].mean(), (means + 2 * centre) / 3, atol=1e-2)
        assert len(learned._learners) == learners


def test_answers_of_which_nothing_can_be_learned_are_asked_for():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=24)
    model = ep.FactorGraph(ep.Logistic(z, observed=np.ones(24, int)))
    post = ep.infer(model, ep.Learned(ep.Quadrature(), initial=20), rng=0)
    assert post.report.converged
    np.testing.assert_allclose(post["z"].mean(), ep.infer(model)["z"].mean(), rtol=1e-9)
    assert any(
        "answers are the same: from then on the oracle answered all messages" in note for note in post.report.notes
    )


def test_one_question_that_comes_again_in_every_run_is_no_error():
    learned, shift = ep.Learned(ep.Quadrature(), initial=20), {"by": 0.0}
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    box = ep.BlackBox(lambda z: float(z) + shift["by"], z, x, name="f")
    model = ep.FactorGraph(box, ep.Gaussian(x, precision=4.0, observed=2.0))
    for by, mean in ((0.0, 1.6), (1.0, 0.8), (0.0, 1.6)):
        shift["by"] = by
        assert ep.infer(model, learned, rng=0)["z"].mean() == pytest.approx(mean, abs=1e-6)


def test_what_gave_up_stands_aside_until_it_has_seen_a_quarter_more():
    factor, rng = label(60)
    learned = ep.Learned(ep.Quadrature(), initial=60)
    learned.check(factor)

    def run():
        for sweep in (0, 1, 2, None):
            came = ep.Normal(rng.normal(size=60), rng.uniform(0.5, 2, 60)), np.ones(60)
            learned.answer(ep.extending.Questions.of(factor, came, 1.0, jax.random.key(0), sweep))
        return learned.diary(factor.name)

    first = run()
    assert first.predicted > 0
    assert learned.stop_predicting(factor)
    # Each run that stands aside keeps the 60 messages of its end.
    known = learned._learner(factor.name).known
    second, *later = (run() for _ in range(1 + -(-known // 240)))
    assert (second.asked, second.predicted) == (240, 0)
    assert "in an earlier run sweeps with predictions did not converge: from then on the oracle" in second.notes()[0]
    assert later[-1].predicted > 0


def test_values_of_a_function_are_kept_from_run_to_run_and_none_that_followed_an_error(monkeypatch):
    monkeypatch.setenv("FAILS", "yes")

    def density(z):
        if "FAILS" in os.environ and float(z) > 3:
            raise ArithmeticError("out of order")
        return -np.hypot(1.0, float(z) - 0.5)

    def run(oracle):
        z = ep.Variable("z", ep.Normal(np.linspace(-1.0, 1.0, 8), 1.0))
        post = ep.infer(ep.FactorGraph(ep.Density(density, z, name="d")), oracle, rng=0)
        return post["z"].mean(), post.report.counts["d: evaluations of its function"]

    learned = ep.Learned(ep.Quadrature(), initial=100)
    with pytest.raises(InputError, match="out of order"):
        run(learned)
    monkeypatch.delenv("FAILS")
    exact, evaluations = run(None)
    found = [run(learned) for _ in range(2)]
    for mean, _ in found:
        np.testing.assert_allclose(mean, exact, atol=1e-6)
    # Each run looks at four points whether it is the same function.
    assert found[0][1] > evaluations / 2 > 4 >= found[1][1]
