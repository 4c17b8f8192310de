"""Operators as files: settings, card, and the training messages.

The training messages, with the seed of the features, take less space than the covariance and determine it: a file is
read by training again on the same messages, which takes a moment.
"""

from pathlib import Path
from typing import Any

from meanmap.core.errors import InputError, KindError
from meanmap.core.saved.saving import load, save
from meanmap.ep.factor import FactorLike
from meanmap.ep.learned.card import Card
from meanmap.ep.learned.operator import MessageOperator
from meanmap.ep.learned.recorded import Recorded, families_into, families_of
from meanmap.ep.learned.regression import Regression
from meanmap.ep.learned.signature import Signature

__all__ = ["load_operator", "read_card", "save_operator"]

FORMAT, VERSION = "meanmap operator", 2


def save_operator(
    operator: MessageOperator, path: str | Path, factor: FactorLike, power: float = 1.0, card: Card | None = None
) -> Path:
    """Write a trained operator to a file of `meanmap.save`, marked with the factor that it was trained for.

    Parameters
    ----------
    operator : MessageOperator
        Trained.
    path : path
        Such as "logistic.operator".
    factor : BlackBox or Density
        Whose messages it sends.
    power : float
        α of power EP in which it was trained.
    card : Card, optional
        Information for users of the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from meanmap import ep
    >>> factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    >>> came = ep.Normal(np.linspace(-3, 3, 100), np.geomspace(0.1, 2, 100)), np.ones(100)
    >>> operator = ep.learned.MessageOperator().learn(came, ep.extending.ask(factor, came[0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ep.learned.save_operator(operator, folder + "/logistic.operator", factor)
    ...     again = ep.learned.load_operator(path, factor)
    >>> bool((again.predict(came).numbers == operator.predict(came).numbers).all())
    True
    """
    if not isinstance(operator, MessageOperator) or not operator.fitted or operator.seen is None:
        raise KindError(f"operator is {operator!r}; expected a trained MessageOperator.")
    signature = Signature.of(factor, power)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "factor": signature.factor,
        "reads": signature.content,
        "power": float(power),
        "fitted_on": operator.fitted_on,
        "settings": operator.settings(),
        "seen": operator.seen,
        "beside": operator.beside,
        "card": card,
    }
    return save(content, path)


def load_operator(path: str | Path, factor: FactorLike, power: float = 1.0) -> MessageOperator:
    """Read a trained operator for a factor.

    Raises
    ------
    InputError
        If the file is not an operator file, is damaged, or was trained for another factor, other families or another
        power.
    """
    content = _read(path)
    wanted = Signature.of(factor, power)
    if content["factor"] != wanted.factor:
        raise InputError(f"{path} was trained for {content['factor']}; expected {wanted.factor}, the given factor.")
    # Earlier files identified functions by name alone or described them differently, and chose settings from answered
    # messages only.
    if content["reads"] != wanted.content:
        raise InputError(
            f"{path} was trained for another {wanted.factor}: the function of that name has other code, default "
            "arguments, or values that it takes from around it (or the file is of another version of Python)."
        )
    if content["power"] != wanted.power:
        raise InputError(f"{path} was trained at power {content['power']:g}; expected {wanted.power:g}.")
    seen, of_factor = content["seen"], families_into(factor)
    kinds = families_of(seen.incoming)
    if kinds != of_factor:
        raise InputError(
            f"{path} was trained on messages of {', '.join(kinds)}; the given factor has {', '.join(of_factor)}."
        )
    settings = dict(content["settings"])
    learner, target, first = settings.pop("learner"), settings.pop("target"), content["fitted_on"]
    known = {each.__name__: each for each in Regression.__subclasses__()}
    if learner not in known or not 0 < first <= len(seen):
        raise InputError(
            f"{path} has a learner {learner!r} fitted on {first} of {len(seen)} messages; expected one of "
            f"{', '.join(known)}, and a number of its messages."
        )
    try:
        operator = MessageOperator(known[learner](**settings), target, seen[:first])
    except TypeError as problem:
        raise InputError(f"{path} has settings of another version: {problem}.") from problem
    operator = operator.refit(also=content["beside"])
    return operator.learn_recorded(seen[first:]) if first < len(seen) else operator


def read_card(path: str | Path) -> Card:
    """The card in the file of an operator."""
    card = _read(path)["card"]
    if card is None:
        raise InputError(f"{path} has no card: give save_operator one, ep.learned.Card.of(operator, factor, fresh).")
    return card


def _read(path: str | Path) -> dict[str, Any]:
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}.")
    content = load(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} holds no {FORMAT}: expected a file that ep.learned.save_operator wrote.")
    if content.get("version") != VERSION:
        raise InputError(f"{path} has version {content.get('version')!r}; this library reads version {VERSION}.")
    kinds = {"factor": str, "reads": str, "power": float, "fitted_on": int, "settings": dict, "seen": Recorded}
    kinds |= {"beside": tuple | None, "card": Card | None}
    for name, kind in kinds.items():
        if name not in content or not isinstance(content[name], kind):
            raise InputError(f"{path} is damaged: it lacks {name}, or has it in another form.")
    return content
