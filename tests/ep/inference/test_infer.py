"""The loop: logistic regression, power EP, policies, and models that cannot converge."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from meanmap import ep
from meanmap.core import KindError, ParameterError
from meanmap.ep.calling import before_sigmoid
from meanmap.ep.inference import run
from meanmap.ep.traced import Program


def problem(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (rng.uniform(size=n) < scipy.special.expit(X @ np.linspace(-1, 2, d))).astype(int)


TRACES = []


def counted(z):
    """The sigmoid of all tests in this file, which so share one compiled program, and how often it was traced."""
    TRACES.append(1)
    return jax.nn.sigmoid(z)


def logistic(X, y, black_box=True):
    n, d = X.shape
    w = ep.Variable("w", ep.MultivariateNormal.standard(d))
    z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
    if not black_box:
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y))
    return ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(counted, z, p), ep.Bernoulli(p, observed=y))


def sequential(X, y, sweeps=60):
    """EP for logistic regression as it is told in textbooks: one site after another, rank one, a plain grid."""
    n, d = X.shape
    nu, tau = np.zeros(n), np.zeros(n)
    t = np.linspace(-1, 1, 4001)
    for _ in range(sweeps):
        for i in range(n):
            covariance = np.linalg.inv(np.eye(d) + (X * tau[:, None]).T @ X)
            m, v = X[i] @ covariance @ (X.T @ nu), X[i] @ covariance @ X[i]
            v_c = 1 / (1 / v - tau[i])
            m_c = v_c * (m / v - nu[i])
            x = m_c + 12 * v_c**0.5 * t
            weights = np.exp(-((x - m_c) ** 2) / (2 * v_c) - np.logaddexp(0, (1 - 2 * y[i]) * x))
            mean = (weights * x).sum() / weights.sum()
            var = (weights * (x - mean) ** 2).sum() / weights.sum()
            nu[i], tau[i] = mean / var - m_c / v_c, 1 / var - 1 / v_c
    covariance = np.linalg.inv(np.eye(d) + (X * tau[:, None]).T @ X)
    return covariance @ (X.T @ nu), covariance


def test_logistic_regression_is_that_of_textbooks_in_both_forms():
    X, y = problem()
    mean, covariance = sequential(X, y, sweeps=8)
    for black_box in (True, False):
        post = ep.infer(logistic(X, y, black_box))
        assert post.report.converged
        np.testing.assert_allclose(post["w"].mean(), mean, atol=1e-6)
        np.testing.assert_allclose(post["w"].cov(), covariance, atol=1e-6)
    assert post.log_evidence == pytest.approx(ep.infer(logistic(X, y)).log_evidence, abs=1e-7)
    assert set(ep.infer(logistic(X, y))) == {"w", "z", "p"}


@pytest.mark.parametrize("function", [jax.nn.sigmoid, lambda z: jax.scipy.special.expit(jnp.tanh(0.0) + z)])
def test_a_sigmoid_speaks_where_its_values_round_to_one(function):
    # At 60 the sigmoid is 1 to all digits, and the label 0 still pulls: log(1 − p) = −z.
    z, p = ep.Variable("z", ep.Normal(60.0, 9.0)), ep.Variable("p", ep.Beta)
    post = ep.infer(ep.FactorGraph(ep.BlackBox(function, z, p), ep.Bernoulli(p, observed=0)))
    assert post["z"].mean() == pytest.approx(60 - 9.0, abs=1e-6)
    assert post["z"].var() == pytest.approx(9.0, rel=1e-6)


def test_the_sigmoid_at_the_end_of_a_function_of_several_arguments_is_found():
    (w, z), p = (ep.Variable(name, ep.Normal(8.0, 0.01)) for name in "wz"), ep.Variable("p", ep.Beta)
    factor = ep.BlackBox(lambda w, z, c: jax.nn.sigmoid(c * w * jnp.exp(0.0) + z), w, z, 2.0, p)
    w, z = jnp.array([20.0, 30.0]), jnp.array([1.0, -1.0])
    assert before_sigmoid(factor, [w, z, jnp.asarray(2.0)], (0, 1)).tolist() == [41.0, 59.0]
    plain = ep.BlackBox(lambda w, z: 1 - jax.nn.sigmoid(w + z), *factor.arguments[:2], factor.arguments[-1])
    assert before_sigmoid(plain, [w, z], (0, 1)) is None


def test_the_evidence_is_that_of_quadrature_in_one_dimension():
    X, y = problem()
    X[:, 1:] = 0  # one weight, in the program that the other tests compile
    post = ep.infer(logistic(X, y, black_box=False))
    w = np.linspace(-9, 9, 20_001)
    log_joint = -w * w / 2 - 0.5 * np.log(2 * np.pi) - np.logaddexp(0, (1 - 2 * y)[:, None] * X[:, :1] * w).sum(0)
    total = np.exp(log_joint).sum() * (w[1] - w[0])
    assert post.log_evidence == pytest.approx(np.log(total), abs=5e-3)
    assert post["w"].mean()[0] == pytest.approx((np.exp(log_joint) * w).sum() * (w[1] - w[0]) / total, abs=2e-3)


def test_other_data_and_nearby_sizes_compile_nothing_new(monkeypatch):
    run = []
    monkeypatch.setattr(
        Program, "filled", lambda self, constants, inner=Program.filled: run.append(1) or inner(self, constants)
    )

    def traced(n, seed):
        read, entered = len(TRACES), len(run)
        ep.infer(logistic(*problem(n, 3, seed)))
        assert len(TRACES) - read == 2  # when the factor was made, and at the start of the run
        return len(run) - entered

    traced(60, 0)
    assert traced(60, 1) == traced(41, 2) == 0


@pytest.mark.slow
def test_power_ep_approaches_variational_bayes():
    # α → 0: the fixed point of KL(q ‖ p) for a Gaussian q (Minka 2004), found here by direct minimisation.
    z = ep.Variable("z", ep.Normal(0.0, 4.0))
    factor = ep.Logistic(z, observed=1)
    post = ep.infer(ep.FactorGraph(factor), power=1e-3, sweeps=300)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def divergence(parameters):
        mean, sd = parameters[0], np.exp(parameters[1])
        x = mean + sd * nodes
        return -parameters[1] + (x * x / 8 + np.logaddexp(0, -x)) @ weights / weights.sum()

    best = scipy.optimize.minimize(divergence, [0.0, 0.0], tol=1e-10).x
    assert post["z"].mean() == pytest.approx(best[0], abs=2e-3)
    assert post["z"].sd() == pytest.approx(np.exp(best[1]), abs=2e-3)


def student(policy, **settings):
    """Student factors, of which an outlier takes information away: negative precisions."""
    mu = ep.Variable("mu", ep.Normal(0.0, 9.0))
    y = np.array([0.1, -0.2, 0.3, 6.0])
    factor = ep.Density(lambda m, y: -2.0 * jnp.log1p((y - m) ** 2 / 0.3), mu, y, name="student")
    return y, ep.infer(ep.FactorGraph(factor), improper=policy, **settings)


@pytest.mark.parametrize(
    "policy",
    ["allow", "force", pytest.param("skip", marks=pytest.mark.slow), pytest.param("damp", marks=pytest.mark.slow)],
)
def test_improper_messages_are_treated_as_told_and_located(policy):
    y, post = student(policy, damping=0.5)
    messages = post.messages["student"][0]
    if policy == "allow":
        assert messages.precision[3] < 0
        assert post.report.converged
        x = np.linspace(-12, 12, 24_001)
        log_joint = -x * x / 18 - 2 * np.log1p((y[:, None] - x) ** 2 / 0.3).sum(0)
        weights = np.exp(log_joint - log_joint.max())
        assert post["mu"].mean() == pytest.approx((weights * x).sum() / weights.sum(), abs=0.03)
        assert "improper" not in str(post.report)  # what is allowed and does no harm is no warning
        early = student(policy, damping=0.5, sweeps=3)[1].report
        assert not early.converged
        assert early.counts["student: improper messages"] > 0
        assert "in the last sweep student at [3]: improper messages (allow)" in early.notes
        return
    assert (messages.precision >= 0).all()
    assert post.report.counts["student: improper messages"] > 0
    assert f"in the last sweep student at [3]: improper messages ({policy})" in post.report.notes


def test_factors_without_an_answer_are_located_and_nothing_hangs():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    broken = ep.Density(lambda z, y: jnp.where(y > 0, jnp.nan, -z * z), z, [0.0, 1.0, 0.0], name="broken")
    post = ep.infer(ep.FactorGraph(broken), sweeps=5)
    assert post.report.status == "stopped with messages left out"
    assert not post.report.converged
    assert "in the last sweep broken at [1]: answers without numbers (message kept)" in post.report.notes
    assert post["z"].var()[0] == pytest.approx(1 / 3)
    assert post["z"].var()[1] == pytest.approx(1)
    # Without all messages there is no evidence, and a number would be taken for one.
    assert np.isnan(post.log_evidence)
    assert "there is no log evidence: it would need the messages that were left out" in post.report.notes
    # A factor whose support misses the cavity, and a sampler that is constant.
    nowhere = ep.Density(lambda z: jnp.where(z > 1e6, 0.0, -jnp.inf), z, name="nowhere")
    assert any("nowhere at [0], [1], [2]" in n for n in ep.infer(ep.FactorGraph(nowhere), sweeps=3).report.notes)
    flat = ep.Variable("flat", ep.Normal)
    with pytest.raises(ValueError, match="'flat' has no prior, and it is in functions only"):
        ep.infer(ep.FactorGraph(ep.Density(lambda x: -x * x, flat, name="lonely")))


def test_a_direction_without_numbers_keeps_no_other_from_being_told():
    a, b = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))

    def half(questions):
        (answer,) = (questions.ask(ep.Quadrature()),)
        lost = jax.tree.map(lambda leaf: leaf * np.nan, answer.messages[1])
        return (answer.messages[0], lost)

    model = ep.FactorGraph(ep.Density(lambda a, b: -((a - 1) ** 2) - b * b, a, b, name="both"))
    post = ep.infer(model, messages=half, sweeps=3)
    assert post["a"].mean() == pytest.approx(2 / 3, abs=0.5)
    assert post["a"].mean() > 0.01
    assert post["b"].var() == pytest.approx(1)
    assert any("answers without numbers" in note for note in post.report.notes)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"improper": "hope"}, ParameterError, "expected one of 'force', 'allow'"),
        ({"damping": -0.1}, ParameterError, "damping is -0.1; expected values of at least 0"),
        ({"damping": 1.0}, ParameterError, "damping is 1.0; expected at least 0 and less than 1: with 1 messages"),
        ({"sweeps": 0}, ParameterError, "sweeps"),
        ({"messages": "exact"}, KindError, "expected an oracle"),
        ({"messages": {"nobody": ep.Quadrature()}}, ParameterError, "nobody"),
        ({"power": 0.5}, ParameterError, "power is 0.5, and counted.z, p. is defined for power 1 only"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        ep.infer(logistic(*problem()), **settings)


def test_a_model_is_a_graph_and_unknown_names_are_named():
    with pytest.raises(KindError, match="expected a FactorGraph"):
        ep.infer([1, 2])
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=1.0)))
    with pytest.raises(KeyError, match="the variables are 'mu'"):
        post["nu"]


@pytest.mark.parametrize("way", [jax.grad, jax.jit, lambda f: lambda y: jax.vmap(f)(jnp.array([y, y]))])
@pytest.mark.parametrize(
    ("model", "named"),
    [
        (lambda y: ep.Gaussian(ep.Variable("mu", ep.Normal(0.0, 1.0)), observed=y), "observed"),
        (lambda y: ep.Gaussian(ep.Variable("mu", ep.Normal(0.0, y)), observed=1.0), "variable 'mu'"),
        (lambda y: ep.Density(lambda m: -y * m * m, ep.Variable("mu", ep.Normal(0.0, 1.0))), "infer"),
    ],
)
def test_numbers_that_are_traced_are_refused_in_words(way, model, named):
    with pytest.raises(
        KindError, match=f"^{named} met numbers that jax.jit, vmap or grad is tracing; .*evidence_gradient"
    ):
        way(lambda y: ep.infer(ep.FactorGraph(model(y))).log_evidence)(1.0)


def test_asking_with_traced_messages_is_refused_in_words():
    factor = ep.Probit(ep.Variable("z", ep.Normal), observed=1)
    with pytest.raises(KindError, match=r"^ask met numbers that jax.jit"):
        jax.jit(lambda m: ep.extending.ask(factor, ep.Normal(m, 1.0)).messages[0].precision)(0.5)


def test_damping_is_the_share_of_the_old_message_that_is_kept():
    """As in belief propagation: 0 keeps nothing, and each of two sweeps with 0.75 keeps three quarters."""
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    factor = ep.Gaussian(mu, observed=1.0, precision=2.0)
    for damping, sweeps, share in ((0.0, 1, 1.0), (0.75, 1, 0.25), (0.75, 2, 0.4375), (0.9, 1, 0.1)):
        post = ep.infer(ep.FactorGraph(factor), damping=damping, sweeps=sweeps)
        assert 1 / post["mu"].var() == pytest.approx(1.0 + 2.0 * share)
    assert post.report.status != "converged"


def test_where_each_unknown_is_met_by_one_factor_alone_one_sweep_is_all():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    graph = ep.FactorGraph(ep.Density(lambda z, y: y * z - jnp.exp(z), z, [0, 1, 4]))
    found, slowly = ep.infer(graph), ep.infer(graph, damping=0.5)
    assert found.report.converged
    assert found.report.steps == 1 < slowly.report.steps
    np.testing.assert_allclose(found["z"].mean(), slowly["z"].mean(), atol=1e-6)
    assert found.log_evidence == pytest.approx(slowly.log_evidence, abs=1e-6)
    both = ep.FactorGraph(ep.Logistic(z, observed=[1, 0, 1]), *graph.factors)
    assert ep.infer(both).report.steps > 1


@pytest.mark.parametrize(("rows", "passes"), [(1000, 2), (5000, 1)])
def test_many_members_that_are_met_once_are_answered_in_one_pass(rows, passes, monkeypatch):
    rng, taken, sweep = np.random.default_rng(0), [], run.compiled_sweep
    monkeypatch.setattr(run, "compiled_sweep", lambda *given: taken.append(1) or sweep(*given))
    y = rng.poisson(np.exp(0.5 * rng.normal(size=rows)))
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=rows)
    post = ep.infer(ep.FactorGraph(ep.Density(lambda z, y: y * z - jnp.exp(z), z, y)))
    assert len(taken) == passes
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    values = np.exp(y[:, None] * nodes - np.exp(nodes)) * weights
    np.testing.assert_allclose(post["z"].mean(), values @ nodes / values.sum(axis=1), atol=1e-3)
