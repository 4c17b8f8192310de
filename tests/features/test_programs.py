"""Features whose number depends on the data share compiled programs, and are the same numbers."""

import jax
import numpy as np
import pytest

import meanmap as mm
from meanmap.core.door import Door
from meanmap.features import Concatenated, Nystrom, PivotedCholesky
from meanmap.features.base import transformed
from meanmap.features.states.feature_map import FeatureMap
from meanmap.kernels import RBF, Laplace

X = np.random.default_rng(4).normal(size=(400, 2))


def landmarks(n):
    with Door(X) as door:
        return Nystrom.at(RBF(1.0), X[:n], door)


MAPS = {
    "pivots": lambda n: PivotedCholesky.fit(Laplace(1.0), X, tolerance=1e-12, max_rank=n),
    "landmarks": landmarks,
    "both": lambda n: Concatenated(RBF(1.0) + Laplace(1.0), (landmarks(n), MAPS["pivots"](n + 3))),
}


@pytest.fixture
def compiled():
    programs = []
    note = lambda event, _, **__: programs.append(event)  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(note)
    yield lambda: programs.count("/jax/core/compile/backend_compile_duration")
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture(autouse=True)
def inside():
    """In double precision."""
    with Door(X):
        yield


@pytest.mark.parametrize("made", MAPS.values(), ids=MAPS)
def test_padded_maps_hold_the_same_features_and_zeros(made):
    phi = made(43)
    padded, kept = phi.padded()
    whole = np.asarray(padded.transform(X))
    assert whole.shape[1] == padded.size > phi.size
    np.testing.assert_allclose(whole[:, kept], np.asarray(phi.transform(X)), atol=1e-9)
    np.testing.assert_allclose(transformed(phi, X), np.asarray(phi.transform(X)), atol=1e-9)
    assert not np.delete(whole, kept, axis=1).any()


def test_maps_of_like_size_share_a_program(compiled):
    maps = [MAPS["pivots"](n) for n in range(41, 49)]
    transformed(maps[0], X)
    before = compiled()
    assert [transformed(phi, X).shape[1] for phi in maps] == list(range(41, 49))
    assert compiled() == before


@pytest.mark.parametrize("made", MAPS.values(), ids=MAPS)
def test_sums_are_those_of_the_features(made):
    phi = made(43)
    for correlated in (False, True):
        mapped = FeatureMap.of(phi, X, np.float64, correlated=correlated)
        moments = mapped.moments(mapped.sums([X[:150], X[150:]]))
        np.testing.assert_allclose(moments.mean, transformed(phi, X).mean(axis=0), atol=1e-6)
        found = np.diag(moments.covariance())
        np.testing.assert_allclose(found, transformed(phi, X).var(axis=0, ddof=1), rtol=1e-2, atol=1e-6)


def test_an_effect_of_new_data_compiles_nothing(compiled):
    """Its features are those of 256 rows, of which rounding leaves 240 to 256: one or two numbers of eight."""

    def once(seed):
        x = np.random.default_rng(seed).normal(size=(2, 1500))
        return mm.two_sample_effect(x[0][:, None], x[1][:, None] + 0.2, rng=0)

    for seed in range(3):
        once(seed)
    before = compiled()
    for seed in range(3, 7):
        once(seed)
    assert compiled() == before
