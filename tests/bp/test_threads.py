"""Fitted models asked from several threads at once, and after a pickle: the answers are those of one after another."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap import bp
from meanmap.graphs import Factors, Residual
from meanmap_papers import rivals

THREADS = 8
QUERIES = 32
RING = [(i, (i + 1) % 5) for i in range(5)]


def pairs(m=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    return x, 0.8 * x + 0.6 * rng.normal(size=m)


def discrete():
    table = np.random.default_rng(0).random((2, 2)) + 0.1
    return bp.DiscreteGraph(RING, table), lambda model, q: model.query({0: q % 2, 2: np.array([0.2, q + 1.0])})[3]


def cliques():
    rng = np.random.default_rng(1)
    factors = Factors([2] * 4, ((0, 1, 2), (1, 2, 3)), (rng.random((2, 2, 2)), rng.random((2, 2, 2))))
    return bp.CliqueTree(factors), lambda model, q: model.query({0: np.array([1.0, q + 1.0])})[3]


def gaussian_graph():
    matrix = 3 * np.eye(6) - np.diag(np.ones(5), 1) - np.diag(np.ones(5), -1)
    return bp.GaussianGraph(matrix), lambda model, q: model.query({q % 5: float(q)})[5].mean()


def field(kind, **settings):
    def made():
        hidden, seen = pairs(seed=1)
        model = kind(RING, **settings).fit(pairs(), observed=(hidden, seen), likelihood=bp.NoiseLikelihood)

        def ask(model, q):
            drawn = {"rng": q} if kind in (rivals.MixtureField, rivals.ParticleField) else {}
            seen = np.full(5, np.nan)
            seen[q % 5] = q / QUERIES
            evidence = {2: lambda x: np.exp(-((np.asarray(x) - q / QUERIES) ** 2))}
            return model.query(evidence, [1], observed=seen, **drawn)[1].mean()

        return model, ask

    return made


def kernel_graph():
    x, y = pairs()
    table = {"a": x, "b": y, "c": y + 0.5 * np.random.default_rng(3).normal(size=len(x))}
    model = mm.KernelGraph([("a", "b"), ("b", "c")]).fit(table)
    return model, lambda model, q: model.query({"a": q / QUERIES}, ["c"])["c"].mean()


def kernel_grid():
    image = np.random.default_rng(4).normal(size=(12, 12)).cumsum(axis=0)
    model = mm.KernelGrid().fit(image, image + 0.3 * np.random.default_rng(5).normal(size=(12, 12)))
    return model, lambda model, q: model.restore(image + q / QUERIES).mean()


def factor_graph():
    rng = np.random.default_rng(6)
    factors = Factors([2] * 4, ((0, 1, 2), (1, 2, 3)), (rng.random((2, 2, 2)), rng.random((2, 2, 2))))
    return bp.FactorGraph(factors), lambda model, q: model.query({0: np.array([1.0, q + 1.0])})[3]


def three_columns():
    x, y = pairs(seed=7)
    return {"a": x, "b": y, "c": np.where(x + y > 0, "up", "down")}


def rows(q):
    """Two rows with gaps in other places."""
    return pd.DataFrame({"a": [q / QUERIES, np.nan], "b": [np.nan, -q / QUERIES], "c": ["up", None]})


def bayesian_network():
    model = bp.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")]).fit(three_columns())

    def ask(model, q):
        seen, done = (
            model.query({"c": "up", "b": q / QUERIES}, ["a"], rng=q),
            model.do({"a": q / QUERIES}, ["b"], rng=q),
        )
        return [seen["a"].mean(), done["b"].mean(), model.score(rows(q).iloc[:1].assign(b=0.1 * q))[0]]

    return model, ask


def dependency_network():
    model = bp.DependencyNetwork().fit(three_columns())
    return model, lambda model, q: np.append(
        model.impute(rows(q))[["a", "b"]].to_numpy().ravel(), model.query({"c": "up"}, ["a"])["a"].mean() + q
    )


def tree_of_rows():
    model = mm.KernelGraph([("a", "b"), ("b", "c")]).fit(three_columns())
    return model, lambda model, q: model.impute(rows(q))[["a", "b"]].to_numpy()


def forest_grid():
    image = np.random.default_rng(4).normal(size=(24, 24)).cumsum(axis=0)
    model = bp.ForestGrid().fit([image], [image + 0.3 * np.random.default_rng(5).normal(size=(24, 24))], rng=0)
    seen = np.where(np.random.default_rng(8).random((24, 24)) < 0.1, np.nan, image)
    return model, lambda model, q: model.restore(seen + q / QUERIES).mean()


SLOW = pytest.mark.slow
MODELS = {
    "discrete": discrete,
    "cliques": cliques,
    "gaussian graph": gaussian_graph,
    "gaussian field": field(rivals.GaussianField),
    "factor graph": factor_graph,
    "bayesian network": pytest.param(bayesian_network, marks=SLOW),
    "dependency network": pytest.param(dependency_network, marks=SLOW),
    "forest grid": pytest.param(forest_grid, marks=SLOW),
    "rows of a tree": pytest.param(tree_of_rows, marks=SLOW),
    "residual": field(rivals.GaussianField, schedule=Residual()),
    "bins": pytest.param(field(rivals.DiscretizedField), marks=SLOW),
    "mixtures": pytest.param(field(rivals.MixtureField, components=20), marks=SLOW),
    "particles": pytest.param(field(rivals.ParticleField, particles=20), marks=SLOW),
    "kernel field": pytest.param(field(mm.KernelField), marks=SLOW),
    "kernel graph": pytest.param(kernel_graph, marks=SLOW),
    "kernel grid": pytest.param(kernel_grid, marks=SLOW),
}


@pytest.fixture
def often():
    """Threads take turns after every few steps, so that whatever they share is soon overwritten."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("made", MODELS.values(), ids=MODELS)
def test_threads_and_pickles_answer_bit_for_bit(made):
    model, ask = made()
    alone = [np.asarray(ask(model, q)) for q in range(QUERIES)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda q: np.asarray(ask(model, q)), range(QUERIES)))
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(ask(pickle.loads(pickle.dumps(model)), 3), alone[3])


def test_an_engine_does_not_change():
    engine = bp.engine.Engine([(0, 1)], np.zeros(2, dtype=int))
    with pytest.raises(FrozenInstanceError):
        engine.schedule = Residual()
