"""What is saved is loaded bit for bit, whatever it is."""

import dataclasses
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import meanmap as mm
from meanmap import bp, ep, families
from meanmap.core.saved.encode import state


def same(a, b) -> bool:
    """Equal in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return same(jax.random.key_data(a), jax.random.key_data(b))
    if isinstance(a, np.ndarray | jax.Array):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and a.shape == b.shape and (a.tolist() == b.tolist() or a.tobytes() == b.tobytes())
    if isinstance(a, float | np.floating):
        return np.array(a).tobytes() == np.array(b).tobytes()
    if scipy.sparse.issparse(a):
        return same(a.toarray(), b.toarray())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if not isinstance(a, type) and (dataclasses.is_dataclass(a) or hasattr(a, "__dict__")):
        return same(state(a), state(b))
    return a == b


def round_trip(value, tmp_path):
    return mm.load(mm.save(value, tmp_path / "value.meanmap"))


RNG = np.random.default_rng(0)
SAMPLE = RNG.normal(size=(30, 2))
LABELS = np.array(["red", "blue", "green"])[RNG.integers(3, size=30)]

PLAIN = {
    "nothing": None,
    "numbers": [0, -(2**70), 1.5, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, True, False],
    "text": ["", "mü\n", "\x00"],
    "nested": {"a": (1, [2, {"b": ()}]), ("edge", 3): {4: None}, 2.5: "x"},
    "scalars": [np.float64(0.1), np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("word"), np.uint64(2**64 - 1)],
    "arrays": [np.arange(6).reshape(2, 3).T, np.zeros((0, 3), np.float32), np.array(2.0), RNG.random(3) < 0.5],
    "odd floats": np.array([np.nan, -0.0, np.inf, 5e-324]),
    "half": np.array([1.0, 2.0], np.float16),
    "complex": np.array([[1 + 2j, -0.5j]]),
    "one complex": np.array(1 + 2j),
    "words": np.array([["a", "bcd"], ["", "é"]]),
    "one long word": np.array([["a", "é" * 300], ["", "b"]]),
    "lists in an array": np.fromiter([[1, 2], (3, "x"), range(4)], object, 3),
    "objects": np.array(["a", None, 3, 2.5], dtype=object),
    "jax": jnp.arange(3.0),
    "key": jax.random.key(3),
    "sparse": scipy.sparse.csr_array(np.eye(4)),
    "type": families.Normal,
    "ranges": [range(5), range(3, -4, -2), range(0)],
}


@pytest.mark.parametrize("kind", [">f8", ">i4", ">U3", ">c16"])
def test_arrays_of_the_other_byte_order(kind, tmp_path):
    values = np.arange(3).astype(kind)
    assert (round_trip(values, tmp_path) == values).all()


@pytest.mark.parametrize("value", [np.ma.masked_equal([1.0, 2.0], 2.0), np.arange(3, dtype=np.longdouble)])
def test_masks_and_long_floats_are_refused(value, tmp_path):
    with pytest.raises(TypeError, match=r"this cannot be saved: it (has masked|holds)"):
        mm.save(value, tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values(name, tmp_path):
    assert same(PLAIN[name], round_trip(PLAIN[name], tmp_path))


def made():
    """One of each kind of thing that a user would save."""
    kernel = mm.kernels.RBF(0.7)
    table = mm.Table.of({"a": SAMPLE[:, 0], "colour": LABELS, "b": SAMPLE})
    model = mm.KernelGraph([("a", "b")]).fit({"a": SAMPLE[:, 0], "b": SAMPLE[:, 1]})
    return {
        "sum of kernels": 2.0 * kernel * mm.kernels.Matern([0.3, 1.0]) + mm.kernels.Laplace(3.0) ** 2,
        "kernel of a table": mm.default_kernel(table),
        "table": table,
        "features": mm.features.Fourier.draw(kernel, like=SAMPLE, n_features=8, rng=0),
        "element": mm.embed(SAMPLE, kernel) - mm.embed(SAMPLE + 1.0, kernel),
        "operator": mm.condition(SAMPLE[:, 0], SAMPLE[:, 1]),
        "posterior": mm.embeddings.posterior_embedding(SAMPLE, kernel),
        "test": mm.two_sample_test(SAMPLE, SAMPLE + 1.0, n_permutations=99, rng=0),
        "graph": mm.Graph.of([("a", "b"), ("b", "c")]),
        "model": model,
        "family": families.Normal(SAMPLE[:, 0], np.ones(30)),
        "report": mm.core.Report("converged", True, 3, [1.0, 0.1]),
    }


@pytest.fixture(scope="module")
def everything():
    return made()


NAMES = ["sum of kernels", "kernel of a table", "table", "features", "element", "operator", "posterior"]
NAMES += ["test", "graph", "model", "family", "report"]


@pytest.mark.parametrize("name", NAMES)
def test_things_that_were_learned(name, everything, tmp_path):
    assert same(everything[name], round_trip(everything[name], tmp_path))


def test_what_is_loaded_works(everything, tmp_path):
    grid = np.linspace(-1, 1, 5)
    assert np.array_equal(round_trip(everything["element"], tmp_path)(SAMPLE), everything["element"](SAMPLE))
    operator = round_trip(everything["operator"], tmp_path)
    assert np.array_equal(operator([0.3]).mean(), everything["operator"]([0.3]).mean())
    loaded, model = round_trip(everything["model"], tmp_path), everything["model"]
    density, expected = loaded.query({"a": 0.3})["b"].density(grid), model.query({"a": 0.3})["b"].density(grid)
    assert np.allclose(
        density, expected, rtol=1e-12, atol=0
    )  # the same bits in another order in memory round differently
    assert str(round_trip(everything["test"], tmp_path)) == str(everything["test"])


PAIRS = SAMPLE[:, 0], SAMPLE[:, 0] + SAMPLE[:, 1]


def test_fields_on_grids_after_queries(tmp_path):
    """What they keep for the next query is not saved."""
    field = mm.KernelField(mm.graphs.grid(2, 2)[0]).fit(PAIRS, observed=PAIRS)
    ask = lambda model: model.query({0: 0.3}, observed=[np.nan, 0.1, np.nan, 0.2])  # noqa: E731
    before = mm.save(field, tmp_path / "before").stat().st_size
    beliefs = ask(field)
    assert ask(round_trip(field, tmp_path))[3].mean() == pytest.approx(beliefs[3].mean(), rel=1e-9)
    assert (tmp_path / "value.meanmap").stat().st_size < before + 100


def test_what_queries_answer(tmp_path):
    beliefs = mm.KernelField([(0, 1), (1, 2)]).fit(PAIRS).query({0: 0.3})
    loaded = round_trip(beliefs, tmp_path)
    assert (type(loaded), loaded.targets, str(loaded)) == (bp.Beliefs, beliefs.targets, str(beliefs))
    assert [loaded[name].mean() for name in loaded] == [beliefs[name].mean() for name in beliefs]
    graph = bp.DiscreteGraph([(0, 1)], np.array([[2.0, 1.0], [1.0, 2.0]]))
    exact = graph.query({0: 1})
    np.testing.assert_array_equal(round_trip(graph, tmp_path).query({0: 1})[1], exact[1])
    assert round_trip(exact, tmp_path).log_evidence == exact.log_evidence


def test_posteriors_and_ready_models_go_on(tmp_path):
    data = {"x": SAMPLE[:, 0], "w": SAMPLE[:, 1]}
    model = ep.models.logistic_regression(data, SAMPLE[:, 0] + SAMPLE[:, 1] > 0)
    loaded = round_trip(model, tmp_path)
    assert str(loaded) == str(model)
    assert same(loaded.predict(data), model.predict(data))
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    graph = ep.FactorGraph(ep.Student(mu, observed=SAMPLE[:, 0]))
    begun = ep.infer(graph, sweeps=2, rng=0)
    loaded = round_trip(begun, tmp_path)
    assert str(loaded) == str(begun)
    assert str(ep.infer(graph, start_from=loaded)["mu"]) == str(ep.infer(graph, start_from=begun)["mu"])


def test_grids_of_pixels_after_restoring(tmp_path):
    image = np.add.outer(np.arange(6.0), np.arange(6.0))
    seen = image + RNG.normal(size=image.shape)
    model = mm.KernelGrid().fit(image, seen, rng=0)
    restored = model.restore(seen)
    loaded = round_trip(model, tmp_path)
    np.testing.assert_allclose(loaded.restore(seen).mean(), restored.mean(), rtol=1e-9)
    assert same(round_trip(restored, tmp_path).mean(), restored.mean())


def test_an_array_that_occurs_twice_is_stored_once(tmp_path):
    big = np.zeros(10_000)
    once = mm.save([big], tmp_path / "once").stat().st_size
    assert mm.save([big, big, (big,)], tmp_path / "thrice").stat().st_size < once + 200


def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path):
    with pytest.raises(TypeError, match=r"cannot be saved: \['f'\]\[1\] is <function"):
        mm.save({"f": [1, lambda x: x]}, tmp_path / "f")
    with pytest.raises(TypeError, match="of type Fraction"):
        mm.save(Fraction(1, 2), tmp_path / "f")
    with pytest.raises(TypeError, match=r"is an array of \[\('a'"):
        mm.save(np.zeros(2, [("a", float)]), tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_times_and_durations_are_saved(tmp_path):
    for times in (np.array(["2020-01-01", "NaT"], "datetime64[D]"), np.array([[1], [-5]], "timedelta64[ns]")):
        loaded = mm.load(mm.save({"all": times, "first": times.ravel()[0]}, tmp_path / "times"))
        np.testing.assert_array_equal(loaded["all"], times)
        assert loaded["all"].dtype == times.dtype
        assert loaded["first"] == times.ravel()[0]
