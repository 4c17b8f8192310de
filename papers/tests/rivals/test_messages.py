"""Forests and networks as regressions of messages: they learn, and do not know what they have not seen."""

import numpy as np
import pytest

from meanmap import ep
from meanmap.core import ParameterError
from meanmap.ep.learned import MessageOperator
from meanmap_papers.rivals import Forest, Network
from meanmap_papers.rivals.trees import OnlineTree

LABEL = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)


def cavities(n, seed, low=0.05):
    rng = np.random.default_rng(seed)
    return ep.Normal(2 * rng.normal(size=n), np.exp(rng.uniform(np.log(low), np.log(3), n)))


@pytest.mark.parametrize("kind", ["breiman", "extremely randomised"])
def test_a_forest_does_not_know_what_it_has_not_seen(kind):
    came, away = cavities(256, 0), ep.Normal(np.linspace(5, 9, 8), 1.0)
    forest = MessageOperator(Forest(kind)).learn((came,), ep.extending.ask(LABEL, came)).predict((away,)).novelty
    assert np.ptp(forest) < 1e-9 or not (np.diff(forest) > 0).all()


@pytest.mark.parametrize("regression", [Forest(), Forest("breiman"), Network()])
def test_rivals_learn_the_same_messages(regression):
    came, new = cavities(512, 0), cavities(256, 9)
    operator = MessageOperator(regression).learn((came,), ep.extending.ask(LABEL, came))
    more = cavities(256, 10)
    operator = operator.learn((more,), ep.extending.ask(LABEL, more))
    exact, said = ep.extending.ask(LABEL, new), operator.predict((new,))
    assert np.median((new * exact.messages[0]).kl(new * said.messages[0])) < 1e-3


def test_a_tree_splits_its_leaves_online_and_the_one_before_stays_as_it_was():
    from sklearn.tree import ExtraTreeRegressor

    rng = np.random.default_rng(15)
    rows, targets = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=(60, 2))
    start = OnlineTree.grow(ExtraTreeRegressor, rows, targets, np.arange(20))
    tree, before = start, start.predict(rows)
    for first in range(20, 60, 8):
        tree = tree.learn(ExtraTreeRegressor, rows, targets, np.arange(first, first + 8), fewest=1)
    # One row in each leaf: what was learned is known exactly, whenever it came.
    np.testing.assert_allclose(tree.predict(rows), targets)
    np.testing.assert_array_equal(start.predict(rows), before)
    waiting = start.learn(ExtraTreeRegressor, rows, targets, np.arange(20, 21), fewest=3)
    leaf = int(start.tree.apply(rows[20:21])[0])
    mean = targets[[*start.members[leaf], 20]].mean(0)
    np.testing.assert_allclose(waiting.predict(rows[20:21])[0], mean)


def test_a_kind_of_forest_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="expected 'breiman'"):
        Forest("random")
