from .adapters import from_pgmpy
from .files import Factors, read_graphml, read_uai, write_graphml, write_uai
from .graph import Graph
from .grids import DIRECTIONS, grid
from .orientation import equivalence_class
from .partial import PDAG, structural_hamming_distance
from .rooted import Rooted, prune
from .schedules import Flooding, Residual, Schedule, Sequential, Splash, TwoPass
from .slots import Slots
from .sum_table import SumTable

__all__ = [
    "DIRECTIONS",
    "PDAG",
    "Factors",
    "Flooding",
    "Graph",
    "Residual",
    "Rooted",
    "Schedule",
    "Sequential",
    "Slots",
    "Splash",
    "SumTable",
    "TwoPass",
    "equivalence_class",
    "from_pgmpy",
    "grid",
    "prune",
    "read_graphml",
    "read_uai",
    "structural_hamming_distance",
    "write_graphml",
    "write_uai",
]
