from .bags import BagRegressor, TwoStageFeatures
from .density import ConditionalDensity
from .features import FourierFeatures, LearnedFeatures, LowRankFeatures
from .imputer import DependencyNetworkImputer, KernelGraphImputer
from .regression import ConditionalMeanRegressor
from .trees import KernelGraphClassifier, KernelGraphRegressor

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
