"""Operators as files: read back whole, refused where they do not belong, and never by pickle."""

import json

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="operators are kept in safetensors files")

from safetensors.numpy import load_file, save_file

from meanmap import ep
from meanmap.core import InputError, KindError
from meanmap.ep.learned import KernelRegression, MessageOperator, load_operator, save_operator
from meanmap.ep.learned.files import _read

Z = ep.Variable("z", ep.Normal)
LABEL = ep.Density(lambda z: -np.log1p(0) - z**2 / 3, Z)


def log_heavy(z):
    return -2 * np.log1p(0) - z * z


HEAVY = ep.Density(log_heavy, Z)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    came = ep.Normal(rng.normal(size=64), rng.uniform(0.1, 2, 64))
    small = KernelRegression(d_in=50, d_out=100, tune=False)
    operator = MessageOperator(small).learn((came[:40],), _answer(came[:40])).learn((came[40:],), _answer(came[40:]))
    path = tmp_path_factory.mktemp("operators") / "heavy.safetensors"
    save_operator(operator, path, HEAVY)
    return operator, path


def _answer(came):
    shrunk = ep.Normal.from_natural(0.3 * np.tanh(came.precision_mean), 1 / (1 + came.variance))
    return ep.Answer((shrunk,), np.log(came.variance))


def test_what_is_read_predicts_what_was_saved(saved):
    operator, path = saved
    again = load_operator(path, HEAVY)
    new = ep.Normal([0.0, 0.7, 3.0], 1.0)
    one, two = operator.predict((new,)), again.predict((new,))
    np.testing.assert_allclose(one.numbers, two.numbers, atol=1e-9)
    np.testing.assert_allclose(one.deviation, two.deviation, rtol=1e-6)
    assert again.fitted_on == 40
    assert path.stat().st_size < 10_000


def test_a_file_for_another_factor_power_or_family_is_refused(saved, tmp_path):
    _, path = saved
    with pytest.raises(InputError, match=r"was trained for Density .*log_heavy; expected Density .*<lambda>#"):
        load_operator(path, LABEL)
    with pytest.raises(InputError, match=r"trained at power 1; expected 0\.5"):
        load_operator(path, HEAVY, power=0.5)
    with pytest.raises(InputError, match=r"trained on messages of Normal; the given factor has Gamma"):
        load_operator(path, ep.Density(log_heavy, ep.Variable("t", ep.Gamma)))
    with pytest.raises(KindError, match="expected a trained MessageOperator"):
        save_operator(MessageOperator(), tmp_path / "empty", HEAVY)


def test_damaged_and_foreign_files_are_refused(saved, tmp_path):
    _, path = saved
    with pytest.raises(InputError, match="there is no file"):
        load_operator(tmp_path / "none", HEAVY)
    bad = tmp_path / "bad"
    for content in (b"", b"\x80\x04K\x01.", path.read_bytes()[:100], path.read_bytes()[:-8]):
        bad.write_bytes(content)
        with pytest.raises(InputError, match="no safetensors file, or a damaged one"):
            load_operator(bad, HEAVY)
    header, tensors = _read(path)
    save_file(load_file(path), bad)
    with pytest.raises(InputError, match="holds no meanmap operator"):
        load_operator(bad, HEAVY)
    for change, said in (
        ({"version": 9}, "has version 9; this library reads version 1"),
        ({"fitted_on": 10_000}, "is damaged: it lacks"),
        ({"settings": {"learner": "eval", "target": "derivatives"}}, "is damaged: it lacks 'eval'"),
    ):
        save_file(tensors, bad, metadata={"meanmap": json.dumps({**header, **change})})
        with pytest.raises(InputError, match=said):
            load_operator(bad, HEAVY)
    del tensors["outgoing.0"]
    save_file(tensors, bad, metadata={"meanmap": json.dumps(header)})
    with pytest.raises(InputError, match=r"lacks 'outgoing\.0'"):
        load_operator(bad, HEAVY)
