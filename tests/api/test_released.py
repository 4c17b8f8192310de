"""What people typed with the last release still works: names, arguments and members, beside a stored snapshot."""

import json
from pathlib import Path
from typing import Any

from tests.api.interface import interface

# Written at each release, from the first on: `python -m tests.api.interface > tests/api/released.json`.
SNAPSHOT = Path(__file__).with_name("released.json")
RELEASED = json.loads(SNAPSHOT.read_text(encoding="utf-8")) if SNAPSHOT.exists() else {}
# Taken away on purpose: the beginning of a path, and what to type instead. Each has a line in CHANGELOG.md.
GONE: dict[str, str] = {}


def taken_away(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """In words, what no longer works."""
    lost = []
    for path in before:
        if path not in now:
            lost.append(f"{path} is gone")
            continue
        was, new = (of[of[path]] if isinstance(of[path], str) else of[path] for of in (before, now))
        lost += [f"{path}: {line}" for line in arguments_lost(was.get("takes"), new.get("takes"))]
        members = new.get("members", {})
        for name, arguments in was.get("members", {}).items():
            if name not in members:
                lost.append(f"{path}.{name} is gone")
            else:
                lost += [f"{path}.{name}: {line}" for line in arguments_lost(arguments, members[name])]
    return lost


def arguments_lost(was: list[str] | None, now: list[str] | None) -> list[str]:
    """Calls that were possible and are not any more."""
    if was is None or now is None:
        return []
    names = [word.rstrip("=") for word in now]
    lost = [
        f"the argument {word.rstrip('=')} is gone"
        for word in was
        if not word.startswith("*") and word.rstrip("=") not in names and not any(n.startswith("**") for n in names)
    ]
    known = {word.rstrip("=") for word in was}
    lost += [
        f"the argument {word} has to be given"
        for word in now
        if not word.endswith("=") and not word.startswith("*") and (word not in known or f"{word}=" in was)
    ]
    places = [[w.rstrip("=") for w in words[: first_star(words)]] for words in (was, now)]
    if not lost and places[1][: len(places[0])] != places[0] and not any(w.startswith("*") and w != "*" for w in now):
        lost.append(f"given by place, {', '.join(places[0])} became {', '.join(places[1])}")
    return lost


def first_star(words: list[str]) -> int:
    return next((at for at, word in enumerate(words) if word.startswith("*")), len(words))


def test_what_was_released_still_works():
    lost = [line for line in taken_away(RELEASED, interface()) if not line.startswith(tuple(GONE))]
    assert not lost, "\n".join(["taken away since the release (keep an alias, or name it in GONE):", *lost])


def test_what_is_taken_away_is_told_in_words():
    before = {"f": {"takes": ["x", "y=", "*", "rng="]}, "g": {}, "A": {"members": {"run": ["self", "n="], "b": None}}}
    now = {"f": {"takes": ["y=", "x", "*", "seed="]}, "A": {"members": {"run": ["self", "n", "m="]}}}
    assert taken_away(before, now) == [
        "f: the argument rng is gone",
        "g is gone",
        "A.run: the argument n has to be given",
        "A.b is gone",
    ]
    assert arguments_lost(["x", "y="], ["y=", "x"]) == ["given by place, x, y became y, x"]
    assert arguments_lost(["x", "*", "k="], ["x", "k=", "more="]) == []
    assert arguments_lost(["x", "*", "k="], ["x", "**settings"]) == []
