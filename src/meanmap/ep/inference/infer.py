"""From a model to its posterior: factors in order with their oracles, the sweeps, and the report."""

from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import damping_share, parameter
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean
from meanmap.core.points import bucket, pad
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Seed
from meanmap.ep.asking.chosen_oracle import check_messages, given_oracle, with_oracle
from meanmap.ep.calling import as_now
from meanmap.ep.calls import accounting
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.gaussian import Dot
from meanmap.ep.factors.interval import intersected
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.afterwards import log_evidence, undefined_functions, zero_density
from meanmap.ep.inference.averaged import averaged
from meanmap.ep.inference.cheapest import cheapest, rough
from meanmap.ep.inference.drawn import drawn_posterior
from meanmap.ep.inference.exclusive import exclusive
from meanmap.ep.inference.impossible import contradicted, excluded, forbidden, touching, without_room
from meanmap.ep.inference.joined import Joined
from meanmap.ep.inference.modes import are_narrow, from_mode
from meanmap.ep.inference.order import along, chosen_schedule
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.inference.priorless import nearly_singular, refuse_without_prior, taken_as_flat
from meanmap.ep.inference.record import Record
from meanmap.ep.inference.run import Run
from meanmap.ep.inference.separate import LeftOut
from meanmap.ep.inference.solved import left_out, solved
from meanmap.ep.inference.ties import advice
from meanmap.ep.inference.unbounded import outgrown
from meanmap.ep.inference.verdict import Verdict
from meanmap.ep.inference.weighted import singles
from meanmap.ep.oracles.host import HostOracle
from meanmap.ep.piecewise.memory import remembering
from meanmap.ep.quadrature.quadrature import with_few_nodes
from meanmap.ep.sweeps.improper import check_policy
from meanmap.ep.sweeps.layout import Layout
from meanmap.ep.sweeps.plan import Plan, prepare, resumed, start
from meanmap.ep.variables import concrete

__all__ = ["infer"]

_LARGE = 1_000_000  # bytes


@own_words
@one_blas_thread()
def infer(
    model: FactorGraph,
    messages: object = None,
    *,
    sweeps: int = 300,
    tolerance: float = 1e-6,
    damping: float = 0.0,
    power: float = 1.0,
    improper: str = "allow",
    schedule: str = "auto",
    start_from: Posterior | None = None,
    mesh: jax.sharding.Mesh | None = None,
    rng: Seed = None,
) -> Posterior:
    """The posterior of every variable by expectation propagation.

    Parameters
    ----------
    model : FactorGraph
        Factors and variables.
    messages : Oracle, HostOracle, callable or dict, optional
        How messages of black-box factors are computed: an oracle for all, or by factor name. By default `Quadrature` if
        a factor has at most two unknown numbers, and `ImportanceSampling` otherwise; for a function that JAX cannot
        trace `Learned` instead of sampling, if evaluations take so long that this is cheaper. A `HostOracle`, or a
        plain function of `Questions`, runs in Python and may keep state.
    sweeps : int
        The maximum number of sweeps. In a sweep every factor sends all its messages once, a whole plate at a time.
    tolerance : float
        The run has converged when no belief moves by more than tolerance × (1 − damping) standard deviations in a
        sweep.
    damping : float
        The share of the old message that is kept in each sweep, in natural parameters. More is kept of projections
        where steps are long, and where they reverse direction without becoming shorter; if messages become invalid or
        the run still does not converge, it restarts with steps a quarter as long, and a note says so.
    power : float
        α of power expectation propagation, for factors that support it: 1 is EP, and α → 0 is variational Bayes.
    improper : {"allow", "force", "skip", "damp"}
        What to do with a message that is not a normalisable distribution by itself; see `settle`. The report counts
        them by factor, except in a run that allowed them, converged, and raised no other doubt.
    schedule : {"auto", "parallel", "sequential"}
        "parallel" sends whole plates at once. "sequential" goes through a plate member by member, along chains and
        trees and back, and each member uses the messages of those before it: fewer and more stable sweeps, each at the
        cost of one linear map per member. "auto" is sequential where information would need many sweeps to travel
        through a plate.
    start_from : Posterior, optional
        An earlier result whose messages are the starting point, also when plates have grown since.
    mesh : jax.sharding.Mesh, optional
        Devices, along one axis, among which the rows of plates are divided: messages stay with their rows, and
        contributions to shared variables are summed once per sweep. Beliefs about a plate then stay on these devices if
        their number divides its size. Give the same model in every process of a cluster.
    rng : None, int, numpy Generator or JAX key
        Randomness of sampling oracles; the same draws are used in every sweep, so that there is a fixed point.

    Returns
    -------
    Posterior
        Beliefs by name, `log_evidence`, `report`; an interrupted run returns its current state. The report says which
        way to messages was chosen for functions on the host, and counts evaluations, with the seconds spent in them and
        elsewhere. For data that are impossible under the model (sums without noise that contradict each other, sharp
        intervals, tables or densities that exclude one another, a density that is zero everywhere) the log evidence is
        −∞, and for densities that grow faster than the priors fall, so that there is no posterior, it is ∞; a note says
        why.

    Notes
    -----
    Minka (2001); power EP: Minka (2004). Computed in float64 and returned as NumPy. Sweeps are compiled for sizes of
    plates from a short list, so that slightly more data, or other data of the same size, need no compilation. The loop
    itself runs on the host: infer cannot be used inside `jax.jit`, `vmap` or `grad`. Functions in factors are compiled.
    Where one `Dot` meets one `Logistic` or `Poisson`, and nothing else, messages begin at the mode; so they do where it
    meets `BlackBox(jax.nn.sigmoid, z, p)` and `Bernoulli(p, observed=y)`, which is the same model. If each unknown is
    in one factor only, one sweep is enough.

    Where all factors are linear and all noise is normal with known precision, and factors form loops, there are no
    messages: the beliefs are the solution of one linear system. If up to three precisions are unknown, it is solved at
    many values of these, and the solutions are averaged: the log evidence is exact to about 1e-6, as are means and all
    standard deviations but those of the precisions, which get the Gamma of their mean and mean logarithm.

    Up to six numbers without a plate, with normal, gamma or beta priors, are drawn from their joint posterior if two or
    more of them are arguments of the same rows of functions, in at least two rows, or three in one: separate beliefs
    would be too narrow. Each component of a `MultivariateNormal` is a number. What `Dot` and `Sum` give is a function
    of theirs, which counts as one, as they have a joint belief: so `Student` noise of unknown scale about `Dot` is
    drawn, and with a known scale it has messages. Draws are moved from the priors to the posterior; further draws near
    these get exact weights, until standard errors of means and standard deviations are below a hundredth of a standard
    deviation. The draws that were moved then serve as a check: where these lie more often than chance allows at large
    weights, as along thin curved ridges, four times as many are moved, and if they still do, the status is "converged,
    but standard deviations may be wrong". Beliefs have the mean and standard deviation of these draws, and there are no
    messages.
    `mm.io.posterior_draws` gives joint draws; a note gives quantiles where they differ from those of a belief. The
    report has the largest standard error and the correlations. Labels of rows, and factors of one number, may be part
    of the model, and so may outputs of functions that other functions take or other factors observe, such as `Gaussian`
    with an unknown precision or `Student`.
    With more than 20,000 rows of factors (10,000 where another factor observes the output of a function), with a
    density of ∞, and if `messages`, `damping`, `power`, `improper`, `schedule`, `start_from` or `mesh` are given,
    messages are computed instead. So they are for functions that JAX does not trace
    and that take more than 15 milliseconds for all rows: a note then says that standard deviations may be too small.
    From one millisecond on there are fewer draws, and standard errors are twice as large.

    With other factors, unknowns with normal priors that `Dot` and `Sum` join in loops share one joint belief: the run
    has one vector in their place, and `post.messages` are those of its factors. Beyond 1500 numbers, those that meet in
    no row, such as the effects of the factor with most groups, are integrated out one by one, at a cost that is linear
    in rows. If more than 1500 are left, or rows times these are more than 20 million, beliefs are separate, and a note
    says how much too small their standard deviations are.

    Sums without noise that share unknowns are equations, which are solved for some of the unknowns. One that follows
    from others is left out, with a note, and the log evidence is that of the model without it. If they contradict each
    other, the data are impossible.

    Where factors join labels in loops, probabilities and the log evidence are approximate, as the status and a note
    say; tables that exclude one another only in a loop are not found.

    A bimodal posterior, such as that of a mixture with exchangeable components, is approximated at one of its modes,
    and the log evidence is then that of one mode. If the components have the same prior, the run may stop between the
    modes, without log evidence, as its status and a note say: give priors that distinguish the components.

    At convergence up to a thousand draws from the joint Gaussian of all unknowns are weighted by the exact density: the
    status and a note say which standard deviations differ by more than a tenth, and whether the numbers of a function
    have another mode where they are exchanged. This needs normal priors, functions that JAX traces, and at most 5000
    rows; errors of messages from other factors are not detected. For other families a note gives means and standard
    deviations of draws, made as above, if beliefs are at one mode or half as wide again; up to twenty numbers, in
    plates or not, that meet in rows and are not all normal are compared with draws near the beliefs, also by a tenth.
    Of more, up to 500, a note says how much too small standard deviations are from what moves with which message; where
    that finds them a little too small, as for products of two unknowns, chains from the beliefs give a number, by a
    tenth, in at most 1000 rows. Gammas and Betas that one function says all about have means and standard deviations by
    quadrature in a note if those of the beliefs differ by a tenth.

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> from meanmap import ep
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> z = ep.Variable("z", ep.Normal, plate=200)
    >>> p = ep.Variable("p", ep.Beta, plate=200)
    >>> model = ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
    >>> post = ep.infer(model)
    >>> post.report.status, bool(post["w"].mean()[0] > 3)
    ('converged', True)
    """
    if not isinstance(model, FactorGraph):
        raise KindError(f"model is {a_type(model)}; expected a FactorGraph: FactorGraph(factor, ...).")
    if start_from is not None and not isinstance(start_from, Posterior):
        raise KindError(f"start_from is {start_from!r}; expected a Posterior, which infer returned before.")
    check_messages(messages)
    _check_names(messages, model)
    limit = int(parameter(sweeps, "sweeps", axes=0, integer=True))
    step, alpha = 1 - damping_share(damping), _power(power)
    enough = float(parameter(tolerance, "tolerance", axes=0)) * step
    check_policy(improper)
    source = Rng.of(rng if start_from is None or rng is not None else start_from.seed)
    refuse_without_prior(model.factors)
    flat = taken_as_flat(model.factors)
    exact = solved(model) if mesh is None else None
    if exact is None and mesh is None and alpha == 1:
        exact = averaged(model)
    if exact is not None:
        note = exact.note or nearly_singular(model.factors, exact.beliefs)
        status = "converged, but standard deviations may be wrong" if note else "converged"
        notes = note, left_out(exact.repeated), flat
        report = Report(status, True, 1, [0.0], notes=tuple(filter(None, notes)))
        return Posterior(
            exact.beliefs,
            {},
            exact.log_evidence,
            report,
            source.seed,
            {},
            {},
            {},
            {},
            model.variables,
            LeftOut.of(model.factors, report.status),
        )
    as_asked = messages in (None, {}) and mesh is None and start_from is None and step == alpha == 1
    if as_asked and improper == "allow" and schedule == "auto":
        with concrete("infer"), Door():
            drawn = drawn_posterior(model, source)
        if drawn is not None:
            return drawn
    as_vector = Joined.of(model) if mesh is None else None
    model = model if as_vector is None else as_vector.model
    with remembering() as memory, accounting() as spent, concrete("infer"), Door():
        factors, hosts, choices = _ready(model, messages, alpha, memory)
        mode = from_mode(model, factors) if start_from is None and messages is None else None
        if mode is not None:  # at which a map that speaks first has nothing new to say
            factors = tuple(sorted(factors, key=lambda factor: isinstance(factor, Dot)))
        orders, far = along(factors)
        chosen = chosen_schedule(schedule, hosts, factors, far)
        layout = None if mesh is None else _laid_out(mesh, model, factors, hosts, chosen)
        if layout is not None:
            factors = layout.asked(factors)
        length = bucket if layout is None else layout.length
        plan = jax.tree.map(_placed if layout is None else np.asarray, prepare(model.variables, factors, length))
        begin = start_from if mode is None else mode
        state = start(plan) if begin is None else resumed(plan, factors, begin.messages)
        key = source.key
        if layout is not None:
            plan, state, key = layout.plan(plan), layout.state(plan, state), layout.key(key)
        record = Record(factors, hosts, spent, choices)
        record.remarks = left_out(() if as_vector is None else as_vector.system.repeated), flat
        orders = tuple(pad(order, bucket(len(order))) for order in orders)
        plans = _ladder(plan, factors, mode is not None and are_narrow(mode))
        run = Run(plans, key, alpha, improper, chosen, orders, hosts, record, mode is not None)
        verdict = Verdict(state, run.plans)
        record.impossible = excluded(factors) or contradicted(model) or touching(model)
        if not record.impossible:
            verdict = run.go(state, step, enough, limit)
            record.impossible = forbidden(run, verdict.state) if record.converged else record.impossible
        if not (record.impossible or record.interrupted) and (record.doubted or not record.converged):
            record.impossible = touching(model, afterwards=True) or exclusive(factors)
        evidence = -np.inf if record.impossible else log_evidence(run, verdict)
        evidence += 0.0 if as_vector is None else as_vector.law.log_constant
        record.impossible = record.impossible or without_room(factors, evidence)
        if evidence == -np.inf and not (record.impossible or record.interrupted):
            record.impossible = zero_density(run, verdict)
        evidence = -np.inf if record.impossible else evidence
        record.without_value = undefined_functions(run, verdict)
        record.rough = rough(factors, int(memory.number))
        record.outgrown = "" if record.impossible else outgrown(factors, evidence, doubted=record.doubted)
        if record.outgrown:
            evidence = np.inf
        elif not (record.interrupted or record.impossible or record.stuck):
            record.advice = advice(run, verdict, tuple(model.variables))
            alone = singles(factors)
            if alone:
                from meanmap.ep.inference.projected import by_integrals  # which most models do without

                record.projected = by_integrals(plan, verdict.state, factors, list(model.variables), alone)
    return Posterior.of(plan, verdict.state, model, factors, evidence, record, improper, source.seed, as_vector)


def _check_names(messages: Any, model: FactorGraph) -> None:
    if isinstance(messages, dict):
        known = [f.name for f in model.factors if f.asks_oracle]
        for name in messages:
            if name not in known:
                raise ParameterError(
                    f"messages names {name!r}{did_you_mean(name, known)}; the factors that ask an oracle are "
                    f"{', '.join(map(repr, known)) or 'none'}."
                )


def _placed(leaf: Any) -> Any:
    """An array; a large one where programs read it, as it would be copied there in every sweep."""
    leaf = np.asarray(leaf)
    return jax.numpy.asarray(leaf) if leaf.nbytes > _LARGE else leaf


def _laid_out(
    mesh: jax.sharding.Mesh,
    model: FactorGraph,
    factors: tuple[Factor, ...],
    hosts: dict[int, HostOracle],
    schedule: str,
) -> Layout:
    """Where the rows of plates lie on several devices, refused where all rows must be in one place."""
    if hosts:
        named = ", ".join(factors[at].name for at in hosts)
        raise KindError(
            f"{named} has an oracle on the host, which is asked for whole plates: leave mesh= out, or give an oracle "
            "such as ep.Quadrature()."
        )
    if schedule == "sequential":
        raise KindError(
            "members of a plate would be updated one by one, along a chain, which cannot be split over devices: leave "
            "mesh= out, or type schedule='parallel'."
        )
    return Layout(mesh, model.variables, factors)


def _ready(
    model: FactorGraph, messages: Any, alpha: float, memory: Any = None
) -> tuple[tuple[Factor, ...], dict[int, HostOracle], dict[str, str]]:
    """The factors in the order of a sweep, first those that send the same always, and which of them the host answers.

    Each black box gets its oracle; those on the host are kept apart, because compiled programs must not know them. The
    third says by factor which way was chosen for a function on the host that had none.
    """
    ready, hosts, choices = [], {}, {}
    for at, factor in enumerate(sorted(intersected(model.factors), key=lambda f: not f.constant)):
        if alpha != 1 and factor.approximate and not factor.powered:
            raise ParameterError(
                f"power is {alpha:g}, and {factor.name} is defined for power 1 only: leave power out, or give its "
                "density as ep.Density(log_factor, ...)."
            )
        if isinstance(factor, BlackBoxFactor):
            now, oracle = as_now(factor, memory), given_oracle(factor, messages)
            if oracle is None and now.host:
                oracle, choices[factor.name] = cheapest(now)
            factor = with_oracle(now, oracle, memory)
            if factor.oracle.on_host:
                hosts[at] = factor.oracle
                factor = replaced(factor, oracle=None)
        ready.append(factor)
    return tuple(ready), hosts, choices


def _ladder(plan: Plan, factors: tuple[Factor, ...], narrow: bool) -> tuple[Plan, ...]:
    """The plan, and plans with ever quicker forms of factors; those that have no more keep their quickest.

    Where messages are narrow from the first sweep, the last plan has few nodes alone: it compiles in a third of the
    time.
    """
    plans, quicker = [plan], tuple(factor.quick() for factor in factors)
    while any(quick is not factor for quick, factor in zip(quicker, factors, strict=True)):
        joined = zip(factors, quicker, plans[-1].factors, strict=True)
        mine = (own if quick is factor else replaced(quick, arguments=own.arguments) for factor, quick, own in joined)
        plans.append(replaced(plan, factors=tuple(mine)))
        factors, quicker = quicker, tuple(factor.quick() for factor in quicker)
    if narrow:
        plans.append(replaced(plans[-1], factors=tuple(map(with_few_nodes, plans[-1].factors))))
    return tuple(plans)


def _power(value: float) -> float:
    power = float(parameter(value, "power", axes=0))
    if power > 1:
        raise ParameterError(f"power is {power:g}; expected a number above 0 and at most 1.")
    return power
