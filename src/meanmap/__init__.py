"""meanmap: kernel tests, causal discovery, learned graphical models and expectation propagation.

    import meanmap as mm

    mm.test("a ~ b | c", table)               # a formula; chooses the test and says why
    mm.two_sample_test(x, y)                  # do two samples differ?  also k_sample_test, DriftMonitor
    mm.independence_test(x, y)                # are two columns related?  also conditional_independence_test
    mm.pc(table), mm.chow_liu(table)          # a causal graph; a tree of the strongest relations
    mm.KernelGraph(edges).fit(table)          # a model to query in any direction; with cycles: mm.KernelField
    mm.condition(x, y)                        # p(y | x) as an operator
    mm.fit("y ~ x + (1 | group)", table)      # mixed models by formula: counts, labels, numbers
    mm.ep.infer(mm.ep.FactorGraph(...))       # Bayesian inference with any function as a factor
    mm.embed(x, kernel)                       # a distribution as an element of a Hilbert space: most rests on this

Importing this package is cheap: JAX and everything built on it load when a name is first used.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meanmap import (  # noqa: F401  # _FOLDERS are not in __all__
        bp,
        core,
        datasets,
        embeddings,
        ep,
        errors,
        estimators,
        families,
        features,
        graphs,
        io,
        kernels,
        learning,
        linalg,
        stats,
        structure,
    )
    from meanmap.bp import BayesianNetwork, KernelField, KernelGraph, KernelGrid
    from meanmap.core import Schema, Table
    from meanmap.embeddings import condition, embed
    from meanmap.ep.linear import fit
    from meanmap.graphs import Graph
    from meanmap.io import load, save
    from meanmap.learning import default_kernel, learn_kernel, median_heuristic
    from meanmap.stats import (
        DriftMonitor,
        closeness_test,
        conditional_independence_effect,
        conditional_independence_test,
        independence_effect,
        independence_test,
        joint_independence_test,
        k_sample_effect,
        k_sample_test,
        test,
        two_sample_effect,
        two_sample_test,
    )
    from meanmap.structure import chow_liu, pc

__version__ = "0.1.0"

# Errors to catch, and folders for those who build on the library: `mm.graphs.Flooding`; completion at the top does not
# offer them.
_FOLDERS = ("core", "errors", "features", "graphs", "linalg")
# Names by the folder that they load from; whatever else is public is a folder itself.
_NAMES = {
    name: f"meanmap.{home}"
    for home, names in {
        "bp": "BayesianNetwork KernelField KernelGraph KernelGrid",
        "core": "Schema Table",
        "embeddings": "condition embed",
        "ep.linear": "fit",
        "graphs": "Graph",
        "io": "load save",
        "learning": "default_kernel learn_kernel median_heuristic",
        "stats": "DriftMonitor closeness_test conditional_independence_effect conditional_independence_test "
        "independence_effect independence_test joint_independence_test k_sample_effect k_sample_test "
        "test two_sample_effect two_sample_test",
        "structure": "chow_liu pc",
    }.items()
    for name in names.split()
}

__all__ = [
    "BayesianNetwork",
    "DriftMonitor",
    "Graph",
    "KernelField",
    "KernelGraph",
    "KernelGrid",
    "Schema",
    "Table",
    "bp",
    "chow_liu",
    "closeness_test",
    "condition",
    "conditional_independence_effect",
    "conditional_independence_test",
    "datasets",
    "default_kernel",
    "embed",
    "embeddings",
    "ep",
    "estimators",
    "families",
    "fit",
    "independence_effect",
    "independence_test",
    "io",
    "joint_independence_test",
    "k_sample_effect",
    "k_sample_test",
    "kernels",
    "learn_kernel",
    "learning",
    "load",
    "median_heuristic",
    "pc",
    "save",
    "stats",
    "structure",
    "test",
    "two_sample_effect",
    "two_sample_test",
]


if not TYPE_CHECKING:  # so that type checkers refuse other names

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            return _loaded(_NAMES[name], name)
        if name in __all__ or name in _FOLDERS:
            return _loaded(f"meanmap.{name}")
        from difflib import get_close_matches

        said = f"module 'meanmap' has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(said)
        homes = [home for home in __all__ if home.islower() and home not in _NAMES]
        meant = [f"meanmap.{home}.{name}" for home in homes if name in _loaded(f"meanmap.{home}").__all__]
        meant = meant or get_close_matches(name, __all__, 1)
        raise AttributeError(said + (f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ""))


def _loaded(module: str, name: str | None = None) -> Any:
    """A module or a name in it, which may be imported only now, with the garbage collector off: it would traverse all
    objects of JAX and free none.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(module) if name is None else getattr(import_module(module), name)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return sorted([*__all__, "errors", *(name for name in globals() if name.startswith("__"))])
