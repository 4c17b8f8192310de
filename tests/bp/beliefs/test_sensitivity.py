"""What evidence does to answers, and the most probable values together: against laws that are known."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

import meanmap as mm
from meanmap.core.errors import InputError, KindError

RNG = np.random.default_rng(0)
Z, E, F = RNG.normal(size=(3, 1500))
TABLE = {"x": Z + E, "y": Z + E + 2 * Z + F, "z": Z}
FEW = [ExtraTreesRegressor(12, min_samples_leaf=5, random_state=0)]


@pytest.fixture(scope="module")
def network():
    return mm.bp.BayesianNetwork([("z", "x"), ("z", "y"), ("x", "y")]).fit(TABLE)


def test_beliefs_move_as_their_quantiles_do(network):
    """y given x = 1 and z = 1 is N(3, 1), given x alone N(2, 3), given z alone N(3, 2), and N(0, 11) without any."""
    found = mm.bp.sensitivity(network, {"x": 1.0, "z": 1.0}, "y", rng=0)
    u = RNG.normal(size=100_000)
    truth = [np.mean(np.abs((3 + u) - (m + s * u))) for m, s in ((2, 3**0.5), (3, 2**0.5), (0, 11**0.5))]
    np.testing.assert_allclose([found.moved["z"], found.moved["x"], found.alone], truth, rtol=0.2, atol=0.05)
    assert [line.split()[-1] for line in str(found).splitlines()[1:3]] == ["'z'", "'x'"]


def test_labels_move_by_probability():
    graph = mm.bp.DiscreteGraph([("a", "b")], {("a", "b"): np.array([[0.4, 0.1], [0.1, 0.4]])})
    assert mm.bp.sensitivity(graph, {"a": 0}, "b").moved["a"] == pytest.approx(0.3)
    rng = np.random.default_rng(1)
    a = rng.normal(size=400)
    model = mm.bp.BayesianNetwork([("a", "k")]).fit({"a": a, "k": np.where(a > 0, "up", "down")})
    assert 0.35 < mm.bp.sensitivity(model, {"a": 2.0}, "k", rng=0).moved["a"] < 0.6


def test_what_cannot_be_asked_is_refused(network):
    with pytest.raises(InputError, match="expected a mapping from names to values"):
        mm.bp.sensitivity(network, {}, "y")
    points = np.random.default_rng(0).normal(size=(60, 2))
    model = mm.KernelGraph([("p", "q")]).fit({("p", "q"): (points, points[:, 0])})
    with pytest.raises(KindError, match="neither a single number nor a label"):
        mm.bp.sensitivity(model, {"q": 0.1}, "p")


@pytest.mark.parametrize("kind", ["bayesian", "dependency", "tree"])
def test_the_most_probable_values_of_a_normal_law_are_its_conditional_means(kind, network):
    if kind == "bayesian":
        model, truth = network, {"y": 2.0, "z": 0.5}
    else:
        chain = {"x": TABLE["x"][:600], "z": TABLE["z"][:600]}
        model = (
            mm.bp.DependencyNetwork(FEW).fit(chain) if kind == "dependency" else mm.KernelGraph([("x", "z")]).fit(chain)
        )
        truth = {"z": 0.5}
    found = mm.bp.most_probable(model, {"x": 1.0}, rng=0)
    assert found.values["x"] == 1.0
    # Densities are flat at their modes: within .7 standard deviations of z the density falls by a fifth only.
    for name, value in truth.items():
        assert abs(found.values[name] - value) < (0.8 if name == "z" else 1.2)
    frame = {name: np.array([value]) for name, value in found.values.items()}
    assert model.score(frame)[0] == pytest.approx(found.score)
    drawn = model.sample(300, {"x": 1.0}, rng=1)
    assert (model.score(drawn) <= found.score + 0.3).all()


def test_the_most_probable_labels_are_found_by_counting():
    rng = np.random.default_rng(0)
    a = rng.choice(["u", "v", "w"], 900, p=[0.5, 0.3, 0.2])
    b = np.where(rng.random(900) < 0.8, a, rng.choice(["u", "v"], 900))
    c = np.where(rng.random(900) < 0.7, b, "w")
    model = mm.bp.BayesianNetwork([("a", "b"), ("b", "c")]).fit({"a": a, "b": b, "c": c})
    whole = [(i, j, k) for i in "uvw" for j in "uvw" for k in "uvw"]
    scores = model.score(dict(zip("abc", map(np.array, zip(*whole, strict=True)), strict=True)))
    found = mm.bp.most_probable(model, rng=0)
    assert tuple(found.values.values()) == whole[int(np.argmax(scores))]
    seen = mm.bp.most_probable(model, {"c": "v"}, rng=0)
    best = max((score, each) for score, each in zip(scores, whole, strict=True) if each[2] == "v")
    assert tuple(seen.values.values()) == best[1]
