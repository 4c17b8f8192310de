"""Variables without a prior whose beliefs are no distributions are named, with what to type."""

import numpy as np
import pytest

from meanmap import ep


def note_of(*factors):
    post = ep.infer(ep.FactorGraph(*factors))
    assert "improper belief" in post.report.status or post.report.status == "converged, but a belief is improper"
    assert np.isnan(post.log_evidence)
    return post.report.notes[0]


def test_a_number_without_a_prior_is_named_with_what_to_type():
    x, y = ep.Variable("x", ep.Normal), ep.Variable("y", ep.Normal)
    assert note_of(ep.Gaussian(x, y, precision=1.0)) == (
        "'x' has no prior, and what is believed about it is not a distribution, so that there is no log "
        "evidence: give it a prior, such as ep.Variable('x', ep.Normal(0.0, 1.0))"
    )
    assert note_of(ep.Interval(x, 0.0)).endswith("give it a prior, such as ep.Variable('x', ep.Normal(0.0, 1.0))")


def test_what_is_computed_from_weights_without_a_prior_is_not_named():
    w, z = ep.Variable("w", ep.MultivariateNormal, dimension=2), ep.Variable("z", ep.Normal, plate=3)
    note = note_of(ep.Dot(np.eye(3)[:, :2], w, z), ep.Logistic(z, observed=[0, 1, 1]))
    assert note.startswith("'w' has no prior, ")
    assert note.endswith("such as ep.Variable('w', ep.MultivariateNormal.standard(2))")


@pytest.mark.parametrize("plate", [None, 2])
def test_data_that_say_enough_need_no_prior(plate):
    x = ep.Variable("x", ep.Normal, plate=plate)
    post = ep.infer(ep.FactorGraph(ep.Gaussian(x, observed=1.0 if plate is None else [1.0, 2.0], precision=2.0)))
    assert post.report.status == "converged"
    assert not any("has no prior" in note for note in post.report.notes)


def test_a_belief_under_a_name_that_is_nearly_known():
    post = ep.infer(ep.FactorGraph(ep.Gaussian(ep.Variable("slope", ep.Normal(0.0, 1.0)), observed=1.0)))
    with pytest.raises(KeyError, match="did you mean 'slope'"):
        post["slop"]
