"""How a model lies on several devices: plates are divided among them by rows, shared variables are copied to all."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.sweeps.plan import Plan, Port, State
from meanmap.ep.variables import Given, Selection, Variable

__all__ = ["Layout"]


class Layout:
    """Which plates of a model are divided among the devices of a mesh.

    All are, but those of variables of which factors select members, and what is joined to these member by member:
    the counterpart of a member may lie on any device. Every device has these whole, and messages to them are added up,
    like those to what a plate shares, by one reduction over the mesh.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
        Of one axis.
    factors : tuple of Factor
        In the order of the plan.
    """

    def __init__(self, mesh: Mesh, variables: dict[str, Variable], factors: tuple[Factor, ...]):
        if not isinstance(mesh, Mesh):
            raise KindError(
                f"mesh is {a_type(mesh)}; expected devices along one axis, such as jax.make_mesh((8,), ('rows',))."
            )
        if len(mesh.shape) != 1:
            raise ShapeError(f"mesh has the axes {tuple(mesh.axis_names)}; expected one, which rows are divided along.")
        self.mesh = Mesh(mesh.devices, mesh.axis_names)  # the compiler decides where what is computed lies
        kept = {a.name for factor in factors for a in factor.arguments if isinstance(a, Selection)}
        beside = [{a.name for a in f.arguments if isinstance(a, Variable) and a.plate is not None} for f in factors]
        while more := {name for names in beside if names & kept for name in names} - kept:
            kept |= more
        self.factors = tuple(
            factor.plate is not None and not names & kept for factor, names in zip(factors, beside, strict=True)
        )
        self.variables = tuple(v.plate is not None and v.name not in kept for v in variables.values())

    def asked(self, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        """The factors, of which those that look again at doubtful members do so on each device by themselves."""
        return tuple(
            factor.in_parts(self.mesh.size) if divided else factor
            for factor, divided in zip(factors, self.factors, strict=True)
        )

    def length(self, plate: int) -> int:
        """The next length that the devices divide."""
        return -(-plate // self.mesh.size) * self.mesh.size

    def plan(self, plan: Plan) -> Plan:
        """A plan of host arrays with the rows of its plates on their devices."""
        factors = [
            replaced(factor, arguments=tuple(self._argument(a, shape) for a in factor.arguments)) if divided else factor
            for factor, divided, shape in zip(plan.factors, self.factors, plan.shapes, strict=True)
        ]
        flats, priors = self._families(plan.flats), self._families(plan.priors)
        return replaced(plan, flats=flats, priors=priors, factors=tuple(factors))

    def state(self, plan: Plan, state: State) -> State:
        """A state of host arrays with its rows beside those of the plan."""
        messages = tuple(
            tuple(
                self._rows(message) if divided and not port.known and port.way != "whole" else message
                for port, message in zip(factor.arguments, sent, strict=True)
            )
            for factor, sent, divided in zip(plan.factors, state.messages, self.factors, strict=True)
        )
        return State(messages, self._families(state.beliefs))

    def key(self, key: jax.Array) -> jax.Array:
        """Randomness that every device has."""
        data = self._placed(np.asarray(jax.random.key_data(key)), PartitionSpec())
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))

    def _families(self, families: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of plates that are divided in place of whole ones."""
        return tuple(
            self._rows(family) if divided else family for family, divided in zip(families, self.variables, strict=True)
        )

    def _argument(self, argument: Any, shape: tuple[int, ...]) -> Any:
        if not argument.known:
            index = None if argument.index is None else self._rows(argument.index)
            return Port(argument.variable, argument.way, index)
        per_member = np.ndim(argument.values) and np.shape(argument.values)[0] == shape[0]
        return Given(self._rows(argument.values), argument.name) if per_member else argument

    def _rows(self, tree: object) -> Any:
        return jax.tree.map(lambda leaf: self._placed(leaf, PartitionSpec(self.mesh.axis_names[0])), tree)

    def _placed(self, leaf: object, spec: PartitionSpec) -> jax.Array:
        """Each process hands over only what its own devices hold."""
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, NamedSharding(self.mesh, spec), host.__getitem__)
