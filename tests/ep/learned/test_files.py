"""Operators as files: read back whole, refused where they do not belong, and never by pickle."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("safetensors", reason="operators are kept in safetensors files")

from meanmap import ep
from meanmap.core import EmptyError, InputError, KindError, ParameterError
from meanmap.ep.learned import (
    READY,
    Card,
    KernelRegression,
    MessageOperator,
    Recorded,
    build_operator,
    load_operator,
    read_card,
    save_operator,
)
from meanmap.io import load, save

Z = ep.Variable("z", ep.Normal)
LABEL = ep.Density(lambda z: -np.log1p(0) - z**2 / 3, Z)


def log_heavy(z):
    return -2 * np.log1p(0) - z * z


HEAVY = ep.Density(log_heavy, Z)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    came = ep.Normal(rng.normal(size=64), rng.uniform(0.1, 2, 64))
    small = KernelRegression(d_in=50, d_out=100, tune=None)
    operator = MessageOperator(small).learn((came[:40],), _answer(came[:40])).learn((came[40:],), _answer(came[40:]))
    path = tmp_path_factory.mktemp("operators") / "heavy.safetensors"
    save_operator(operator, path, HEAVY)
    return operator, path


def test_an_operator_is_shown_in_one_line(saved):
    shown = repr(saved[0])
    assert shown.startswith("MessageOperator(")
    assert "\n" not in shown
    assert len(shown) < 500


def _answer(came):
    shrunk = ep.Normal.from_natural(0.3 * np.tanh(came.precision_mean), 1 / (1 + came.var()))
    return ep.extending.Answer((shrunk,), np.log(came.var()))


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
        with pytest.raises(InputError, match="cannot be loaded"):
            load_operator(bad, HEAVY)
    save([1.0], bad)
    with pytest.raises(InputError, match="holds no meanmap operator"):
        load_operator(bad, HEAVY)
    content = load(path)
    settings = content["settings"]
    for change, said in (
        ({"version": 9}, "has version 9; this library reads version 2"),
        ({"fitted_on": 10_000}, "a learner 'KernelRegression' fitted on 10000 of 64 messages"),
        ({"settings": {**settings, "learner": "eval"}}, "a learner 'eval'"),
        ({"settings": {**settings, "new": 1}}, "settings of another version: .*'new'"),
        ({"seen": None}, "is damaged: it lacks seen"),
    ):
        save({**content, **change}, bad)
        with pytest.raises(InputError, match=said):
            load_operator(bad, HEAVY)


def test_a_card_says_what_was_learned_and_how_far_it_is_off(saved, tmp_path):
    operator, path = saved
    with pytest.raises(InputError, match="has no card: give save_operator one"):
        read_card(path)
    rng = np.random.default_rng(1)
    came = ep.Normal(rng.normal(size=50), rng.uniform(0.1, 2, 50))
    fresh = Recorded.of((came,), _answer(came))
    card = Card.of(operator, HEAVY, fresh, advice=("at night.",))
    truth, said = came * _answer(came).messages[0], came * operator.predict((came,)).messages[0]
    assert card.median == pytest.approx(np.median(truth.kl(said)), rel=1e-6)
    assert (card.learned, card.audited, card.ranges[0][0]) == (64, 50, "z, mean")
    assert 0.1 <= card.ranges[1][1] < card.ranges[1][2] <= 2
    save_operator(operator, tmp_path / "with card", HEAVY, card=card)
    assert read_card(tmp_path / "with card") == card
    for expected in ("errors are not known", "from 64 messages", "50 other messages", "at night"):
        assert expected in " ".join(str(card).split())
    with pytest.raises(EmptyError, match="learned nothing yet"):
        Card.of(MessageOperator(), HEAVY, fresh)


def test_ready_operators_are_refused_by_name():
    with pytest.raises(ParameterError, match=r"name is 'logit' \(did you mean 'logistic'\?\)"):
        build_operator("logit")
    with pytest.raises(ParameterError, match="messages"):
        build_operator("logistic", messages=10)


@pytest.mark.slow
@pytest.mark.parametrize("name", READY)
def test_operators_of_common_factors_hold_what_their_cards_say(name, tmp_path):
    operator, card, factor = build_operator(name, rng=5)
    assert READY[name].within
    assert card.high < 0.1  # the worst is poisson, .02 to .03: the card says so
    assert card.z < 2
    path = save_operator(operator, tmp_path / name, factor, card=card)
    assert path.stat().st_size < 250_000
    # On messages drawn by another seed, after a journey through the file.
    again, (factor, incoming) = load_operator(path, factor), READY[name].draw(1000, np.random.default_rng(99))
    exact = ep.extending.ask(factor, *(m for m in incoming if not isinstance(m, np.ndarray)))
    other = Card.of(again, factor, Recorded.of(incoming, exact))
    assert other.high < 5 * card.high
    assert other.new < 2 * card.new + 0.01


def test_an_operator_whose_widths_saw_more_than_was_answered_is_read_as_it_was(saved, tmp_path):
    operator, _ = saved
    wide = operator.refit(also=(ep.Normal(np.linspace(-40, 40, 30), np.geomspace(0.1, 200, 30)),))
    again = load_operator(save_operator(wide, tmp_path / "wide", HEAVY), HEAVY)
    new = (ep.Normal([0.0, 0.7, 30.0], 1.0),)
    np.testing.assert_allclose(again.predict(new).numbers, wide.predict(new).numbers, atol=1e-9)
    assert np.abs(operator.predict(new).numbers - wide.predict(new).numbers).max() > 1e-3
    outside = (ep.Normal([0.0, 30.0, 90.0], 1.0),)
    assert again.range.outside(outside).tolist() == wide.range.outside(outside).tolist()


LEVEL = 1.0


class Quadratic:
    def __init__(self, c):
        self.c = c

    def __call__(self, z):
        return -self.c * z * z


def quadratic(c, table=None):
    def log_factor(z):
        return -c * z * z + (0 if table is None else table[-1])

    return log_factor


def defaults(c):
    def log_factor(z, c=c):
        return -c * z * z

    return log_factor


def nested(c):
    return lambda z: (lambda y: -c * y)(z * z)


def leveled(z):
    return -LEVEL * z * z


LARGE = np.arange(5000.0)


@pytest.mark.parametrize(
    "pair",
    [
        (quadratic(1.0), quadratic(5.0)),
        (defaults(1.0), defaults(5.0)),
        (nested(1.0), nested(5.0)),
        (Quadratic(1.0), Quadratic(5.0)),
        (Quadratic(1.0).__call__, Quadratic(5.0).__call__),
        (functools.partial(jnp.multiply, 1.0), functools.partial(jnp.multiply, 5.0)),
        (quadratic(1.0, LARGE), quadratic(1.0, LARGE + (LARGE == 2500))),
        (lambda z: -z * z, lambda z: -3 * z * z),
    ],
)
def test_functions_that_differ_in_anything_are_not_taken_for_each_other(pair, saved, tmp_path):
    one, other = (ep.Density(function, Z, name="same") for function in pair)
    path = save_operator(saved[0], tmp_path / "one", one)
    assert load_operator(path, one).fitted
    with pytest.raises(InputError, match="was trained for"):
        load_operator(path, other)


def test_a_global_that_changed_is_another_function(saved, tmp_path, monkeypatch):
    factor = ep.Density(leveled, Z)
    path = save_operator(saved[0], tmp_path / "level", factor)
    monkeypatch.setitem(globals(), "LEVEL", 5.0)
    with pytest.raises(
        InputError, match=r"another Density .*leveled: the function of that name has other code, default"
    ):
        load_operator(path, factor)


@pytest.mark.parametrize("name", ["reads", "beside"])
def test_files_that_lack_a_part_are_damaged(saved, tmp_path, name):
    content = load(saved[1])
    del content[name]
    with pytest.raises(InputError, match=f"is damaged: it lacks {name}"):
        load_operator(save(content, tmp_path / "part"), HEAVY)
