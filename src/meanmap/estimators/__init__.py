"""Estimators for scikit-learn's pipelines, grid searches and data frame output. scikit-learn is imported when one is
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meanmap.estimators.bags import BagRegressor, TwoStageFeatures
    from meanmap.estimators.density import ConditionalDensity
    from meanmap.estimators.features import FourierFeatures, LearnedFeatures, LowRankFeatures
    from meanmap.estimators.imputer import DependencyNetworkImputer, KernelGraphImputer
    from meanmap.estimators.regression import ConditionalMeanRegressor
    from meanmap.estimators.trees import KernelGraphClassifier, KernelGraphRegressor

__all__ = [
    "BagRegressor",
    "ConditionalDensity",
    "ConditionalMeanRegressor",
    "DependencyNetworkImputer",
    "FourierFeatures",
    "KernelGraphClassifier",
    "KernelGraphImputer",
    "KernelGraphRegressor",
    "LearnedFeatures",
    "LowRankFeatures",
    "TwoStageFeatures",
]

_HOMES = {
    "BagRegressor": "bags",
    "ConditionalDensity": "density",
    "ConditionalMeanRegressor": "regression",
    "DependencyNetworkImputer": "imputer",
    "FourierFeatures": "features",
    "KernelGraphClassifier": "trees",
    "KernelGraphImputer": "imputer",
    "KernelGraphRegressor": "trees",
    "LearnedFeatures": "features",
    "LowRankFeatures": "features",
    "TwoStageFeatures": "bags",
}


if not TYPE_CHECKING:  # so that type checkers refuse other names

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'meanmap.estimators' has no attribute {name!r}")
        return getattr(import_module(f"meanmap.estimators.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
