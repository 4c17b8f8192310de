"""For your own factors and oracles: the questions they get, the answers they give, messages as derivatives of log Z."""

from meanmap.ep.asking.ask import ask
from meanmap.ep.derivatives import from_log_z_derivatives, log_z_derivatives
from meanmap.ep.factor import Answer, Factor
from meanmap.ep.oracles.host import HostOracle
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.questions import Questions

__all__ = [
    "Answer",
    "Factor",
    "HostOracle",
    "Oracle",
    "Questions",
    "ask",
    "from_log_z_derivatives",
    "log_z_derivatives",
]
