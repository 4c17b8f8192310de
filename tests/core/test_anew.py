"""Kernels, features, oracles and likelihoods of users follow what their code reads, though programs are kept."""

from types import SimpleNamespace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core.anew import foreign
from meanmap.core.reads import reads

WIDTH = 1.0
HELD = {"width": 1.0}
X, Y = np.linspace(-1, 1, 24)[:, None], np.linspace(-0.5, 2, 24)[:, None]


def closing_over():
    width = 1.0

    def read():
        return width

    def write(value):
        nonlocal width
        width = value

    return read, write


read_width, write_width = closing_over()


class OfAGlobal(mm.kernels.Kernel):
    def evaluate(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * WIDTH))


class OfADictionary(mm.kernels.Kernel):
    def evaluate(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * HELD["width"]))


class OfAClosure(mm.kernels.Kernel):
    def evaluate(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * read_width()))


class OfAnAttribute(mm.kernels.Kernel):
    held: SimpleNamespace = eqx.field(static=True)

    def evaluate(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * self.held.width))


class Setting:
    """Equal to itself alone, whatever its width is."""

    width = 1.0


class Waves(mm.features.Features):
    """cos(j x / WIDTH)."""

    kernel: mm.kernels.Kernel = mm.kernels.Linear()

    def check(self, points, argument):
        assert points.ndim == 2, argument

    @property
    def size(self):
        return 3

    def transform(self, x):
        return jnp.cos(x[:, :1] * jnp.arange(1.0, 4.0) / WIDTH)


class Shifted(ep.extending.Oracle):
    """Quadrature, off by a global."""

    def member(self, factor, incoming, power, key):
        answer = ep.Quadrature().member(factor, incoming, power, key)
        (message,) = answer.messages
        return eqx.tree_at(
            lambda a: a.messages, answer, (ep.Normal.from_natural(message.precision_mean + WIDTH, message.precision),)
        )


def set_widths(value, monkeypatch):
    monkeypatch.setitem(globals(), "WIDTH", value)
    monkeypatch.setitem(HELD, "width", value)
    write_width(value)


@pytest.mark.parametrize("kind", [OfAGlobal, OfADictionary, OfAClosure, OfAnAttribute])
def test_a_kernel_follows_what_its_code_reads(kind, monkeypatch):
    setting = Setting()
    kernel = kind(setting) if kind is OfAnAttribute else kind()
    for width in (1.0, 4.0, 1.0):
        set_widths(width, monkeypatch)
        setting.width = width
        expected = np.exp(-((X - Y.T) ** 2) / (2 * width))
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel.matvec(X, Y, np.ones(24)), expected.sum(1), rtol=1e-12)
        np.testing.assert_allclose((2.0 * kernel)(X, Y), 2 * expected, rtol=1e-12)


def test_tests_follow_what_a_kernel_reads(monkeypatch):
    found = {}
    for width in (1.0, 4.0):
        set_widths(width, monkeypatch)
        found[width] = mm.two_sample_test(X, Y, OfAGlobal(), n_permutations=19, rng=0).statistic
        plain = mm.two_sample_test(X, Y, mm.kernels.RBF(width**0.5), n_permutations=19, rng=0).statistic
        np.testing.assert_allclose(found[width], plain, rtol=1e-9)
    assert found[1.0] != found[4.0]


def test_features_follow_what_they_read(monkeypatch):
    for width in (1.0, 4.0):
        set_widths(width, monkeypatch)
        np.testing.assert_allclose(Waves()(X), np.cos(X * np.arange(1.0, 4.0) / width), rtol=1e-9, atol=1e-12)


def test_oracles_follow_what_they_read(monkeypatch):
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    model = ep.FactorGraph(ep.Density(lambda z: -(z**2) / 2, z))
    for width in (0.0, 1.0):
        set_widths(width, monkeypatch)
        assert ep.infer(model, messages=Shifted())["z"].mean() == pytest.approx(width / 2, abs=1e-6)


def test_what_the_library_made_is_not_looked_at():
    kernel = mm.kernels.RBF(1.0) * mm.kernels.OnColumns(mm.kernels.Delta(), "a") + mm.kernels.Linear()
    assert foreign((kernel, X, np.float64, len)) == []
    assert foreign(2.0 * OfAGlobal()) == [OfAGlobal]


def test_code_that_changed_nothing_is_read_the_same_twice():
    kernel = OfAnAttribute(Setting())
    for held in (OfAGlobal(), OfAClosure(), kernel, Waves(), Shifted()):
        found = reads(tuple(foreign(held)))
        held(X) if isinstance(held, mm.kernels.Kernel) else None
        assert found.complete
        assert found.digest() == reads(tuple(foreign(held))).digest()
