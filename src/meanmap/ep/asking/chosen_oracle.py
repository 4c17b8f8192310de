"""Which oracle computes the messages of a black box: its own, the one that is given, or the default."""

from typing import Any

from meanmap.core.errors import KindError
from meanmap.ep.calling import as_now
from meanmap.ep.factor import replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.oracles.host import FunctionOracle, HostOracle
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.quadrature.quadrature import Quadrature

__all__ = ["default", "given_oracle", "with_oracle"]


def with_oracle(factor: Any, messages: Any, memory: Any = None) -> BlackBoxFactor:
    """The factor as it is now, with the oracle that computes its messages: its own, the given or the default one."""
    oracle = given_oracle(factor, messages) or default(factor)
    if not isinstance(oracle, Oracle | HostOracle):
        if not callable(oracle) or isinstance(oracle, type):
            raise KindError(
                f"messages is {oracle!r}; expected an oracle such as ep.Quadrature(), ep.ImportanceSampling() or "
                "ep.Learned(), a function of ep.extending.Questions, or a dictionary of them by factor name."
            )
        oracle = FunctionOracle(oracle)
    oracle.check(factor)
    return replaced(as_now(factor, memory), oracle=oracle)


def given_oracle(factor: BlackBoxFactor, messages: Any) -> Any:
    """The oracle of a factor's own, or the one that is given for it; None where it has neither."""
    return factor.oracle or (messages.get(factor.name) if isinstance(messages, dict) else messages)


def default(factor: BlackBoxFactor) -> Oracle:
    """Quadrature over one or two numbers, sampling for all else."""
    over = factor.integrated()
    numbers = all(variable.family.is_scalar() for variable in over)
    return Quadrature() if numbers and len(over) <= 2 and not factor.random else ImportanceSampling()
