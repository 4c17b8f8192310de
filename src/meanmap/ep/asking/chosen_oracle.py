"""Which oracle computes the messages of a black box: its own, the one that is given, or the default."""

from typing import Any

from meanmap.ep.calling import as_now
from meanmap.ep.factor import replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.oracles.host import FunctionOracle, HostOracle, refuse_no_oracle
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.quadrature.quadrature import Quadrature

__all__ = ["check_messages", "default", "given_oracle", "with_oracle"]


def check_messages(messages: Any) -> None:
    """Refuse messages that are not oracles, whether or not a factor asks one."""
    for name, oracle in messages.items() if isinstance(messages, dict) else [(None, messages)]:
        refuse_no_oracle(oracle, "messages" if name is None else f"messages[{name!r}]")


def with_oracle(factor: Any, messages: Any, memory: Any = None) -> BlackBoxFactor:
    """The factor as it is now, with the oracle that computes its messages: its own, the given or the default one."""
    oracle = given_oracle(factor, messages) or default(factor)
    if not isinstance(oracle, Oracle | HostOracle):
        oracle = FunctionOracle(oracle)
    oracle.check(factor)
    return replaced(as_now(factor, memory), oracle=oracle)


def given_oracle(factor: BlackBoxFactor, messages: Any) -> Any:
    """The oracle of a factor's own, or the one that is given for it; None if it has neither."""
    return factor.oracle or (messages.get(factor.name) if isinstance(messages, dict) else messages)


def default(factor: BlackBoxFactor) -> Oracle:
    """Quadrature over one or two numbers, sampling for all else."""
    over = factor.integrated()
    numbers = all(variable.family.is_scalar() for variable in over)
    return Quadrature() if numbers and len(over) <= 2 and not factor.random else ImportanceSampling()
