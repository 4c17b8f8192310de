"""Graphs: combinatorics only. Nodes and edges, rooted trees, arrows, the order in which messages are sent, files."""

from meanmap.graphs.adapters import from_pgmpy
from meanmap.graphs.files import Factors, read_graphml, read_uai, write_graphml, write_uai
from meanmap.graphs.graph import Graph
from meanmap.graphs.grids import DIRECTIONS, grid
from meanmap.graphs.orientation import equivalence_class
from meanmap.graphs.partial import PDAG, structural_hamming_distance
from meanmap.graphs.rooted import Rooted, prune
from meanmap.graphs.schedules import Flooding, Residual, Schedule, Sequential, Splash, TwoPass
from meanmap.graphs.slots import Slots
from meanmap.graphs.sum_table import SumTable

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
