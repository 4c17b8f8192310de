from . import engine as engine
from . import results as results
from .beliefs.beliefs import Beliefs
from .beliefs.densities import Density, NormalMixture
from .beliefs.histogram import Histogram
from .beliefs.most_probable import most_probable
from .beliefs.sensitivity import sensitivity
from .conditionals.bayesian_network import BayesianNetwork
from .conditionals.dependency_network import DependencyNetwork
from .edges.learning import LearnedLikelihood
from .edges.observations import CentredLikelihood, Likelihood, NoiseLikelihood, Tempered, UserLikelihood
from .edges.updates import Constant, Full, Linear, Update
from .field import Field
from .kernel.images import neighbour_pairs, patches
from .kernel.kernel_field import KernelField
from .kernel.kernel_graph import KernelGraph
from .kernel.kernel_grid import KernelGrid
from .kernel.stream import Stream
from .normal.gaussian import spectral_radius
from .normal.gaussian_graph import GaussianGraph
from .normal.linear_solver import solve
from .pooling import pooled
from .surroundings.forest_grid import ForestGrid
from .tables.clique_tree import CliqueTree
from .tables.discrete import DiscreteGraph
from .tables.factor_graph import FactorGraph

__all__ = [
    "BayesianNetwork",
    "Beliefs",
    "CentredLikelihood",
    "CliqueTree",
    "Constant",
    "Density",
    "DependencyNetwork",
    "DiscreteGraph",
    "FactorGraph",
    "Field",
    "ForestGrid",
    "Full",
    "GaussianGraph",
    "Histogram",
    "KernelField",
    "KernelGraph",
    "KernelGrid",
    "LearnedLikelihood",
    "Likelihood",
    "Linear",
    "NoiseLikelihood",
    "NormalMixture",
    "Stream",
    "Tempered",
    "Update",
    "UserLikelihood",
    "engine",
    "most_probable",
    "neighbour_pairs",
    "patches",
    "pooled",
    "results",
    "sensitivity",
    "solve",
    "spectral_radius",
]
