"""Growing chains: the same beliefs as the whole chain laid out, at a constant cost, and better with hindsight."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp import Stream
from meanmap.core.errors import InputError, ParameterError, ShapeError

KERNELS = {name: mm.kernels.RBF(0.8) for name in ("now", "next", "seen")}
RIDGE = 0.01


def make_series(n=121, seed=0):
    rng = np.random.default_rng(seed)
    state = np.zeros(n)
    for i in range(1, n):
        state[i] = 0.9 * state[i - 1] + 0.4 * rng.normal()
    return state, state + 0.5 * rng.normal(size=n)


@pytest.fixture(scope="module")
def series():
    return make_series()


@pytest.fixture(scope="module")
def model(series):
    state, seen = series
    table = {"now": state[:-1], "next": state[1:], "seen": seen[:-1]}
    return mm.KernelGraph([("now", "next"), ("now", "seen")], kernels=KERNELS, ridge=RIDGE).fit(table)


@pytest.fixture(scope="module")
def laid_out(series):
    """Four steps as one tree, each edge with the same pairs."""
    state, seen = series
    steps, sights = [(f"x{i}", f"x{i + 1}") for i in range(3)], [(f"x{i}", f"y{i}") for i in range(4)]
    pairs = dict.fromkeys(steps, (state[:-1], state[1:])) | dict.fromkeys(sights, (state[:-1], seen[:-1]))
    kernels = {name: mm.kernels.RBF(0.8) for edge in pairs for name in edge}
    return mm.KernelGraph(list(pairs), kernels=kernels, ridge=RIDGE).fit(pairs)


# Evidence about what is seen, none at the third step; and the state itself at the second.
SEQUENCES = {
    "seen": ([{"seen": 0.3}, {"seen": -0.5}, {}, {"seen": 0.9}], {"y0": 0.3, "y1": -0.5, "y3": 0.9}, None),
    "state": ([{"seen": 0.3}, {"now": -0.2}, {}, {"seen": 0.9}], {"y0": 0.3, "x1": -0.2, "y3": 0.9}, 1),
}


def same_direction(a, b):
    np.testing.assert_allclose(a / np.abs(a).max(), b / np.abs(b).max(), atol=1e-6)


def ratio(model, name, points, evidence):
    return model.query(evidence, targets=[name], floor=None)[name].ratio(points)


@pytest.mark.parametrize("name", SEQUENCES)
def test_filtering_and_smoothing_are_those_of_the_whole_chain(model, laid_out, name):
    sequence, evidence, observed = SEQUENCES[name]
    stream = Stream.of(model, "now", "next", lag=3, floor=None)
    points = stream.slice.samples.nodes[stream.slice.graph.index("now")].points[:, 0]
    for i, step in enumerate(sequence):
        stream = stream.step(step)
        if i == observed:
            assert stream.belief.mean() == step["now"]
            continue
        known = {key: value for key, value in evidence.items() if int(key[1]) <= i}
        same_direction(stream.belief.weights, ratio(laid_out, f"x{i}", points, known))
    assert stream.length == 4
    for i, belief in enumerate(stream.smooth()):
        if i == observed:
            assert belief.mean() == sequence[i]["now"]
        else:
            same_direction(belief.weights, ratio(laid_out, f"x{i}", points, evidence))


def test_prediction_is_a_step_without_evidence(model):
    stream = Stream.of(model, "now", "next").step({"seen": 1.5})
    ahead = stream.predict(2)
    np.testing.assert_allclose(ahead.weights, stream.step().step().belief.weights, atol=1e-8)
    assert 0 < ahead.mean() < stream.predict().mean() < stream.belief.mean() + 0.2
    seen = Stream.of(model, "now", "next").step({"now": 1.0})
    np.testing.assert_allclose(seen.predict().weights, seen.step().belief.weights, atol=1e-8)


def test_many_chains_at_once_are_the_single_ones(model):
    values = np.array([[0.5, -0.5], [1.0, 0.2], [-0.3, 0.1]])
    together = Stream.of(model, "now", "next", lag=2)
    for row in values:
        together = together.step({"seen": row})
    together = together.step()
    for chain in range(2):
        alone = Stream.of(model, "now", "next", lag=2)
        for row in values:
            alone = alone.step({"seen": row[chain]})
        alone = alone.step()
        np.testing.assert_allclose(together.belief.weights[chain], alone.belief.weights, rtol=1e-9)
        for ours, single in zip(together.smooth(), alone.smooth(), strict=True):
            np.testing.assert_allclose(ours.weights[chain], single.weights, rtol=1e-9)


def test_what_is_kept_does_not_grow_with_the_chain(model):
    stream = Stream.of(model, "now", "next", lag=2)
    for _ in range(10):
        stream = stream.step({"seen": 0.1})
    assert (stream.length, len(stream.steps), len(stream.smooth())) == (10, 3, 3)
    assert repr(stream) == "Stream('now' after 10 steps)"
    assert stream.report is not None
    assert "data behind evidence['seen']" in stream.report.measures


def test_the_past_helps_and_hindsight_helps_more(model):
    """A chain of 200 steps that was not learned from: errors of what is seen, filtered, smoothed."""
    state, seen = make_series(201, seed=1)
    stream = Stream.of(model, "now", "next", lag=4)
    filtered, smoothed = [], []
    for value in seen:
        stream = stream.step({"seen": value})
        filtered.append(stream.belief.mean())
        smoothed.append(stream.smooth()[0].mean())
    raw, now, later = seen[:-4] - state[:-4], np.array(filtered[:-4]) - state[:-4], np.array(smoothed[4:]) - state[:-4]
    for worse, better in ((raw, now), (now, later)):
        gain = worse**2 - better**2
        assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))


def test_what_is_no_chain_is_refused(model, laid_out):
    with pytest.raises(InputError, match=r"no edge \('next', 'seen'\)"):
        Stream.of(model, "next", "seen")
    with pytest.raises(InputError, match="'now' has 2 neighbours; expected 'next' alone"):
        Stream.of(model, "next", "now")
    with pytest.raises(InputError, match="no node 'then'"):
        Stream.of(model, "now", "then")
    with pytest.raises(ParameterError, match="lag is -1"):
        Stream.of(model, "now", "next", lag=-1)
    empty = Stream.of(model, "now", "next")
    for ask in (lambda: empty.belief, empty.predict, empty.smooth):
        with pytest.raises(InputError, match="has not taken a step yet"):
            ask()
    with pytest.raises(ParameterError, match="steps is 0"):
        empty.step().predict(0)
    with pytest.raises(InputError, match="no node 'next'"):
        empty.step({"next": 1.0})
    with pytest.raises(ShapeError, match="is for 3 chains; earlier steps had 2"):
        empty.step({"seen": [0.1, 0.2]}).step({"seen": [0.1, 0.2, 0.3]})
