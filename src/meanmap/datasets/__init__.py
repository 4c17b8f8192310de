"""Real data: found in a folder of yours or in the cache, otherwise downloaded and checked.

Each function looks in the folder that the environment variable `MEANMAP_DATA` names, then in the user's cache, then
downloads from a public address. Nothing is downloaded before a function is called, and a file that is not the expected
one is refused.
"""

from meanmap.datasets.networks import Citation, citation
from meanmap.datasets.pictures import STEREO_SCENES, Stereo, stereo
from meanmap.datasets.proteins import Backbone, torsion_angles
from meanmap.datasets.tables import UCI_NAMES, ozone, uci
from meanmap.datasets.texts import LANGUAGES, europarl, parallel_help

__all__ = [
    "LANGUAGES",
    "STEREO_SCENES",
    "UCI_NAMES",
    "Backbone",
    "Citation",
    "Stereo",
    "citation",
    "europarl",
    "ozone",
    "parallel_help",
    "stereo",
    "torsion_angles",
    "uci",
]
