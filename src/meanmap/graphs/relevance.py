"""Which variables an answer depends on, given others."""

from collections.abc import Collection, Hashable, Iterable, Mapping

__all__ = ["ancestors", "parents_by_name", "relevant"]

Parents = Mapping[Hashable, Collection[Hashable]]


def parents_by_name(names: Iterable[Hashable], arrows: Iterable[tuple]) -> dict[Hashable, list[Hashable]]:
    """The parents of each of the names; its children, if the arrows are reversed.

    Examples
    --------
    >>> parents_by_name("abc", [("a", "c"), ("b", "c")])
    {'a': [], 'b': [], 'c': ['a', 'b']}
    """
    found: dict[Hashable, list[Hashable]] = {name: [] for name in names}
    for start, end in arrows:
        found[end].append(start)
    return found


def ancestors(parents: Parents, names: Iterable[Hashable]) -> set[Hashable]:
    """These variables and all of their ancestors.

    Examples
    --------
    >>> sorted(ancestors({"a": (), "b": ("a",), "c": ("b",)}, ["b"]))
    ['a', 'b']
    """
    found, stack = set(), list(names)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += parents[name]
    return found


def relevant(parents: Parents, targets: Iterable[Hashable], known: Collection[Hashable]) -> set[Hashable]:
    """The variables that are not known and on which beliefs about the targets depend, the targets among them.

    In the moral graph of the ancestors, those connected to a target by a path that avoids known variables (Lauritzen et
    al. 1990). Variables set by an intervention have no parents.

    Examples
    --------
    Once d is known, a and b are competing explanations; e is an unobserved effect.

    >>> parents = {"a": (), "b": (), "d": ("a", "b"), "e": ("b",)}
    >>> sorted(relevant(parents, ["a"], [])), sorted(relevant(parents, ["a"], ["d"]))
    (['a'], ['a', 'b'])
    """
    targets = list(targets)
    neighbours: dict[Hashable, set[Hashable]] = {}
    for name in ancestors(parents, (*targets, *known)):
        family = {name, *parents[name]}.difference(known)
        for each in family:
            neighbours.setdefault(each, set()).update(family)
    return ancestors(neighbours, (name for name in targets if name not in known))
