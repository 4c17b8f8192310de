"""Expectation propagation: a model of factors and variables, with messages of one family per variable between them.

A factor is exact, or a plain function whose messages an oracle computes: by quadrature, by sampling, or learned.
"""

from typing import Any

from lazy_loader import attach_stub

_of_files, _, __all__ = attach_stub(__name__, __file__)
_FAMILIES = ("Beta", "Dirichlet", "Gamma", "MultivariateNormal", "Normal")
__all__ = sorted([*__all__, *_FAMILIES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _FAMILIES:
        from meanmap import families

        return getattr(families, name)
    if name in __all__:
        return _of_files(name)
    from meanmap.ep.instead import of_the_module

    raise AttributeError(f"module 'meanmap.ep' has no attribute {name!r}{of_the_module(name)}")


def __dir__() -> list[str]:
    return __all__
