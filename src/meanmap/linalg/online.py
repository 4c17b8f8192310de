"""Bayesian linear regression, online: y = wᵀ φ + noise with w ~ N(0, s₀ I), learned row by row or batch by batch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite, check_numeric, parameter
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.points import library_of
from meanmap.core.types import Array, Data, Numbers
from meanmap.linalg import online_steps
from meanmap.linalg.ridge import check_precision

__all__ = ["OnlineRegression"]

# On the host, small blocks are buffered and added to XᵀX together: a product of 256 rows costs as much as a few of one
# row.
WAITING_BLOCKS = 256
SMALL_BLOCK = 32


class OnlineRegression(eqx.Module):
    """The posterior of the weights of y = wᵀ φ + ε, ε ~ N(0, s² I), w ~ N(0, s₀ I), with q outputs that share S.

    S = (XᵀX / s² + I / s₀)⁻¹ and mean = S XᵀY / s². Every method returns a new value; this one is unchanged.

    Attributes
    ----------
    mean : array (D, q)
        Posterior mean of the weights.
    covariance : array (D, D)
        Posterior covariance S of the weights of each output.
    count : integer
        The number of rows seen.
    noise, prior_variance : number
        s² and s₀.
    refit_every : int or None
        The number of rows after which mean and covariance are recomputed from the statistics; with None, only for
        batches of at least D rows, for which that is cheaper.

    Notes
    -----
    Kalman (1960); leave-one-out: Cook and Weisberg (1982), equation 2.2.4. A row costs D² (two passes over S), a
    batch of k rows D² k, a refit D³.

    Examples
    --------
    >>> import numpy as np
    >>> phi = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> y = phi @ np.array([[1.0], [2.0]])
    >>> model = OnlineRegression.start(2, 1, noise=1e-4).update(phi[:2], y[:2]).update(phi[2], y[2])
    >>> mean, variance = model.predict([[1.0, 3.0]])
    >>> np.round(mean, 2).tolist(), bool(0 < variance[0] < 1e-3), int(model.count)
    ([[7.0]], True, 3)
    """

    mean: Any
    covariance: Any
    count: Any
    noise: Any
    prior_variance: Any
    refit_every: int | None = eqx.field(static=True)
    _since: Any
    _inputs: Any
    _cross: Any
    _outputs: Any
    # Rows not yet in the statistics: an immutable tuple, so that the value before an update stays valid.
    _waiting: tuple[tuple[Any, Any], ...]

    @classmethod
    def start(
        cls, dim: int, outputs: int = 1, *, noise: Numbers, prior_variance: Numbers = 1.0, refit_every: int | None = 256
    ) -> "OnlineRegression":
        """The prior: no rows seen.

        Parameters
        ----------
        dim, outputs : int
            D features and q outputs.
        noise : float
            Noise variance s² of each output.
        prior_variance : float
            Variance s₀ of each weight before any data.
        refit_every : int or None
            The number of rows between refits, which keep rounding errors from accumulating.
        """
        size, q = (int(parameter(v, n, axes=0, integer=True)) for v, n in ((dim, "dim"), (outputs, "outputs")))
        every = None if refit_every is None else int(parameter(refit_every, "refit_every", axes=0, integer=True))
        noise, variance = parameter(noise, "noise", axes=0), parameter(prior_variance, "prior_variance", axes=0)
        zero = np.zeros((), np.int32)
        covariance = np.eye(size) * variance if isinstance(variance, np.ndarray) else jnp.eye(size) * variance
        moments = np.zeros((size, size)), np.zeros((size, q)), np.zeros((q, q))
        return cls(np.zeros((size, q)), covariance, zero, noise, variance, every, zero, *moments, ())

    def update(self, phi: Array, y: Data) -> "OnlineRegression":
        """The posterior after more rows: `phi` (k, D) or (D,), `y` (k, q), or (q,) for one row.

        A Kalman step; or a refit from the statistics, for a batch of at least D rows or when `refit_every` rows have
        been added since the last.
        """
        with _door(self, phi, y) as door:
            phi = _read(phi, "phi", self.mean.shape[0], door)
            outputs = _read_outputs(y, phi.shape[0], self.mean.shape[1], door)
            return _update_xla(door.cast(self), phi, outputs) if door.follows else _update_host(self, phi, outputs)

    def refit(self) -> "OnlineRegression":
        """The posterior computed anew by Cholesky from XᵀX and XᵀY, free of accumulated rounding."""
        with _door(self) as door:
            one = _settle(door.cast(self))
            check_precision(
                one._inputs.diagonal().sum(), one.noise / one.prior_variance, one.mean.dtype, "the sum of φφᵀ over rows"
            )
            mean, covariance, _ = online_steps.refit(one.mean, one._inputs, one._cross, one.noise, one.prior_variance)
            return _with(one, mean=mean, covariance=covariance, _since=one._since * 0)

    def predict(self, phi: Array) -> tuple[Any, Any]:
        """Predictive mean (n, q) and epistemic variance φᵀ S φ (n,) at `phi` (n, D); noise is not included.

        The variance of an observation is `variance + noise`. Cost n D².
        """
        with _door(self, phi) as door:
            rows = _read(phi, "phi", self.mean.shape[0], door)
            mean, covariance = door.cast((self.mean, self.covariance))
            if door.follows:
                mean, covariance = jnp.asarray(mean), jnp.asarray(covariance)
            return online_steps.predict(mean, covariance, rows)

    def leave_one_out(self, phi: Array, y: Data) -> tuple[Any, Any]:
        """The leave-one-out prediction at each of the rows seen: mean (n, q), variance (n,).

        `phi` (n, D) and `y` (n, q) are rows this posterior was fitted to. With hᵢ = φᵢᵀ S φᵢ / s², the left-out error
        is (yᵢ − φᵢᵀ mean) / (1 − hᵢ) and the left-out variance φᵢᵀ S φᵢ / (1 − hᵢ). Cost n D², never n × n.
        """
        with _door(self, phi, y) as door:
            rows = _read(phi, "phi", self.mean.shape[0], door)
            outputs = _read_outputs(y, rows.shape[0], self.mean.shape[1], door)
            mean, variance = self.predict(rows)
            noise = door.cast(self.noise)
            # 1 − h = s² / (s² + left-out variance) > 0; rounding may make it zero if h is close to 1.
            left = np.finfo(mean.dtype).eps + (1 - variance / noise).clip(0)
            return outputs - (outputs - mean) / left[:, None], variance / left

    def merge(self, other: "OnlineRegression") -> "OnlineRegression":
        """The posterior given the rows of both; dimensions, noise and prior must agree."""
        if not isinstance(other, OnlineRegression):
            raise KindError(f"other is {a_type(other)}; expected an OnlineRegression.")
        if self.mean.shape != other.mean.shape:
            raise ShapeError(
                f"the other regression maps {other.mean.shape[0]} features to {other.mean.shape[1]} outputs; "
                f"expected {self.mean.shape[0]} to {self.mean.shape[1]}, like this one."
            )
        for name in ("noise", "prior_variance"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if is_concrete(mine) and is_concrete(theirs) and mine != theirs:
                raise InputError(
                    f"the other regression has {name}={float(theirs):g}; expected {float(mine):g}, like this one. "
                    "Start every worker with the same noise and prior_variance."
                )
        with _door(self, other.mean) as door:
            one, two = _settle(door.cast(self)), _settle(door.cast(other))
            return _with(
                one,
                count=one.count + two.count,
                _inputs=one._inputs + two._inputs,
                _cross=one._cross + two._cross,
                _outputs=one._outputs + two._outputs,
            ).refit()

    def log_marginal_likelihood(self) -> Any:
        """log p(Y | X) of all rows seen, weights integrated out, from the statistics alone. Cost D³.

        Each output adds −½ [n log 2π s² + log det(I + s₀ XᵀX / s²) + ‖y − X mean‖² / s² + ‖mean‖² / s₀].
        """
        with _door(self) as door:
            one = _settle(door.cast(self))
            size, q = one.mean.shape
            mean, _, determinant = online_steps.refit(one.mean, one._inputs, one._cross, one.noise, one.prior_variance)
            library = jnp if door.follows else np
            ratio = one.noise / one.prior_variance
            determinant = determinant - size * library.log(ratio)
            errors = one._outputs.trace() - 2 * (mean * one._cross).sum() + (mean * _product(one._inputs, mean)).sum()
            quadratic = errors.clip(0) / one.noise + (mean**2).sum() / one.prior_variance
            return -(q * (one.count * library.log(2 * np.pi * one.noise) + determinant) + quadratic) / 2

    @property
    def statistics(self) -> tuple[Any, Any, Any]:
        """XᵀX (D, D), XᵀY (D, q) and YᵀY (q, q) of all rows seen."""
        with _door(self):
            one = _settle(self)
            return one._inputs, one._cross, one._outputs


def _update_host(one: OnlineRegression, phi: Array, y: np.ndarray) -> OnlineRegression:
    rows = np.int32(phi.shape[0])
    changes: dict[str, Any] = {"count": one.count + rows, "_waiting": (*one._waiting, (phi, y))}
    if rows >= SMALL_BLOCK or len(one._waiting) + 1 >= WAITING_BLOCKS:
        changes |= _settled(_with(one, **changes))
    if rows >= phi.shape[1] or (one.refit_every is not None and one._since + rows >= one.refit_every):
        return _with(one, **changes).refit()
    mean, covariance = online_steps.kalman(one.mean, one.covariance, phi, y, float(one.noise))
    return _with(one, mean=mean, covariance=covariance, _since=one._since + rows, **changes)


def _update_xla(one: OnlineRegression, phi: Array, y: jax.Array) -> OnlineRegression:
    rows = phi.shape[0]
    one = _settle(one)
    inputs = one._inputs + _product(phi.T, phi)
    cross = one._cross + _product(phi.T, y)
    outputs = one._outputs + _product(y.T, y)
    mean, covariance = jnp.asarray(one.mean), jnp.asarray(one.covariance)
    since = jnp.asarray(one._since) + rows

    def afresh():
        return online_steps.refit(mean, inputs, cross, one.noise, one.prior_variance)[:2]

    def step():
        return online_steps.kalman(mean, covariance, phi, y, one.noise)

    if rows >= min(phi.shape[1], one.refit_every or phi.shape[1]):
        (mean, covariance), since = afresh(), jnp.zeros_like(since)
    elif one.refit_every is None:
        mean, covariance = step()
    else:
        due = since >= one.refit_every
        mean, covariance = jax.lax.cond(due, afresh, step)
        since = jnp.where(due, 0, since)
    count = jnp.asarray(one.count) + rows
    return _with(
        one, mean=mean, covariance=covariance, count=count, _since=since, _inputs=inputs, _cross=cross, _outputs=outputs
    )


def _door(one: OnlineRegression, *inputs: object) -> Door:
    # Not the whole value: inspecting hundreds of buffered rows would cost more than the update itself.
    return Door(one.mean, one.noise, one.prior_variance, *inputs)


def _settle(one: OnlineRegression) -> OnlineRegression:
    """The value with buffered rows added to the statistics."""
    return _with(one, **_settled(one)) if one._waiting else one


def _settled(one: OnlineRegression) -> dict[str, Any]:
    library = library_of(one._waiting[0][0])
    phi, y = (library.concatenate(blocks) for blocks in zip(*one._waiting, strict=True))
    return {
        "_inputs": one._inputs + _product(phi.T, phi),
        "_cross": one._cross + _product(phi.T, y),
        "_outputs": one._outputs + _product(y.T, y),
        "_waiting": (),
    }


def _with(one: OnlineRegression, **changes: object) -> OnlineRegression:
    fields = {name: getattr(one, name) for name in one.__dataclass_fields__}
    return OnlineRegression(**{**fields, **changes})


def _read(phi: Array, name: str, width: int, door: Door) -> Any:
    """Rows (k, width): one axis means one row."""
    array = array_of(phi, name)
    check_numeric(array, name)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise ShapeError(f"{name} has shape {array.shape}; expected ({width},) for one row or (k, {width}) for k.")
    check_finite(array, name)
    rows = array.reshape(-1, width).astype(door.dtype)
    return jnp.asarray(rows) if door.follows else rows


def _read_outputs(y: Data, rows: int, q: int, door: Door) -> Any:
    array = array_of(y, "y")
    if (
        array.size != rows * q
        or (array.ndim > 1 and array.shape != (rows, q))
        or (array.ndim == 1 and 1 not in (rows, q))
    ):
        raise ShapeError(f"y has shape {array.shape}; expected ({rows}, {q}): one row of outputs for each row of phi.")
    return _read(array.reshape(rows, q), "y", q, door)


def _product(left: Array, right: Array) -> Any:
    if isinstance(left, jax.Array) or isinstance(right, jax.Array):
        return jnp.matmul(left, right, precision="highest")
    return left @ right
