"""Every public name exists, says what it is, and the top level shows how it is used."""

import importlib
import inspect
import pkgutil

import pytest

import meanmap

FOLDERS = sorted(module.name for module in pkgutil.iter_modules(meanmap.__path__) if module.ispkg)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_a_folder_resolve_and_say_what_they_are(folder):
    module = importlib.import_module(f"meanmap.{folder}")
    assert inspect.getdoc(module), f"meanmap.{folder} has no docstring"
    names = getattr(module, "__all__", [])
    assert sorted(set(names)) == sorted(names), f"meanmap.{folder}.__all__ repeats a name"
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing
    # A class without its own docstring would show its parent's.
    silent = [name for name in names if callable(value := getattr(module, name)) and not value.__doc__]
    assert not silent, f"meanmap.{folder}: no docstring for {silent}"


def test_top_level_names_resolve_and_are_listed():
    for name in meanmap.__all__:
        assert getattr(meanmap, name) is not None
        assert name in dir(meanmap)


@pytest.mark.parametrize("package", [meanmap, meanmap.estimators, meanmap.io], ids=lambda package: package.__name__)
def test_completion_offers_public_names_alone(package):
    offered = [name for name in dir(package) if not name.startswith("__")]
    assert sorted(offered) == sorted([*package.__all__, *(["errors"] if package is meanmap else [])])


def test_callables_of_the_top_level_have_examples():
    without = [
        name
        for name in meanmap.__all__
        if callable(value := getattr(meanmap, name)) and "Examples\n" not in (inspect.getdoc(value) or "")
    ]
    assert not without, f"no Examples section in the docstring of {without}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'kernel_of_truth'"):
        meanmap.kernel_of_truth  # noqa: B018


def test_errors_are_caught_by_their_public_names():
    """The top keeps its forty names: errors have a module of their own."""
    from meanmap.core import errors

    assert sorted(meanmap.errors.__all__) == sorted(errors.__all__)
    assert all(getattr(meanmap.errors, name) is getattr(errors, name) for name in errors.__all__)
    assert "errors" not in meanmap.__all__
    assert len(meanmap.__all__) <= 40
    with pytest.raises(meanmap.errors.ColumnError, match="no column"):
        meanmap.test("a ~ c", {"a": [1.0, 2.0], "b": [1.0, 2.0]})
    with pytest.raises(meanmap.errors.InputError) as raised:
        meanmap.two_sample_test([], [1.0, 2.0])
    assert isinstance(raised.value, ValueError)
