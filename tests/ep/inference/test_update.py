"""Posteriors that are updated by batches of factors, against one run with all of them."""

import copy
import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import meanmap as mm
from meanmap import ep
from meanmap.core import InputError, KindError


def streamed(first, batches):
    post = ep.infer(first)
    for batch in batches:
        post = post.update(batch)
    return post


def test_conjugate_factors_in_batches_are_exactly_those_of_one_run():
    rng = np.random.default_rng(0)
    mu = ep.Variable("mu", ep.Normal(0.5, 2.0))
    y = rng.normal(size=12)

    def model(y):
        return ep.FactorGraph(ep.Gaussian(mu, observed=y, precision=3.0))

    whole, parts = ep.infer(model(y)), streamed(model(y[:3]), [model(y[3:4]), model(y[4:])])
    assert_allclose(parts["mu"].natural, whole["mu"].natural, rtol=1e-12)
    assert parts.log_evidence == pytest.approx(whole.log_evidence, abs=1e-10)
    p = ep.Variable("p", ep.Beta(2.0, 3.0))
    flips = rng.integers(0, 2, 9)

    def coin(flips):
        return ep.FactorGraph(ep.Bernoulli(p, observed=flips))

    whole, parts = ep.infer(coin(flips)), streamed(coin(flips[:4]), [coin(flips[4:])])
    assert_allclose(parts["p"].natural, whole["p"].natural, rtol=1e-12)
    assert parts.log_evidence == pytest.approx(whole.log_evidence, abs=1e-10)


def test_linear_regression_in_batches_is_exactly_that_of_one_run():
    rng = np.random.default_rng(1)
    w = ep.Variable("w", ep.MultivariateNormal.standard(3))
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)

    def model(rows):
        z = ep.Variable("z", ep.Normal, plate=len(y[rows]))
        return ep.FactorGraph(ep.Dot(X[rows], w, z), ep.Gaussian(z, observed=y[rows], precision=2.0))

    whole = ep.infer(model(slice(None)))
    parts = streamed(model(slice(5)), [model(slice(at, at + 5)) for at in (5, 10, 15)])
    assert_allclose(parts["w"].mean(), whole["w"].mean(), atol=1e-10)
    assert_allclose(parts["w"].cov(), whole["w"].cov(), atol=1e-10)
    assert parts.log_evidence == pytest.approx(whole.log_evidence, abs=1e-8)
    assert not parts.report.notes
    # Rows are the batch's own: z is that of the last five.
    assert parts["z"].mean().shape == (5,)


def test_earlier_variables_that_a_batch_does_not_have_are_kept_and_members_of_plates_are_chosen():
    a, b = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal([0.0, 0.0], 1.0))
    first = ep.infer(ep.FactorGraph(ep.Gaussian(a, observed=1.0), ep.Gaussian(b, observed=[1.0, 2.0])))
    second = first.update(ep.FactorGraph(ep.Gaussian(b[[1]], observed=[2.0])))
    assert second["a"].mean() == 0.5
    assert_allclose(second["b"].mean(), [0.5, 4 / 3])
    third = second.update(ep.FactorGraph(ep.Gaussian(a, observed=1.0)))
    assert_allclose(third["a"].mean(), 2 / 3)
    assert_allclose(third["b"].mean(), [0.5, 4 / 3])


def test_one_learned_operator_serves_all_batches():
    rng = np.random.default_rng(2)
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))

    def model(count):
        X = rng.normal(size=(count, 2))
        y = (rng.uniform(size=count) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).astype(int)
        z = ep.Variable("z", ep.Normal, plate=count)
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y))

    learned = ep.Learned(ep.Quadrature(), initial=40)
    post = ep.infer(model(64), learned, rng=0)
    for _ in range(3):
        post = post.update(model(64), rng=0)
    assert post.oracles["Logistic(z)"] is learned
    assert any(note.startswith("messages of Logistic(z) are approximate, and an update") for note in post.report.notes)
    assert post.report.counts["Logistic(z): predicted"] > post.report.counts["Logistic(z): asked of the oracle"]


def test_batches_that_cannot_be_added_are_refused_in_words():
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=1.0)))
    with pytest.raises(KindError, match="batch is a Sum; expected a FactorGraph of the new factors"):
        post.update(ep.Gaussian(mu, observed=1.0))
    other = ep.Variable("nu", ep.Normal(0.0, 1.0))
    with pytest.raises(InputError, match="the batch shares no variable with the posterior of 'mu'"):
        post.update(ep.FactorGraph(ep.Gaussian(other, observed=1.0)))
    again = ep.Variable("mu", ep.Normal(0.0, 1.0))
    with pytest.raises(InputError, match="'mu' of the batch is another Variable of that name: pass the same object"):
        post.update(ep.FactorGraph(ep.Gaussian(again, observed=1.0)))
    z = ep.Variable("z", ep.Normal, plate=2)
    rows = ep.FactorGraph(ep.Sum(mu, out=z), ep.Gaussian(z, observed=[1.0, 2.0]))
    with pytest.raises(
        InputError, match="'z' has a plate and no prior, and an earlier batch used it: make another Variable"
    ):
        ep.infer(rows).update(rows)
    x = ep.Variable("x", ep.Normal)
    flat = ep.infer(ep.FactorGraph(ep.Gaussian(mu, x), ep.Gaussian(other, observed=1.0)))
    assert flat["x"].is_proper()
    silent = ep.infer(ep.FactorGraph(ep.Sum(x, ep.Variable("y", ep.Normal), out=1.0), ep.Gaussian(mu, observed=1.0)))
    with pytest.raises(InputError, match="the belief about 'x' is improper, and cannot be the prior of a batch"):
        silent.update(ep.FactorGraph(ep.Gaussian(x, observed=1.0)))


def test_what_ties_separate_beliefs_together_is_lost_with_a_note():
    rng = np.random.default_rng(3)
    a, u = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=3)
    groups, y = np.arange(30) % 3, rng.normal(size=30)

    def model(rows):
        return ep.FactorGraph(ep.Sum(a, u[groups[rows]], out=y[rows], precision=1.0))

    whole, parts = ep.infer(model(slice(None))), streamed(model(slice(15)), [model(slice(15, 30))])
    assert whole.report.notes == ()
    assert parts["a"].sd() < 0.95 * whole["a"].sd()
    assert parts.report.status == "converged, but means and standard deviations may be off"
    (note,) = parts.report.notes
    assert note.startswith("'a', 'u': earlier factors tie these numbers together")
    # Members of a plate may be tied through what they share; those that nothing ties are not.
    members = ep.infer(model(slice(15))).update(ep.FactorGraph(ep.Gaussian(u, observed=y[:3])))
    assert any(note.startswith("'u': earlier factors tie these numbers together") for note in members.report.notes)
    alone = ep.infer(ep.FactorGraph(ep.Gaussian(u, observed=y[:3]), ep.Gaussian(a, observed=1.0)))
    again = alone.update(ep.FactorGraph(ep.Gaussian(u, observed=y[:3]), ep.Gaussian(a, observed=1.0)))
    assert again.report.notes == ()


def test_a_loaded_posterior_has_the_variables_that_later_factors_need(tmp_path):
    w = ep.Variable("w", ep.Normal(0.0, 4.0))
    post = mm.load(mm.save(ep.infer(ep.FactorGraph(ep.Gaussian(w, observed=3.0))), tmp_path / "post"))
    other = ep.FactorGraph(ep.Gaussian(ep.Variable("w", ep.Normal(0.0, 4.0)), observed=1.0))
    with pytest.raises(InputError, match=r"which is posterior\.variables\['w'\], also after mm\.load"):
        post.update(other)
    later = post.update(ep.FactorGraph(ep.Gaussian(post.variables["w"], observed=1.0)))
    assert float(later[w.name].mean()) == pytest.approx(4 / (2 + 1 / 4))


def test_the_status_after_batches_that_are_not_linear_says_what_is_lost():
    """Each batch of few rows of a decay is remembered as a normal belief; the status was "converged", also later."""
    rng = np.random.default_rng(22)
    w, found = ep.Variable("w", ep.MultivariateNormal([2.0, -1.0], np.diag([4.0, 1.0]))), None

    def density(w, t, y):
        return -((y - w[0] * jnp.exp(-jnp.exp(w[1]) * t)) ** 2) / 0.18

    for _ in range(2):
        t = rng.uniform(0, 3, 3)
        y = 1.5 * np.exp(-0.5 * t) + 0.3 * rng.normal(size=3)
        batch = ep.FactorGraph(ep.Density(density, w, t, y))
        found = ep.infer(batch, rng=0) if found is None else found.update(batch, rng=0)
    assert found.report.status == "converged, but means and standard deviations may be off"
    assert any("does not revise those of earlier batches" in note for note in found.report.notes)
    z = ep.Variable("z", ep.Normal, plate=1)
    after = found.update(ep.FactorGraph(ep.Dot([[1.0, 0.0]], w, z), ep.Gaussian(z, observed=[1.4])))
    assert after.report.status == "converged, but means and standard deviations may be off"


def test_what_was_taken_apart_stays_in_the_status():
    """A + B was observed twice, then A: the status was "converged" again."""
    a, b = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("b", ep.Normal(0.0, 4.0))
    both = ep.FactorGraph(ep.Sum(a, b, out=2.0, precision=100.0))
    found = ep.infer(both).update(both)
    assert found.report.status == "converged, but means and standard deviations may be off"
    later = found.update(ep.FactorGraph(ep.Gaussian(a, observed=1.0)))
    assert later.report.status == "converged, but means and standard deviations may be off"
    assert sum("earlier factors tie these numbers together" in note for note in later.report.notes) == 1


def test_a_number_that_a_batch_lacks_and_an_earlier_factor_tied_to_it_is_noted():
    """A + B was observed, then A: the belief about B stayed as it was, without a word."""
    a, b = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("b", ep.Normal(0.0, 4.0))
    first = ep.infer(ep.FactorGraph(ep.Sum(a, b, out=2.0, precision=100.0)))
    found = first.update(ep.FactorGraph(ep.Gaussian(a, observed=1.0)))
    assert found.report.status == "converged, but some beliefs were not updated"
    assert any(
        note.startswith("'b': earlier factors tie these numbers to those of a batch that")
        for note in found.report.notes
    )
    # Later batches do not make up for it.
    c = ep.Variable("c", ep.Normal(0.0, 4.0))
    for batch in ([ep.Gaussian(a, observed=1.1)], [ep.Gaussian(b, observed=1.0)], [ep.Sum(a, c, out=2.0)]):
        later = found.update(ep.FactorGraph(*batch))
        assert later.report.status == "converged, but some beliefs were not updated", batch
    both = ep.infer(ep.FactorGraph(ep.Gaussian(a, observed=0.0), ep.Gaussian(b, observed=0.0)))
    assert both.update(ep.FactorGraph(ep.Gaussian(a, observed=1.0))).report.status == "converged"


def test_a_plate_that_a_batch_lacks_is_noted_too():
    """Eight schools and then their mean: beliefs about the schools stayed as they were, "converged"."""
    mu, theta = ep.Variable("mu", ep.Normal(0.0, 100.0)), ep.Variable("theta", ep.Normal, plate=4)
    schools = ep.infer(ep.FactorGraph(ep.Gaussian(mu, theta, precision=1.0), ep.Gaussian(theta, observed=[1.0] * 4)))
    found = schools.update(ep.FactorGraph(ep.Gaussian(mu, precision=100.0, observed=5.0)))
    assert found.report.status == "converged, but some beliefs were not updated"
    # A plate of new rows takes the place of the earlier one.
    again = ep.Variable("theta", ep.Normal, plate=3)
    rows = ep.FactorGraph(ep.Gaussian(mu, again, precision=1.0), ep.Gaussian(again, observed=[1.0] * 3))
    assert schools.update(rows).report.status == "converged"
    assert found.update(rows).report.status == "converged"


def test_a_batch_that_did_not_converge_is_remembered():
    chain = [ep.Variable(f"x{j}", ep.Normal(0.0, 10.0)) for j in range(6)]
    steps = [ep.Gaussian(*pair, precision=1.0) for pair in itertools.pairwise(chain)]
    first = ep.infer(ep.FactorGraph(*steps, ep.Gaussian(chain[-1], precision=9.0, observed=4.0)), sweeps=1)
    assert not first.report.converged
    found = first
    for _ in range(2):
        found = found.update(ep.FactorGraph(ep.Gaussian(chain[0], observed=1.0)))
    assert found.report.status == f"converged, but an earlier batch {first.report.status}"


def test_labels_that_updates_take_apart_are_not_advised_a_normal_belief():
    a, b = (ep.Variable(name, ep.Categorical, dimension=2) for name in "ab")
    first = ep.infer(ep.FactorGraph(ep.Table([[0.4, 0.1], [0.1, 0.4]], a, b)))
    (note,) = first.update(ep.FactorGraph(ep.Table([0.9, 0.1], a))).report.notes
    assert "left beliefs about them as they were: they may be off by any amount, also after later batches" in note
    assert note.endswith("and so may the log evidence: give all rows to one run of infer")
    note = first.update(ep.FactorGraph(ep.Table([0.9, 0.1], a), ep.Table([0.9, 0.1], b))).report.notes[0]
    assert note.endswith("may be off: give all rows to one run of infer")


def test_a_plate_that_returns_after_another_of_its_name_is_refused(tmp_path):
    # It was taken as new: the mean was off by a third of its standard deviation, "converged".
    mu = ep.Variable("mu", ep.Normal(0.0, 9.0))
    first, second = (ep.Variable("a", ep.Normal(0.0, 1.0), plate=plate) for plate in (3, 2))

    def rows(a, y):
        return ep.FactorGraph(ep.Sum(mu, a, out=np.array(y), precision=4.0))

    start = ep.infer(rows(first, [2.0, 3.0, 1.0]))
    assert start.update(rows(first, [2.0, 3.0, 1.0]))["a"].shape == (3,)
    found = start.update(rows(second, [2.0, 0.0]))
    for later in (found, found.update(rows(second, [1.0, 0.0]))):
        with pytest.raises(InputError, match=r"'a' of the batch is a plate of an earlier batch, .* 'a 1' and 'a 2'"):
            later.update(rows(first, [2.0, 3.0, 1.0]))
        mm.save(later, tmp_path / "stream.mm")
        assert mm.load(tmp_path / "stream.mm")["mu"].mean() == later["mu"].mean()
        copy.deepcopy(later)
    # In another order, from the same start, it is new.
    other = ep.infer(rows(second, [2.0, 0.0])).update(rows(first, [2.0, 3.0, 1.0]))
    assert other["a"].shape == (3,)
