"""Operators as files: settings and format in a JSON header, the messages they learned from as tensors; no pickle.

What an operator has seen, with the seed of its features, is smaller than its covariance, and says more: a file is read
by training again on the same messages, which takes a moment.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from meanmap import families
from meanmap.core.errors import InputError, KindError
from meanmap.core.files import write_whole
from meanmap.ep.learned.forest import Forest
from meanmap.ep.learned.kernel_regression import KernelRegression
from meanmap.ep.learned.network import Network
from meanmap.ep.learned.operator import MessageOperator
from meanmap.ep.learned.recorded import Recorded, families_of
from meanmap.ep.learned.signature import Signature
from meanmap.families import Family

__all__ = ["load_operator", "save_operator"]

FORMAT, VERSION = "meanmap operator", 1
# The header's entry, and what a file may hold at most: an operator is small.
_HEADER = "meanmap"
_FAMILIES = ("Normal", "Beta", "Gamma", "Bernoulli")
_LEARNERS = {each.__name__: each for each in (KernelRegression, Forest, Network)}


def save_operator(operator: MessageOperator, path: Any, factor: Any, power: float = 1.0) -> None:
    """Write a trained operator to a safetensors file, marked with the factor that it was trained for.

    Parameters
    ----------
    operator : MessageOperator
        Trained.
    path : path
        Such as "logistic.safetensors".
    factor : BlackBox or Density
        Whose messages it sends.
    power : float
        α of power EP in which it was trained.
    """
    from safetensors.numpy import save

    if not isinstance(operator, MessageOperator) or not operator.fitted or operator.seen is None:
        raise KindError(f"operator is {operator!r}; expected a trained MessageOperator.")
    seen, tensors = operator.seen, {}
    kinds = families_of(seen.incoming)
    for at, (came, went) in enumerate(zip(seen.incoming, seen.messages, strict=True)):
        tensors[f"incoming.{at}"] = np.stack(came.natural, -1) if isinstance(came, Family) else np.asarray(came)
        if went is not None:
            tensors[f"outgoing.{at}"] = np.stack(went.natural, -1)
    tensors["log_normaliser"] = seen.log_normaliser
    header = {
        "format": FORMAT,
        "version": VERSION,
        "factor": Signature.of(factor, power).factor,
        "power": float(power),
        "families": kinds,
        "fitted_on": operator.fitted_on,
        "settings": operator.settings(),
    }
    arrays = {name: np.ascontiguousarray(value, np.float64) for name, value in tensors.items()}
    write_whole(path, save(arrays, {_HEADER: json.dumps(header)}))


def load_operator(path: Any, factor: Any, power: float = 1.0) -> MessageOperator:
    """Read a trained operator for a factor.

    Raises
    ------
    InputError
        If the file is none of ours, is damaged, or was trained for another factor, other families or another power.
    """
    header, tensors = _read(Path(path))
    try:
        wanted = Signature.of(factor, power)
        if header["factor"] != wanted.factor:
            raise InputError(f"{path} was trained for {header['factor']}; expected {wanted.factor}, the given factor.")
        if header["power"] != wanted.power:
            raise InputError(f"{path} was trained at power {header['power']:g}; expected {wanted.power:g}.")
        kinds = tuple(header["families"])
        of_factor = _families_of_factor(factor)
        if kinds != of_factor:
            raise InputError(
                f"{path} was trained on messages of {', '.join(kinds)}; the given factor has {', '.join(of_factor)}."
            )
        settings = dict(header["settings"])
        learner, target = _LEARNERS[settings.pop("learner")], settings.pop("target")
        incoming = tuple(_family(kind, tensors[f"incoming.{at}"]) for at, kind in enumerate(kinds))
        messages = tuple(
            None if kind == "given" else _family(kind, tensors[f"outgoing.{at}"]) for at, kind in enumerate(kinds)
        )
        seen = Recorded(incoming, messages, tensors["log_normaliser"])
        first = int(header["fitted_on"])
        if not 0 < first <= len(seen) or any(len(value) != len(seen) for value in tensors.values()):
            raise KeyError("rows")
    except (KeyError, TypeError, AttributeError, IndexError) as problem:
        raise InputError(f"{path} is damaged: it lacks {problem}, or has it in another form.") from problem
    operator = MessageOperator(learner(**settings), target, seen[:first]).refit()
    return operator.learn_recorded(seen[first:]) if first < len(seen) else operator


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    try:
        with safe_open(str(path), framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get(_HEADER, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} is no safetensors file, or a damaged one: {problem}.") from problem
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path} holds no {FORMAT}: expected a file that ep.learned.save_operator wrote.")
    if header.get("version") != VERSION:
        raise InputError(f"{path} has version {header.get('version')!r}; this library reads version {VERSION}.")
    if any(value.dtype != np.float64 for value in tensors.values()):
        raise InputError(f"{path} is damaged: its numbers are not float64.")
    return header, tensors


def _family(kind: str, values: np.ndarray) -> Any:
    if kind == "given":
        return values
    if kind not in _FAMILIES:
        raise KeyError(kind)
    return getattr(families, kind).from_natural(*values.T)


def _families_of_factor(factor: Any) -> tuple[str, ...]:
    variables = [getattr(a, "variable", a) for a in factor.arguments]
    return tuple(v.family.__name__ if hasattr(v, "family") else "given" for v in variables)
