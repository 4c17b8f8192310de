"""What inference returns: a belief for every variable, the evidence, and the messages from which a run can continue."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

import jax
import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean
from meanmap.core.report import Report
from meanmap.core.values import frame_of
from meanmap.ep.factor import Factor, with_variables
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.beside import by_draws
from meanmap.ep.inference.gradient import evidence_gradient
from meanmap.ep.inference.joined import Joined
from meanmap.ep.inference.pages import posterior_page
from meanmap.ep.inference.record import OF_NO_FIXED_POINT, Record
from meanmap.ep.inference.separate import LeftOut
from meanmap.ep.inference.ties import TOO_WIDE
from meanmap.ep.inference.together import LOOSE, NARROW, labels_in_loops, scales_in_loops, together, vectors_of_shares
from meanmap.ep.inference.weighted import all_single, met_once, weighted_notes
from meanmap.ep.instead import of_posterior
from meanmap.ep.sweeps.plan import Plan, State, fetched, unpadded
from meanmap.ep.variables import Variable
from meanmap.families import Family
from meanmap.families.pages import moments_of
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["Posterior"]


class Posterior(Paged, Mapping[str, Family]):
    """Beliefs by the name of the variable: `post["w"].mean()`, `post["w"].cov()`; made by `infer`.

    Attributes
    ----------
    log_evidence : float
        The logarithm of the marginal likelihood, as EP approximates it. A variable that has no prior, and that no
        factor gives, has a density of 1 for all values: the marginal likelihood is then in units of that variable, as a
        note says.
    report : Report
        Whether it converged, how far beliefs moved in each sweep, and what happened to messages.
    seed : int
        `rng=post.seed` repeats the run.
    messages : dict
        By the name of a factor, its message to each of its arguments; None for given values.
    effective_sample_size : dict
        For each factor whose messages were sampled, one number for each member.
    standard_errors : dict
        For each input and output of a factor with sampled messages, the standard error of its mean that comes from
        sampling, in the shape of the mean: independent errors of members and factors added up. The effect of errors on
        other messages is not included, nor is mass that no draw came near.
    oracles : dict
        By the name of a black-box factor, what computed its messages: `infer(model, post.oracles)` uses the same again,
        with what was learned.
    doubt : dict
        For each factor whose oracle states an error: the resulting error of a belief, in standard deviations, one
        number for each member. For a variable that members share, independent errors add up to the root of the sum of
        their squares; the report says so where that exceeds .1.

    Examples
    --------
    >>> from meanmap import ep
    >>> mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    >>> post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=2.0)), rng=0)
    >>> print(post)
    Posterior, converged after 1 step, last residual 0
      mu: Normal(mean=1, sd=0.7071)
      log evidence -2.2655
    """

    def __init__(
        self,
        found: dict[str, Family],
        messages: dict[str, tuple[Any, ...]],
        log_evidence: float,
        report: Report,
        seed: int | None,
        effective: dict[str, np.ndarray],
        doubt: dict[str, np.ndarray],
        standard_errors: dict[str, np.ndarray],
        oracles: dict[str, Any],
        variables: dict[str, Variable],
        left_out: LeftOut,
        joint: dict[str, np.ndarray] | None = None,
        replaced: Sequence[ref[Variable]] = (),
    ):
        self._beliefs, self.messages, self.oracles = found, messages, oracles
        self.log_evidence, self.report, self.seed = log_evidence, report, seed
        self.effective_sample_size, self.doubt, self.standard_errors = effective, doubt, standard_errors
        self._variables, self._left_out = variables, left_out
        # Plates whose place others of their names took in updates: what was learned of them is gone.
        self._replaced = tuple(replaced)
        # Draws from the joint posterior of some of the variables, by name, where beliefs are made of them.
        self._joint = joint or {}

    def to_save(self) -> "Posterior":
        """Without the plates that updates replaced, which are known as objects of this process."""
        found = copy(self)
        found._replaced = ()
        return found

    @classmethod
    def of(
        cls,
        plan: Plan,
        state: State,
        model: FactorGraph,
        factors: tuple[Factor, ...],
        log_evidence: float,
        record: Record,
        policy: str,
        seed: int | None,
        as_vector: Joined | None = None,
    ) -> "Posterior":
        """The result of a run, without padding, and about the unknowns as they were named."""
        found = {
            name: unpadded(belief, variable.plate)
            for (name, variable), belief in zip(model.variables.items(), state.beliefs, strict=True)
        }
        messages = {}
        for factor, joined, sent in zip(factors, plan.factors, state.messages, strict=True):
            kept = []
            for port, message in zip(joined.arguments, sent, strict=True):
                cut = factor.plate if not port.known and port.way != "whole" else None
                kept.append(unpadded(message, cut))
            messages[factor.name] = tuple(kept)
        if not (record.impossible or record.outgrown):
            record.in_loops, measured = labels_in_loops(factors), bool(record.advice)
            loops = together(model.variables, factors, messages, found, record.converged, measured)
            scales = tuple(filter(None, [scales_in_loops(factors)]))
            # The ties that are left are those of two unknowns in other factors.
            record.advice = (*(loops.notes or record.advice), *scales)
            record.narrow = bool(record.advice)
            record.wide = any(TOO_WIDE in note for note in record.advice)
            if record.converged and not record.without_value:
                apart, record.elsewhere = weighted_notes(plan, state, model.variables, factors, messages, found)
                # Draws take the precision as it is believed to be.
                apart = None if scales else apart
                # Draws are no better than integrals over unknowns that no other factor meets.
                integrals = not (record.effective or record.hosts) and met_once(factors)
                record.apart = "" if integrals or (record.at_once and not record.effective) else apart or ""
                known = apart is not None or record.narrow or loops.least > LOOSE
                record.apart = record.apart or record.projected
                alone = (record.at_once or integrals) and all_single(factors)
                if not (record.elsewhere or record.apart or alone):
                    apart, record.elsewhere = by_draws(model.variables, factors, found, log_evidence, known)
                    record.apart = apart or ""
                    if apart is None and loops.least < NARROW:
                        record.advice, record.narrow = (loops.told, *scales), True
            record.apart = record.apart or vectors_of_shares(factors)
        if as_vector is not None:
            model, found = as_vector.given, as_vector.apart(found, jax.tree.map(fetched, messages))
        report = record.report(policy, log_evidence, found)
        black = ((at, factor) for at, factor in enumerate(factors) if isinstance(factor, BlackBoxFactor))
        oracles = {factor.name: record.hosts.get(at, factor.oracle) for at, factor in black}
        return cls(
            found,
            messages,
            log_evidence,
            report,
            seed,
            record.effective,
            record.doubt,
            record.sampled.standard_errors,
            oracles,
            model.variables,
            LeftOut.of(model.factors, report.status),
        )

    def update(self, batch: FactorGraph, messages: object = None, **settings: Any) -> "Posterior":
        """The posterior after more factors: beliefs so far are their prior, and older messages are dropped.

        Parameters
        ----------
        batch : FactorGraph
            New factors. What they share with earlier ones are the same Variable objects. Other plates, of new rows,
            take the place of earlier ones of their name.
        messages : Oracle, HostOracle, callable or dict, optional
            As in `infer`; by default the oracles so far, with what they have learned, for factors of the same name.
        **settings
            Of `infer`: `sweeps`, `tolerance`, `damping`, `power`, `improper`, `schedule`, `rng`.

        Returns
        -------
        Posterior
            Beliefs about the variables of the batch and about those that came before. `log_evidence` is that of all
            factors so far; `report`, `messages` and `doubt` are the batch's.

        Notes
        -----
        Memory does not grow with batches whose rows have the same names. What is exact is as exact in batches:
        conjugate factors, and linear Gaussian ones with one belief for all that they share. Elsewhere a message is not
        revised once its batch is over (assumed density filtering), and variables with separate beliefs lose their
        dependence: status and notes say so, also after later batches. Beliefs about what a batch lacks, such as earlier
        rows, stay as they were. To keep all messages give the larger model to `infer(model, start_from=post)`
        instead.

        Examples
        --------
        >>> from meanmap import ep
        >>> mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
        >>> post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=[1.0, 2.0])))
        >>> post.update(ep.FactorGraph(ep.Gaussian(mu, observed=[3.0])))["mu"]
        Normal(mean=1.5, sd=0.5)
        """
        from meanmap.ep.inference.infer import infer  # which makes posteriors

        if not isinstance(batch, FactorGraph):
            raise KindError(f"batch is {a_type(batch)}; expected a FactorGraph of the new factors.")
        priors = {name: self._as_prior(variable) for name, variable in batch.variables.items() if self._has(variable)}
        if not priors:
            raise InputError(
                f"the batch shares no variable with the posterior of {', '.join(map(repr, self))}: make its factors "
                "with the same Variable objects."
            )
        model = FactorGraph(*(with_variables(factor, priors) for factor in batch.factors))
        names = {factor.name for factor in model.factors}
        known = {name: oracle for name, oracle in self.oracles.items() if name in names}
        new = infer(model, known if messages is None else messages, **settings)
        report = new.report
        left_out = self._left_out.after(self._variables, new._left_out, priors, batch.variables)
        # The user's own objects, by which the next batch is recognised.
        variables = self._variables | batch.variables
        for doubt, note in left_out.doubts(variables):
            status = f"{report.status}, but {doubt}" if report.status == "converged" else report.status
            report = replace(report, status=status, notes=(*report.notes, note))
        return Posterior(
            dict(self) | dict(new),
            new.messages,
            self.log_evidence + new.log_evidence,
            report,
            new.seed,
            new.effective_sample_size,
            new.doubt,
            new.standard_errors,
            self.oracles | new.oracles,
            variables,
            left_out,
            replaced=[*(known for known in self._replaced if known() is not None), *self._replaced_by(batch)],
        )

    def _replaced_by(self, batch: FactorGraph) -> list[ref[Variable]]:
        """The plates whose place those of this batch take."""
        mine = (self._variables.get(name) for name in batch.variables)
        return [ref(known) for known in mine if known is not None and known is not batch.variables[known.name]]

    def evidence_gradient(self, priors: Callable[[Any], Mapping[str, Family]], at: Any) -> Any:
        """The gradient of `log_evidence` with respect to parameters of priors, without another run.

        Parameters
        ----------
        priors : callable
            Gives priors by the name of their variable: `lambda v: {"w": ep.Normal(0.0, v)}`. JAX differentiates it, so
            kernels and anything else that is written with `jax.numpy` may be inside.
        at : number, array, or dictionary or tuple of these
            The parameters that the priors of this run had.

        Returns
        -------
        Arrays in the form of `at`.

        Notes
        -----
        At a fixed point of EP, log evidence does not change with messages to first order, so these are held fixed. The
        error is that of the fixed point: give `infer` a small `tolerance`. Here `priors` is called in double precision;
        where a kernel matrix is nearly singular, make the priors of the run with `jax.enable_x64`, too.

        Examples
        --------
        >>> from meanmap import ep
        >>> w = ep.Variable("w", ep.Normal(0.0, 4.0))
        >>> post = ep.infer(ep.FactorGraph(ep.Gaussian(w, observed=3.0)))
        >>> post.evidence_gradient(lambda v: {"w": ep.Normal(0.0, v)}, 4.0).round(9).item()  # (9 / 5 - 1) / (2 * 5)
        0.08
        """
        if not self.report.converged:
            raise InputError(
                f"this run {self.report.status}: its log evidence has no gradient; run it for more sweeps."
            )
        return evidence_gradient(priors, at, self._variables, self._beliefs, self._joint)

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables by name: factors of later rows are about these objects, also after `mm.load`."""
        return dict(self._variables)

    def _has(self, variable: Variable) -> bool:
        """Whether this is a variable of earlier factors; another one of its name is not, and may be one of new rows."""
        same = self._variables.get(variable.name) is variable
        if variable.name in self._variables and not same and variable.plate is None:
            raise InputError(
                f"{variable.name!r} of the batch is another Variable of that name: pass the same object, which is "
                f"posterior.variables[{variable.name!r}], also after mm.load."
            )
        if not same and any(known() is variable for known in self._replaced):
            raise InputError(
                f"{variable.name!r} of the batch is a plate of an earlier batch, and another one of its name has taken "
                "its place since: its beliefs are gone. Give plates that come back names of their own, such as "
                f"{variable.name + ' 1'!r} and {variable.name + ' 2'!r}."
            )
        return same

    def _as_prior(self, variable: Variable) -> Variable:
        """The variable with the belief about it as its prior."""
        if variable.plate is not None and variable.prior is None:
            raise InputError(
                f"{variable.name!r} has a plate and no prior, and an earlier batch used it: make another Variable for "
                "the rows of each batch."
            )
        belief = self[variable.name]
        if not np.all(fetched(belief.is_proper())):
            raise InputError(f"the belief about {variable.name!r} is improper, and cannot be the prior of a batch.")
        return Variable(variable.name, belief, variable.plate)

    def to_frame(self) -> Any:
        """A pandas frame of the mean and sd of each number: `w`, or `w[0]` in a vector or a plate."""
        names, mean, sd = zip(*(row for name in self for row in moments_of(name, self[name], None)), strict=True)
        return frame_of({"mean": mean, "sd": sd}, names)

    def _as_page(self, brief: bool = False) -> Page:
        return posterior_page(self)

    if not TYPE_CHECKING:  # so that type checkers refuse other names

        def __getattr__(self, name: str) -> Any:
            known = name in self.__dict__.get("_beliefs", {})
            instead = f"; type post[{name!r}]" if known else of_posterior(name)
            raise AttributeError(f"'Posterior' object has no attribute {name!r}{instead}")

    def __getitem__(self, name: str) -> Family:
        if name not in self._beliefs:
            known = ", ".join(map(repr, self._beliefs))
            raise KeyError(f"{name!r}{did_you_mean(name, self._beliefs)}; the variables are {known}")
        return self._beliefs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._beliefs)

    def __len__(self) -> int:
        return len(self._beliefs)

    def __repr__(self) -> str:
        return f"Posterior({', '.join(self._beliefs)}; {self.report.status})"

    def __str__(self) -> str:
        lines = [f"Posterior, {self.report}"]
        lines += [f"  {name}: {belief!r}{self._sampled(name)}" for name, belief in self._beliefs.items()]
        return "\n".join([*lines, f"  {self._evidence_in_words()}"])

    def _evidence_in_words(self, digits: int = 5) -> str:
        """With what makes it no evidence: a run, or one of an earlier batch, that did not converge."""
        said = f"log evidence {self.log_evidence:.{digits}g}"
        runs = (self.report.status, *self._left_out.statuses)
        unsettled = any(not status.startswith("converged") for status in runs)
        return f"{said}, {OF_NO_FIXED_POINT}" if unsettled and np.isfinite(self.log_evidence) else said

    def _sampled(self, name: str) -> str:
        """The standard error of sampling in a mean, in words; empty where there is none."""
        error = self.standard_errors.get(name)
        if error is None:
            return ""
        said = np.array2string(error, threshold=8, formatter={"float_kind": "{:.2g}".format})
        return f", standard error of the mean by sampling {said}"
