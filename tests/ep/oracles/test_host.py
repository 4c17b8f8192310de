"""Oracles and functions on the host: whole plates at once, memory, wrong answers, exceptions, interruptions."""

import math

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.core import EmptyError, InputError, KindError, ShapeError

Y = np.array([0, 1, 1, 0, 1])


def logistic(n=5):
    z = ep.Variable("z", ep.Normal(np.linspace(-1, 1, n), 2.0))
    return ep.FactorGraph(ep.Logistic(z, observed=Y[:n], name="labels"))


def test_a_function_of_questions_is_an_oracle():
    seen = []

    def mine(questions):
        seen.append((questions.sweep, len(questions), questions.members.tolist()))
        assert isinstance(questions.incoming[0], ep.Normal)
        np.testing.assert_array_equal(questions.incoming[1], Y)
        return questions.ask(ep.Quadrature())

    exact, post = ep.infer(logistic()), ep.infer(logistic(), messages=mine)
    np.testing.assert_allclose(post["z"].mean(), exact["z"].mean(), rtol=1e-12)
    np.testing.assert_allclose(post["z"].var(), exact["z"].var(), rtol=1e-12)
    assert post.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
    sweeps = post.report.steps
    assert seen == [(s, 5, [0, 1, 2, 3, 4]) for s in (*range(sweeps), None)]
    assert post.report.counts["labels: requests to the host"] == 5 * (sweeps + 1)


def test_messages_alone_are_an_answer():
    # The messages of Jaakkola & Jordan's bound at ξ = 1, written in three lines of NumPy.
    def bound(questions):
        y = questions.incoming[1]
        precision = np.full(len(questions), math.tanh(0.5) / 2)
        return (ep.Normal.from_natural(y - 0.5, precision), None)

    post = ep.infer(logistic(), messages=bound)
    precision = 1 / 2.0 + math.tanh(0.5) / 2
    np.testing.assert_allclose(post["z"].precision, precision, rtol=1e-12)
    np.testing.assert_allclose(post["z"].mean(), (np.linspace(-1, 1, 5) / 2 + Y - 0.5) / precision, rtol=1e-12)
    assert np.isnan(post.log_evidence)  # nobody said how probable the labels are


class Remembering(ep.extending.HostOracle):
    """What a learned oracle does, in small: answer from memory near old questions, else ask; audit some answers."""

    def __init__(self, reach=1e-3):
        self.reach, self.exact, self.z_scores = reach, ep.Quadrature(), []
        self.questions, self.answers, self.asked = np.empty((0, 3)), np.empty((0, 2)), 0

    def answer(self, questions):
        incoming, y = questions.incoming[:2]
        points = np.column_stack([incoming.mean(), np.log(incoming.var()), y])
        distance = (
            np.abs(points[:, None] - self.questions).max(-1) if len(self.questions) else np.full((len(y), 1), 9.0)
        )
        nearest, doubt = distance.argmin(1), distance.min(1)
        natural = self.answers[nearest] if len(self.answers) else np.zeros((len(y), 2))
        answer = ep.extending.Answer((ep.Normal.from_natural(*natural.T), None), np.full(len(y), np.nan))
        doubtful = np.flatnonzero(doubt > self.reach)
        if len(doubtful):
            exact = questions[doubtful].ask(self.exact)
            answer = answer.put(doubtful, exact)
            self.questions = np.concatenate([self.questions, points[doubtful]])
            self.answers = np.concatenate([self.answers, np.column_stack(exact.messages[0].natural)])
            self.asked += len(doubtful)
        audited = questions.generator().choice(len(y), 1)
        truth = questions[audited].ask(self.exact).messages[0].precision
        self.z_scores.append((answer.messages[0].precision[audited] - truth) / self.reach)
        return answer

    def counts(self, factor):
        return {"remembered questions": len(self.questions)}

    def notes(self, factor):
        return (f"worst audit {np.abs(self.z_scores).max():.1f} reaches",)


def test_an_oracle_may_remember_audit_itself_and_serve_the_next_model():
    oracle = Remembering()
    post = ep.infer(logistic(), messages=oracle)
    np.testing.assert_allclose(post["z"].mean(), ep.infer(logistic())["z"].mean(), atol=1e-3)
    assert oracle.asked == 5  # the cavity of a lone factor is its prior, in every sweep
    assert post.report.counts["labels: remembered questions"] == 5
    assert any(note.startswith("labels: worst audit") for note in post.report.notes)
    ep.infer(logistic(4), messages={"labels": oracle})
    assert oracle.asked == 5 + 3  # a plate of four lies elsewhere but for its ends, one of which has another label


def test_members_whose_cavity_is_improper_are_not_asked():
    # A prior for one of two members: the other's cavity is flat, and no oracle has to know what to say to it.
    a, z = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("z", ep.Normal, plate=2)
    model = ep.FactorGraph(ep.Sum(a, out=z[[0]]), ep.Logistic(z, observed=[1, 1], name="labels"))
    asked = []

    def mine(questions):
        asked.append(questions.members.tolist())
        return questions.ask(ep.Quadrature())

    post = ep.infer(model, messages=mine, sweeps=4)
    assert asked == [[0]] * len(asked)
    assert "in the last sweep labels at [1]: improper cavities (message kept)" in post.report.notes


@pytest.mark.parametrize(
    ("mine", "error", "message"),
    [
        (lambda q: q.ask(ep.Quadrature()).messages[:1], ShapeError, "returned 1 messages for labels; expected 2"),
        (lambda q: 3, ShapeError, "returned 3 messages"),
        (lambda q: (ep.Beta(1.0, 1.0), None), KindError, "is a Beta; expected a Normal"),
        (lambda q: (None, None), KindError, "is None; expected a Normal"),
        (lambda q: (ep.Normal(0.0, 1.0), None), ShapeError, r"batch shape \(\).*expected \(5,\)"),
        (
            lambda q: ep.extending.Answer((ep.Normal(np.zeros(5), 1.0), None), np.zeros(3)),
            ShapeError,
            r"log_normaliser of <lambda> for labels has shape \(3,\)",
        ),
        (lambda q: q[[]].ask(ep.Quadrature()), EmptyError, "no questions of labels"),
        (lambda q: q.ask(ep.Quadrature()).none, AttributeError, "none"),
    ],
)
def test_wrong_answers_are_refused_and_named(mine, error, message):
    with pytest.raises(error, match=message) as caught:
        ep.infer(logistic(), messages=mine)
    if error is AttributeError:
        assert "while <lambda> answered 5 questions of labels" in caught.value.__notes__[0]


def test_answers_without_numbers_are_located():
    def broken(questions):
        answer = questions.ask(ep.Quadrature())
        answer.messages[0].precision[2] = np.nan
        return answer

    post = ep.infer(logistic(), messages=broken, sweeps=3)
    assert "in the last sweep labels at [2]: answers without numbers (message kept)" in post.report.notes
    assert post["z"].var()[2] == pytest.approx(2.0)


def squash(x):
    return 1 / (1 + math.exp(-x))


def through(function, **settings):
    z, y = ep.Variable("z", ep.Normal(np.zeros(3), 1.0)), ep.Variable("y", ep.Normal, plate=3)
    return ep.FactorGraph(ep.BlackBox(function, z, y, name="f", **settings), ep.Gaussian(y, observed=[0, 1, 1.0]))


def test_a_function_of_arrays_is_called_once_a_batch():
    calls = []

    def vectorised(x):
        calls.append(x.shape)
        return 1 / (1 + np.exp(-x))

    one = ep.infer(through(squash), sweeps=2)
    all_at_once = ep.infer(through(vectorised, vectorised=True), sweeps=2)
    np.testing.assert_allclose(all_at_once["z"].mean(), one["z"].mean(), rtol=1e-12)
    # For nodes of four pieces, then for better ones; all cavities of all sweeps share them, and so does the evidence.
    assert calls[0] == (37,)
    # 194: 141 for nodes of pieces, and 53 looks between these, because a peak may hide beside any smooth stretch.
    assert sum(size for (size,) in calls) < 200
    before = len(calls)
    z, y = ep.Variable("z", ep.Normal(np.arange(3.0), 1.0)), ep.Variable("y", ep.Normal, plate=3)
    ep.infer(ep.FactorGraph(ep.BlackBox(vectorised, z, y, vectorised=True)), sweeps=1)
    assert sum(size for (size,) in calls[before:]) < 250


@pytest.mark.slow
def test_a_sampler_of_arrays_gets_a_generator():
    y, z = ep.Variable("y", ep.Normal), ep.Variable("z", ep.Normal(0.0, 1.0))
    factor = ep.BlackBox(lambda rng, x: x + rng.normal(size=x.shape), z, y, random=True, vectorised=True)
    answer = ep.extending.ask(factor, ep.Normal(0.0, 1.0), ep.Normal(1.0, 1.0), rng=1)
    assert abs(answer.messages[0].precision - 0.5) < 4.5 * answer.errors[0].precision


def broken(x):
    raise RuntimeError(f"the simulator broke at {x:.1f}")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (broken, InputError, r"f raised RuntimeError \(the simulator broke at .*\) when called with .*or return nan"),
        (lambda x: {}["k"] + x, InputError, r"f raised KeyError \('k'\) when called with"),
        (lambda x: [math.exp(-x), 1.0], ShapeError, r"f returned shape \(2,\) for one value .* expected one number"),
        (lambda x: "a" + str(math.exp(x)), KindError, "f returned 'a.*called with .*expected numbers"),
    ],
)
def test_what_a_users_function_raises_or_returns_is_named_with_its_arguments(function, error, message, caplog):
    with pytest.raises(error, match=message):
        ep.infer(through(function))
    assert not caplog.records  # the runtime would print a traceback of its own first


def test_arrays_of_the_wrong_shape_are_refused():
    with pytest.raises(ShapeError, match=r"returned shape \(2,\) for \d+ values of each argument.* expected shape"):
        ep.infer(through(lambda x: np.ones(2), vectorised=True))


def test_errors_of_a_users_function_have_their_cause():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))

    def ends(z):
        return -float(z) if float(z) < 1 else 1 / 0

    def all_at_once(z):
        raise ZeroDivisionError

    for factor in (ep.Density(ends, z), ep.Density(all_at_once, z, vectorised=True)):
        for messages in (None, ep.ImportanceSampling(100)):
            with pytest.raises(InputError, match=r"ZeroDivisionError.* when called with .*return -inf") as caught:
                ep.infer(ep.FactorGraph(factor), messages)
            assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.slow
def test_constant_functions_and_values_outside_the_support_are_stated():
    z, y = ep.Variable("z", ep.Normal(np.zeros(3), 1.0)), ep.Variable("y", ep.Normal, plate=3)
    constant = ep.infer(ep.FactorGraph(ep.BlackBox(lambda x: 2.0 + 0 * x, z, y, name="two")), sweeps=3)
    assert "in the last sweep two at [0], [1], [2]: answers without numbers (message kept)" in constant.report.notes
    assert constant.report.status == "stopped with an improper belief"  # y was told nothing
    assert any("two at [0] is 2 for 'z'" in note and "in place of 'y'" in note for note in constant.report.notes)
    rate = ep.Variable("rate", ep.Gamma, plate=3)
    negative = ep.BlackBox(lambda x: -1.0 - x * x, z, rate, name="negative")
    assert np.isnan(ep.extending.ask(negative, z.prior, ep.Gamma(np.ones(3), 1.0)).messages[0].precision).all()


@pytest.mark.parametrize("where", [pytest.param("function", marks=pytest.mark.slow), "oracle"])
def test_an_interruption_on_the_host_keeps_the_state(where):
    calls = []

    def interrupt():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    def function(x):
        interrupt()
        return 1 / (1 + np.exp(-x))

    def oracle(questions):
        interrupt()
        return questions.ask(ep.Quadrature())

    model = through(function, vectorised=True) if where == "function" else through(jax.nn.sigmoid)
    post = ep.infer(model, messages=None if where == "function" else oracle)
    assert post.report.status == "interrupted"
    assert np.isnan(post.log_evidence)  # it would take more calls
    done = ep.infer(model, start_from=post)
    assert done.report.converged
    np.testing.assert_allclose(done["z"].mean(), ep.infer(through(jax.nn.sigmoid))["z"].mean(), atol=1e-6)


def test_what_cannot_be_an_oracle():
    with pytest.raises(KindError, match=r"a function of ep\.extending\.Questions"):
        ep.infer(logistic(), messages="exact")
    with pytest.raises(KindError, match="expected an oracle"):
        ep.infer(logistic(), messages=ep.Quadrature)
    with pytest.raises(KindError, match=r"labels has an oracle on the host.*schedule='parallel'"):
        ep.infer(logistic(), messages=lambda q: q.ask(ep.Quadrature()), schedule="sequential")


def test_a_ufunc_of_numpy_is_met_more_than_once():
    for _ in range(2):
        z, out = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("out", ep.Normal)
        assert ep.BlackBox(np.tanh, z, out).arguments[0] is z
