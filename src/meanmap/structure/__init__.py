"""From a table to a graph: causal discovery by conditional independence tests, trees of the strongest dependences."""

from meanmap.structure.adapters import ArrayTest, CallableTest, register_in_causal_learn, tigramite_test
from meanmap.structure.chow_liu import DependenceTree, chow_liu
from meanmap.structure.conditional_tests import ConditionalTests, DSeparation, FunctionTests
from meanmap.structure.discovered import DiscoveredGraph
from meanmap.structure.kernel_tests import KernelTests
from meanmap.structure.knowledge import Knowledge
from meanmap.structure.pc import pc
from meanmap.structure.prewhitening import prewhiten

__all__ = [
    "ArrayTest",
    "CallableTest",
    "ConditionalTests",
    "DSeparation",
    "DependenceTree",
    "DiscoveredGraph",
    "FunctionTests",
    "KernelTests",
    "Knowledge",
    "chow_liu",
    "pc",
    "prewhiten",
    "register_in_causal_learn",
    "tigramite_test",
]
