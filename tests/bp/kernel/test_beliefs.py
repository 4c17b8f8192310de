"""What can be asked of a belief: ratios at points that were never seen, densities, retrieval, modes, pictures."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import meanmap as mm
from meanmap.bp.edges.coordinates import CoordinatesByScale
from meanmap.bp.kernel.belief_weights import Factor, MessageWeights
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.embeddings import PointEmbedding
from tests.bp.kernel.test_kernel_graph import EDGES, KERNELS, RIDGE, make_table


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def model(table):
    return mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(table)


def algorithm_one_at(table, evidence, at):
    """The product of messages to d at other points, from a and c through b, by dense inverses."""
    m, kernel = len(table["a"]), mm.kernels.RBF(0.8)
    inverse = {name: np.linalg.inv(kernel(table[name]) + m * RIDGE * np.eye(m)) for name in table}
    heard = np.ones(m)
    for name in evidence:
        seen = kernel(table[name], [evidence[name]])[:, 0]
        heard = heard * (kernel(table["b"]) @ inverse["b"] @ inverse[name] @ seen)
    return kernel(at, table["d"]) @ inverse["d"] @ heard


def test_weights_of_400_messages_neither_underflow_nor_forget(model):
    """200 messages prefer one side and 200 the other, each by up to e⁶: compared in logarithms."""
    sample = model.samples.nodes[model.graph.index("d")]
    with Door():
        coordinates = CoordinatesByScale(sample).at(1.0)
    slope = np.clip(sample.points[:, 0], -1, 1)
    sides = np.stack([np.exp(-3 * slope), np.exp(3 * slope)])
    coefficients = np.linalg.lstsq(coordinates.values, sides.T, rcond=None)[0].T
    factors = tuple(Factor.of(coordinates, coefficients[[i % 2]], False) for i in range(400))
    points = np.linspace(-1, 1, 5)[:, None]
    with Door():
        values = [[np.log(f.at(at, 1e-6)[0]) for f in factors[:2]] for at in (sample.points, points)]
    logs, elsewhere = (200 * np.sum(each, axis=0) for each in values)
    assert logs.max() < -745  # what no float can hold
    expected = np.exp(logs - logs.max())
    weights = MessageWeights.of(expected[None] / expected.sum(), factors, sample, None, 1e-6)
    np.testing.assert_allclose(weights.at(sample.points)[0], expected / expected.sum(), rtol=1e-9)
    others = weights.take(slice(1)).at(points)[0]
    np.testing.assert_allclose(others, np.exp(elsewhere - logs.max()) / expected.sum(), rtol=1e-9)


def test_the_ratio_at_new_points_is_the_last_product_of_algorithm_one(model, table):
    evidence, at = {"a": 0.5, "c": 0.4}, np.linspace(-1.5, 1.5, 7)
    belief = model.query(evidence, targets=["d"], floor=None)["d"]
    expected = algorithm_one_at(table, evidence, at) / algorithm_one_at(table, evidence, table["d"]).mean()
    np.testing.assert_allclose(belief.ratio(at), expected, rtol=1e-3, atol=1e-5)


def test_ratios_at_the_data_are_the_weights(model, table):
    batch = {"a": np.array([0.5, -0.2, 0.9]), "c": 0.4, "b": lambda x: np.exp(-((x - 0.3) ** 2))}
    beliefs = model.query(batch)
    for name in ("b", "d"):
        belief = beliefs[name]
        np.testing.assert_allclose(belief.ratio(table[name]), belief.weights * 60, rtol=1e-6)
        np.testing.assert_allclose(belief[1].ratio(table[name]), belief.ratio(table[name])[1], rtol=1e-12)
        assert belief[1:].ratio(table[name][:4]).shape == (2, 4)
    np.testing.assert_allclose(model.query()["a"].ratio([0.0, 5.0]), 1.0)


def test_many_queries_have_the_ratios_of_single_ones(table):
    """More than are answered at once."""
    model = mm.KernelGraph([("a", "b")], kernels={"a": KERNELS["a"], "b": KERNELS["b"]}, ridge=RIDGE).fit(table)
    seen = np.linspace(-1, 1, 150)
    together = model.query({"a": seen}, targets=["b"])["b"].ratio([0.2, -0.4])
    for q in (0, 127, 128, 149):
        alone = model.query({"a": seen[q]}, targets=["b"])["b"].ratio([0.2, -0.4])
        np.testing.assert_allclose(together[q], alone, rtol=1e-8)


def test_densities_integrate_to_one(model):
    grid = np.linspace(-6, 6, 1201)
    density = model.query({"a": np.array([0.5, -0.5])}, targets=["b"])["b"].density(grid)
    assert (density >= 0).all()
    np.testing.assert_allclose(density.sum(axis=-1) * (grid[1] - grid[0]), 1, atol=0.02)


def test_what_has_no_ratio_says_so():
    belief = mm.condition(np.arange(20.0), np.arange(20.0) ** 2)([3.0])
    with pytest.raises(KindError, match="known at its own points only"):
        belief.ratio([1.0])
    with pytest.raises(KindError, match="known at its own points only"):
        PointEmbedding(mm.kernels.RBF(1.0), np.zeros((2, 1)), np.ones(2)).ratio([1.0])


def sentences(rng, n):
    """Pairs of texts: the first in words of one language, the second in those of another, about one of three things."""
    words = [
        ("hund katze maus", "dog cat mouse"),
        ("auto zug rad", "car train bike"),
        ("brot milch ei", "bread milk egg"),
    ]
    topic = rng.integers(3, size=n)

    def text(side):
        return [" ".join(rng.permutation(words[t][side].split())[:2]) for t in topic]

    return topic, text(0), text(1)


def test_texts_are_retrieved_from_candidates_that_were_never_seen():
    rng = np.random.default_rng(0)
    _, german, english = sentences(rng, 90)
    kernels = {"de": mm.kernels.Spectrum(3), "en": mm.kernels.Spectrum(3)}
    model = mm.KernelGraph([("de", "en")], kernels=kernels).fit({"de": german, "en": english})
    topic, asked, candidates = sentences(rng, 12)
    ratio = model.query({"de": asked}, targets=["en"])["en"].ratio(candidates)
    assert ratio.shape == (12, 12)
    np.testing.assert_array_equal(topic[ratio.argmax(axis=1)], topic)


def test_angles_are_found_across_their_seam():
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 300)
    seen = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(300, 2))
    kernels = {"angle": mm.kernels.Torus(0.5)}
    model = mm.KernelGraph([("angle", "seen")], kernels=kernels).fit({"angle": angle, "seen": seen})
    truth, candidates = np.array([0.05, 3.0, 6.2]), np.linspace(0, 2 * np.pi, 73)
    belief = model.query({"seen": np.stack([np.cos(truth), np.sin(truth)], axis=1)}, targets=["angle"])["angle"]
    best = candidates[belief.ratio(candidates).argmax(axis=1)]
    assert np.abs((best - truth + np.pi) % (2 * np.pi) - np.pi).max() < 0.2


@pytest.mark.slow
def test_rotations_are_found_on_their_group():
    """A camera turns and sees the directions of two stars, with noise. The mode is a rotation near the truth."""
    rng = np.random.default_rng(2)
    stars = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    turns = Rotation.from_rotvec(0.8 * rng.normal(size=(400, 3)))
    seen = np.stack([turns.apply(star) for star in stars], axis=1).reshape(400, 6) + 0.05 * rng.normal(size=(400, 6))
    model = mm.KernelGraph([("turn", "seen")], kernels={"turn": mm.kernels.Rotation()}).fit(
        {"turn": turns, "seen": seen}
    )
    truth = Rotation.from_rotvec([[0.3, -0.2, 0.4], [-0.5, 0.1, 0.0]])
    looks = np.stack([truth.apply(star) for star in stars], axis=1).reshape(2, 6)
    belief = model.query({"seen": looks}, targets=["turn"])["turn"]
    modes = Rotation.from_matrix(belief.mode())
    assert (modes * truth.inv()).magnitude().max() < 0.35
    candidates = Rotation.concatenate([Rotation.from_rotvec([[1.5, 0, 0], [0, 1.5, 0]]), truth])
    np.testing.assert_array_equal(belief.ratio(candidates).argmax(axis=1), [2, 3])


@pytest.fixture(scope="module")
def wells():
    """A state with two modes, a sensor that sees its square, a label that is right four times in five."""
    rng = np.random.default_rng(3)
    state = np.where(rng.random(150) < 0.5, 1.0, -1.0) + 0.3 * rng.normal(size=150)
    well = np.where((state > 0) == (rng.random(150) < 0.8), "right", "left")
    table = {"state": state, "sensor": state**2 + 0.2 * rng.normal(size=150), "well": well}
    return table, mm.KernelGraph([("state", "sensor"), ("state", "well")]).fit(table)


@pytest.mark.slow
def test_modes_of_two_wells_are_in_the_wells(wells):
    belief = wells[1].query({"sensor": 1.2, "well": "right"}, targets=["state"])["state"]
    assert abs(belief.mode() - np.sqrt(1.2)) < 0.25


def test_labels_have_probabilities(wells):
    table, model = wells
    beliefs = model.query({"state": [1.0, -1.0]}, targets=["well", "sensor"])
    found = beliefs.probabilities("well")
    assert set(found) == {"left", "right"}
    np.testing.assert_allclose(found["left"] + found["right"], 1)
    share = np.mean(table["well"][table["state"] > 0.5] == "right")
    assert abs(found["right"][0] - share) < 0.1
    np.testing.assert_allclose(found["right"], beliefs["well"].expect((table["well"] == "right").astype(float)))
    with pytest.raises(KindError, match="'sensor' has no labels"):
        beliefs.probabilities("sensor")


def test_pictures_of_models_and_beliefs(wells):
    _, model = wells
    axes = model.plot()
    assert {text.get_text() for text in axes.texts} == {"", "state", "sensor", "well"}
    beliefs = model.query({"sensor": [1.2, 0.4]})
    places = beliefs.plot()
    assert [place.get_title() for place in places] == ["state", "sensor", "well"]
    curve = places[0].lines[0]
    np.testing.assert_allclose(curve.get_ydata(), beliefs["state"][0].density(curve.get_xdata()))
    assert [line.get_xdata()[0] for line in places[1].lines] == [1.2, 0.4]
    heights = [bar.get_height() for bar in places[2].patches]
    np.testing.assert_allclose(sum(heights), 2)
    with pytest.raises(KindError, match="ax has 1 entries; expected one for each of 3"):
        beliefs.plot(axes)
    network = mm.bp.DiscreteGraph([("a", "b")], np.eye(2) + 1)
    assert [bar.get_height() for bar in network.query({"a": 0}, targets=["b"]).plot()[0].patches] == pytest.approx(
        [2 / 3, 1 / 3]
    )
    assert {text.get_text() for text in network.plot().texts} == {"", "a", "b"}
