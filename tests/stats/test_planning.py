"""A plan for each question, and what is refused."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import ParameterError

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("question", "data", "made"),
    [
        ("two samples", (X[:20], X[20:]), mm.stats.results.TwoSamplePlan),
        ("several samples", ([X[:20], X[20:]],), mm.stats.results.KSamplePlan),
        ("independence", (X[:, 0], X[:, 1]), mm.stats.results.IndependencePlan),
        ("joint independence", (X,), mm.stats.results.JointIndependencePlan),
        ("conditional independence", (X[:, 0], X[:, 1], X[:, 2]), mm.stats.results.ConditionalIndependencePlan),
    ],
)
def test_each_question_has_its_plan_and_settings_arrive(question, data, made):
    plan = mm.stats.plan(question, *data, rng=3)
    assert type(plan) is made
    assert plan.seed == 3


def test_other_questions_and_settings_are_refused():
    with pytest.raises(
        ParameterError, match=r"'two_samples' \(did you mean 'two samples'\?\); expected one of 'two samples', 'several"
    ):
        mm.stats.plan("two_samples", X, X)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(ParameterError, match="question is an ndarray; expected one of 'two samples'"):
        mm.stats.plan(X, X)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(TypeError, match="takes no seed=; here it is called rng: type rng=1"):
        mm.stats.plan("two samples", X, X, seed=1)
