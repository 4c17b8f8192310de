"""Unknown labels joined by tables: against enumeration of all of them."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.families import Bernoulli, Categorical


def test_a_bernoulli_is_refused_with_the_categorical_to_type():
    state = ep.Variable("s", ep.Bernoulli, plate=3)
    typed = r"ep\.Variable\('s', ep\.Categorical, dimension=2, plate=3\)"
    with pytest.raises(KindError, match=rf"'s' of Table\(s\) is a Bernoulli; .* second label: {typed}"):
        ep.Table([0.3, 0.7], state)
    two = ep.Variable("s", ep.Categorical, dimension=2, plate=3)
    assert ep.Table([0.3, 0.7], two).name == "Table(s)"


@pytest.mark.oldest
def test_a_hidden_markov_model_is_that_of_enumeration():
    rng = np.random.default_rng(0)
    start, moves, emission = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3)
    moves[0, 2] = 0  # what cannot be, too
    y = rng.integers(0, 4, 6)
    state = ep.Variable("state", ep.Categorical, plate=6, dimension=3)
    model = ep.FactorGraph(
        ep.Table(start, state[:1], name="start"),
        ep.Table(moves, state[:-1], state[1:], name="moves"),
        ep.Table(emission[:, y].T, state, name="seen"),
    )
    post = ep.infer(model)
    assert post.report.converged
    shares = np.zeros((6, 3))
    for path in itertools.product(range(3), repeat=6):
        weight = start[path[0]] * np.prod(emission[list(path), y])
        weight *= np.prod([moves[a, b] for a, b in itertools.pairwise(path)])
        shares[np.arange(6), path] += weight
    total = shares[0].sum()
    np.testing.assert_allclose(post["state"].mean(), shares / total, atol=1e-9)
    assert post.log_evidence == pytest.approx(np.log(total), abs=1e-9)


def test_three_labels_in_one_factor():
    rng = np.random.default_rng(1)
    table, prior = rng.uniform(size=(2, 3, 2)), rng.dirichlet(np.ones(3))
    a, b, c = (
        ep.Variable("a", ep.Categorical, dimension=2),
        ep.Variable("b", Categorical(prior)),
        ep.Variable("c", ep.Categorical, dimension=2),
    )
    post = ep.infer(ep.FactorGraph(ep.Table(table, a, b, c), ep.Table([0.2, 0.8], a, name="a")))
    joint = table * prior[:, None] * np.array([0.2, 0.8])[:, None, None]
    for name, axes in (("a", (1, 2)), ("b", (0, 2)), ("c", (0, 1))):
        np.testing.assert_allclose(post[name].mean(), joint.sum(axes) / joint.sum(), atol=1e-12)
    assert post.log_evidence == pytest.approx(np.log(joint.sum()), abs=1e-12)


def test_what_cannot_be_said_is_refused_in_words():
    x = ep.Variable("x", ep.Categorical, plate=6, dimension=3)
    z, g = ep.Variable("z", ep.Normal(0.0, 1.0), plate=6), ep.Variable("g", ep.Gamma(2.0, 2.0))
    with pytest.raises(ShapeError, match=r"has shape .2, 3.; expected .3, 3., or .5, 3, 3. with one table for each"):
        ep.Table(np.ones((2, 3)), x[:-1], x[1:])
    with pytest.raises(ParameterError, match=r"holds -1; expected numbers, 0 or more"):
        ep.Table([-1.0, 1.0, 1.0], x)
    with pytest.raises(KindError, match=r"label 0 of .* is the Normal 'z'; expected a Categorical"):
        ep.Table([1.0, 1.0], z)
    with pytest.raises(ShapeError, match="Table has no labels"):
        ep.Table([1.0, 1.0])
    with pytest.raises(KindError, match=r"'x' of the factor is a Categorical.*type ep.Table"):
        ep.Density(lambda label: label, x)
    with pytest.raises(KindError, match=r"noise of Interval.z. is the variable 'g'; expected a number.*precision=tau"):
        ep.Interval(z, 0.0, noise=g)
    with pytest.raises(KindError, match=r"cutpoints of Ordinal.z. are variables; expected numbers.*ordinal_regression"):
        ep.Ordinal(z, [z, z], observed=np.zeros(6))
    with pytest.raises(ParameterError, match=r"plate of variable 'q' is .2, 3.; .* A plate has one axis"):
        ep.Variable("q", ep.Normal, plate=(2, 3))


def test_student_noise_of_unknown_scale_is_that_of_a_sum():
    y = 1 + 2 * np.random.default_rng(0).standard_t(4, 30)
    mu, scale = ep.Variable("mu", ep.Normal(0.0, 100.0)), ep.Variable("scale", ep.Gamma(2.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Student(mu, observed=y, scale=scale)))
    m, log_s = np.meshgrid(np.linspace(-3, 5, 200), np.linspace(-1, 2, 200), indexing="ij")
    log_joint = scipy.stats.norm.logpdf(m, 0, 10) + scipy.stats.gamma.logpdf(np.exp(log_s), 2) + log_s
    log_joint += scipy.stats.t.logpdf(y[:, None, None], 4, m, np.exp(log_s)).sum(0)
    law = np.exp(log_joint - log_joint.max())
    cell = 8 / 199 * 3 / 199
    assert post.log_evidence == pytest.approx(np.log(law.sum() * cell) + log_joint.max(), abs=0.05)
    law /= law.sum()
    mean, expected = (law * m).sum(), (law * np.exp(log_s)).sum()
    assert post["mu"].mean() == pytest.approx(mean, abs=0.03)
    assert post["mu"].sd() == pytest.approx(np.sqrt((law * (m - mean) ** 2).sum()), rel=0.03)
    assert post["scale"].mean() == pytest.approx(expected, rel=0.02)
    with pytest.raises(KindError, match=r"scale of .* is the Normal 'mu'; expected a Gamma"):
        ep.Student(mu, observed=y, scale=mu)


def on_grid(first, second, log_joint):
    """Mean and standard deviation of two numbers, and the evidence, from a fine grid over them."""
    cell = (first[1, 0] - first[0, 0]) * (second[0, 1] - second[0, 0])
    law = np.exp(log_joint - log_joint.max())
    evidence = np.log(law.sum() * cell) + log_joint.max()
    law /= law.sum()
    means = [(law * each).sum() for each in (first, second)]
    sds = [np.sqrt((law * (each - mean) ** 2).sum()) for each, mean in zip((first, second), means, strict=True)]
    return np.array(means), np.array(sds), evidence


def test_the_model_that_is_suggested_for_unknown_noise_of_an_interval():
    # Numbers that were rounded down, with a noise of which little is known.
    y = np.floor(0.4 + 0.8 * np.random.default_rng(0).normal(size=24))
    mu, tau = ep.Variable("mu", ep.Normal(0.0, 4.0)), ep.Variable("tau", ep.Gamma(2.0, 2.0))
    x = ep.Variable("x", ep.Normal, plate=24)
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, x, precision=tau), ep.Interval(x, low=y, high=y + 1, noise=0)))
    m, s = np.meshgrid(np.linspace(-2, 3, 200), np.linspace(-2.5, 3, 200), indexing="ij")
    log_joint = scipy.stats.norm.logpdf(m, 0, 2) + scipy.stats.gamma.logpdf(np.exp(s), 2, scale=0.5) + s
    ends = ((y[:, None, None] - m) * np.exp(s / 2), (y[:, None, None] + 1 - m) * np.exp(s / 2))
    mass = scipy.stats.norm.cdf(ends[1]) - scipy.stats.norm.cdf(ends[0])
    (mean, _), (sd, _), evidence = on_grid(m, s, log_joint + np.log(np.maximum(mass, 1e-300)).sum(0))
    assert post.report.converged
    assert post["mu"].mean() == pytest.approx(mean, abs=0.02 * sd)
    assert post["mu"].sd() == pytest.approx(sd, rel=0.02)
    assert post.log_evidence == pytest.approx(evidence, abs=0.05)


def test_the_model_that_is_suggested_for_unknown_cutpoints():
    rng = np.random.default_rng(0)
    z = rng.normal(size=40)
    y = np.digitize(z + rng.normal(size=40), [-0.7, 0.6])
    x, c = ep.Variable("x", ep.Normal, plate=40), ep.Variable("c", ep.Normal([-1.0, 1.0], 4.0))
    above, below = np.flatnonzero(y >= 1), np.flatnonzero(y <= 1)
    over, under = (ep.Variable(name, ep.Normal, plate=len(of)) for name, of in (("over", above), ("under", below)))
    model = ep.FactorGraph(
        ep.Gaussian(x, observed=z),
        ep.Sum(x[above], c[y[above] - 1], weights=[1, -1], out=over),
        ep.Interval(over, low=0, noise=0),
        ep.Sum(x[below], c[y[below]], weights=[1, -1], out=under),
        ep.Interval(under, high=0, noise=0),
    )
    post = ep.infer(model)
    a, b = np.meshgrid(np.linspace(-3, 2, 200), np.linspace(-2, 3, 200), indexing="ij")
    log_joint = scipy.stats.norm.logpdf(a, -1, 2) + scipy.stats.norm.logpdf(b, 1, 2)
    cdf = scipy.stats.norm.cdf([a - at for at in z]), scipy.stats.norm.cdf([b - at for at in z])
    mass = np.select([(y == k)[:, None, None] for k in range(3)], [cdf[0], cdf[1] - cdf[0], 1 - cdf[1]])
    means, sds, _ = on_grid(a, b, log_joint + np.log(np.maximum(mass, 1e-300)).sum(0))
    assert post.report.converged
    np.testing.assert_allclose(post["c"].mean(), means, atol=0.1 * sds.min())
    ratio = post["c"].sd() / sds
    assert (ratio > 0.8).all(), ratio  # as the message says
    assert (ratio < 1).all(), ratio


def ising(edges, coupling, fields, **settings):
    """Spins, and by enumeration their exact probabilities and evidence."""
    n = len(fields)
    x, ends = ep.Variable("x", ep.Categorical, plate=n, dimension=2), np.array(edges)
    pairs = np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    singles = np.exp(np.stack([-fields, fields], 1))
    model = ep.FactorGraph(
        ep.Table(pairs, x[ends[:, 0]], x[ends[:, 1]], name="pairs"), ep.Table(singles, x, name="singles")
    )
    spins = np.array(list(itertools.product([-1, 1], repeat=n)))
    logs = coupling * (spins[:, ends[:, 0]] * spins[:, ends[:, 1]]).sum(1) + spins @ fields
    weights = np.exp(logs - logs.max())
    up = (weights[:, None] * (spins > 0)).sum(0) / weights.sum()
    return ep.infer(model, **settings), up, np.log(weights.sum()) + logs.max()


def test_messages_in_loops_stay_finite_and_are_noted():
    # Constants of messages doubled in each sweep: after 60 of them the numbers were lost, and beliefs were 1/2.
    grid = [(4 * r + c, 4 * r + c + 1) for r in range(3) for c in range(3)]
    grid += [(4 * r + c, 4 * r + c + 4) for r in range(2) for c in range(4)]
    fields = np.random.default_rng(2).normal(0, 0.5, 12)
    for sweeps in (60, 200):
        post, up, evidence = ising(grid, 0.4, fields, sweeps=sweeps)
        assert post.report.converged
        np.testing.assert_allclose(post["x"].mean()[:, 1], up, atol=0.03)  # loopy belief propagation's own error
        assert post.log_evidence == pytest.approx(evidence, abs=0.1)
        assert max(abs(np.asarray(message.logits)).max() for message in post.messages["pairs"]) < 10
        assert post.report.status == "converged, but probabilities of labels are approximate"
        assert any(note.startswith("pairs: labels are joined in loops") for note in post.report.notes)


def test_labels_joined_by_densities_in_loops_have_the_same_note():
    x, ends = ep.Variable("x", Bernoulli(0.5), plate=3), np.array([[0, 1], [1, 2], [2, 0]])
    for edges, status in ((ends, "converged, but probabilities of labels are approximate"), (ends[:2], "converged")):
        alike = ep.Density(lambda a, b: jnp.where((a > 0.5) == (b > 0.5), 1.0, -1.0), x[edges[:, 0]], x[edges[:, 1]])
        post = ep.infer(ep.FactorGraph(alike, ep.Density(lambda a: 0.3 * a, x, name="field")))
        assert post.report.status == status


def test_a_chain_of_labels_has_no_note_on_loops():
    post, up, evidence = ising([(0, 1), (1, 2), (1, 3)], 1.5, np.array([0.3, -1.0, 0.2, 2.0]))
    np.testing.assert_allclose(post["x"].mean()[:, 1], up, atol=1e-9)
    assert post.log_evidence == pytest.approx(evidence, abs=1e-9)
    assert not post.report.notes
