"""How many values of messages came out low or below zero: counted by hand, for both ways to send them."""

import numpy as np
import pytest

from meanmap.bp.engine import EdgeMatrices, Engine, Given
from meanmap.bp.engine.atoms import outgoing, shares_sent
from meanmap.core.door import Door
from meanmap.graphs import Flooding, Graph, TwoPass

EDGES = [(0, 1), (1, 2), (1, 3)]
POINTS, QUERIES, FLOOR = 5, 2, 0.05


def counted_by_hand(matrices, own, known, values, floor):
    """The shares of low and of negative values among messages that are sent to points where something is possible."""
    directed = [*EDGES, *((b, a) for a, b in EDGES)]
    low, negative = [], []

    def message(e, query):
        if known[e, query]:
            return values[e, query]
        sender, receiver = directed[e]
        behind = [f for f, (source, target) in enumerate(directed) if target == sender and source != receiver]
        raw = np.prod([own[sender, query], *(message(f, query) for f in behind)], axis=0) @ matrices[e]
        return raw / np.abs(raw).max() if floor is None else np.maximum(raw / raw.max(), floor)

    for e, (sender, receiver) in enumerate(directed):
        for query in np.flatnonzero(~known[e]):
            behind = [f for f, (source, target) in enumerate(directed) if target == sender and source != receiver]
            raw = np.prod([own[sender, query], *(message(f, query) for f in behind)], axis=0) @ matrices[e]
            possible = own[receiver, query] > 0
            negative += list(raw[possible] < 0)
            low += list(raw[possible] < 0 if floor is None else raw[possible] <= floor * raw.max())
    return np.mean(low), np.mean(negative)


@pytest.mark.parametrize("floor", [None, FLOOR])
@pytest.mark.parametrize("schedule", [TwoPass(), Flooding()])
def test_shares_of_low_and_negative_values(schedule, floor):
    rng = np.random.default_rng(0)
    matrices = rng.normal(0.4, 0.5, size=(2 * len(EDGES), POINTS, POINTS))
    own = rng.uniform(0.5, 1.5, size=(4, QUERIES, POINTS))
    own[2, :, 3:] = 0  # fewer points than the others
    known = np.zeros((2 * len(EDGES), QUERIES), dtype=bool)
    known[2, 1] = True
    values = np.broadcast_to(np.linspace(0.2, 1.0, POINTS), (*known.shape, POINTS))
    with Door():
        engine = Engine(Graph.of(EDGES), np.arange(2 * len(EDGES)), schedule)
        found = engine.run(EdgeMatrices(matrices), own, Given(known, values), floor=floor)
    low, negative = counted_by_hand(matrices, own, known, values, floor)
    assert 0 < negative <= low < 1
    assert isinstance(found.low_share, float)
    assert any("values of messages" in note or "negative values" in note for note in found.report.notes)
    np.testing.assert_allclose([found.low_share, found.negative_share], [low, negative])
    if floor is not None:
        assert np.asarray(found.messages).min() == floor
    with Door():
        unread = engine.run(EdgeMatrices(matrices), own, Given(known, values), floor=floor, read=False)
        products = outgoing(unread.layout, unread.messages, own)
    np.testing.assert_allclose(shares_sent(unread.layout, products, matrices, own, known, floor), [low, negative])
    assert (unread.beliefs is None) == (unread.low_share is None) == isinstance(schedule, Flooding)
