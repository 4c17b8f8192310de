"""Mixed models by formula."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.arrays import check_finite
from meanmap.core.errors import ColumnError, ParameterError
from meanmap.core.language import a_type, in_digits, in_percent
from meanmap.core.meant import did_you_mean
from meanmap.core.report import Report
from meanmap.core.synonyms import own_words
from meanmap.core.tables.doubts import copied_rows
from meanmap.core.threads import one_blas_thread
from meanmap.ep.linear.disagreements import disagreements
from meanmap.ep.linear.doubts import doubts, fractions, overdispersed
from meanmap.ep.linear.evidence import correction
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.fitted import Fitted
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.instead import called_here
from meanmap.ep.linear.integrate import UNSETTLED, Integrated, Node, integrate
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.limits import limited
from meanmap.ep.linear.ordered import cumulative, first_gaps, read_levels
from meanmap.ep.linear.problem import Problem
from meanmap.ep.linear.response import Response, of_zeros_and_ones, read_response, without_trials
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.separation import separated
from meanmap.ep.linear.shared import Shared, shared_names
from meanmap.ep.linear.weights import Kinds, affordable
from meanmap.ep.weighted_draws import Weighted, pareto_shape

__all__ = ["fit"]

# The number of draws that check the belief, and the shape of their weights above which it is doubted.
_DRAWS, _DOUBTED = (2_000_000, 40, 2000), 0.7
# A tenth of them is enough if their effective share is this: weights with a standard deviation of .18 move standard
# deviations by at most 12%, and ends of intervals by .37 of these, less than the threshold for a note.
_FIRST, _ALIKE = (200_000, 40, 200), 0.97
# A standard error of the log evidence that is worth a note.
_UNSURE = 0.1
# Weights with this effective number of draws are trusted whatever their tail.
_NEARLY_ALL = 0.6
# Nodes are laid, and heights between them interpolated, by the evidence before it is corrected: corrections that move a
# standard deviation of effects by this many of its own leave it off by about as much.
_MOVED = 0.25
# Weighted draws of components that are worth fewer equal ones than this leave ends of intervals off by a third of a
# standard deviation or more.
_WORTH = 60
# If the last nodes of a lattice have more than this share of the probability, some of it lies outside.
_LATE = 0.015
# Nodes with less of the probability than this cannot move an estimate that a table shows.
_RARE = 0.001
# Interpolation between nodes puts at most .15 of the probability into other cells where standard deviations are right
# (against quadrature), and nearly all where they are wrong.
_ELSEWHERE = 0.3


@one_blas_thread()
@own_words
def fit(
    formula: str,
    data: object,
    family: str = "gaussian",
    *,
    link: str | None = None,
    weights: str | None = None,
    missing: str = "raise",
    priors: Mapping[str, Any] | None = None,
) -> Fitted:
    """A regression with group effects (a mixed model), by formula: `mm.fit("y ~ x + (1 + x | group)", frame)`.

    All effects have one joint Gaussian belief, updated row by row by expectation propagation; standard deviations and
    correlations of effects, and the parameters of the family, are integrated over a few nodes.

    Parameters
    ----------
    formula : str
        In the notation of Bambi and lme4, parsed by the package formulae (extra `formulas`): intercepts (`0 +`
        leaves them out), interactions `a * b`, labels with their first level as the reference, `poly(x, 2)`, `bs(x,
        df=5)`, `np.log(x)`, `offset(x)`, effects of groups `(1 + x | g)`, nested `(1 | a/b)` and crossed. As in lme4
        effects in one bracket are correlated, and `(1 + x || g)` is `(1 | g) + (0 + x | g)`. Names are columns; `np` is
        NumPy.
    data : pandas or polars frame, or mapping of columns
        The data that the formula refers to.
    family : {"gaussian", "t", "bernoulli", "binomial", "poisson", "negativebinomial", "gamma", "cumulative"}
        The distribution of the response. Bernoulli takes two labels, and models the one that means yes, or else the
        second; `use["yes"] ~ ...` models one label against all others. Binomial takes `p(successes, trials) ~ ...`.
        Cumulative takes ordered labels, numbers or an ordered pandas.Categorical: P(y ≤ k) = logistic(threshold_k −
        predictor). Gaussian, t and gamma take `censored(y, status) ~ ...`, with status "none", "left" (the value is
        below y), "right" (above y) or "interval" (`censored(low, high, status)`), and `truncated(y, lb=0, ub=10) ~ ...`
        where values outside the limits were never recorded.
    link : {"identity", "logit", "probit", "log"}, optional
        The first link of the family by default.
    weights : str, optional
        A column of frequency weights: a row of weight 2 counts twice. For precisions, as in lme4, where the variance of
        the noise is sigma² / weight, divide them by their mean.
    missing : {"raise", "drop"}
        Whether to refuse or leave out rows with missing values in the columns used.
    priors : mapping, optional
        Priors by name in the printed table, in the units of the data. For a coefficient: the mean and standard
        deviation of a normal prior, `{"x": (0.0, 0.5)}`; the intercept is the value at the means of all columns. For a
        standard deviation: the scale of a half Student prior with 3 degrees of freedom, `{"sd(x | group)": 0.3,
        "sigma": 2.0}`. For the shape alpha of negative binomial and gamma responses: the scale of a half Cauchy prior,
        10 by default. For the degrees of freedom nu of Student responses: the shape and the rate of a Gamma prior,
        `{"nu": (2.0, 0.1)}` by default.

    Returns
    -------
    Fitted
        `print` shows the table; `to_frame()`, `predict(frame)` (with `groups=False` where effects of groups are 0),
        `group_effects()`, `contrasts(column)`, `draws()`, `expected()`, `simulate()`, `leave_one_out()`,
        `log_evidence`, `report`. `mm.io.to_arviz` takes it.

    Notes
    -----
    Default priors are weak, in the units of the data. Coefficients are Normal with mean 0 and standard deviation 2.5
    sd(y) / sd(x), where x is what is left of a product or function of numbers, such as x:k and I(x ** 2), by the
    columns that it is made of (x and k, and x), unless these have priors of yours: it does not matter where x is 0.
    The intercept, which refers to the means of all columns, is Normal around the mean of y (under a log link the
    logarithm of that mean, over the mean of exp(offset), where counts that are all 0 have half an event in all rows; 0
    for labels) with standard deviation 2.5 sd(y).
    Without an intercept each label of the first categorical column, as in `0 + c`, has the prior of the intercept:
    priors, and hence the evidence, are not those of `c` with an intercept, whose coefficients are differences. Without
    labels either, sd(y) and sd(x) are root mean squares. Standard deviations of effects and of noise are half Student
    with 3 degrees of freedom and scale 2.5 sd(y) / rms(x); with an intercept in the same bracket, or a column for
    each label, x is centred, and a product is what is left of it as above, though the table shows standard deviations
    where x is 0. Where a bracket has no intercept, or a product without its columns, or effects are independent (`||`),
    the model itself depends on where x is 0, as in lme4. Correlations are uniform over correlation matrices
    (Lewandowski, Kurowicka & Joe 2009). Distances between thresholds have the prior of standard deviations, and the
    mean of thresholds that of an intercept.
    sd(y) is 1 except for gaussian and t; for t it is the median distance from the median divided by .6745, and the
    median of y replaces its mean.

    Expectation propagation is least accurate in groups of few rows, and over many groups its errors add up: alone, it
    estimates a standard deviation of labels in 2000 groups of three rows up to one posterior standard deviation too
    small. Where the evidence would be off by more than .25, the effects of each group of the largest factor are
    therefore integrated by quadrature given the others. With one factor the evidence and the effects that all rows
    share are then as by brute force; with other factors the evidence is corrected at the mean of these. At each node
    the rest is corrected by weighted draws, and a note says if these move a standard deviation of effects by more than
    .25 of its own.

    The evidence is corrected by weighted draws, without groups from skewed marginals where draws from the joint
    Gaussian do not suffice: few events at several levels make it .3 too low or more. The report has its standard error;
    a note says if this is above .1.

    Tables, draws and intervals use skewed marginal distributions (Cseke & Heskes 2011) of coefficients, contrasts, and
    the most skewed predictors and group effects (40,000 divided by the number of rows). Marginals of coefficients and
    contrasts that are far from normal, as after one event in 300 rows, are computed by runs that hold them at one value
    after another (at most 20,000 divided by the number of rows). The interval ends of others, and of probabilities of
    ordered labels, are corrected for skewness to first order, with a warning if that is not enough. The report and its
    status say if such a marginal is far from the joint Gaussian, or if weighted draws give different standard
    deviations or interval ends.

    Expectation propagation: Minka (2001); integrating few hyperparameters: Rue, Martino & Chopin (2009).

    Examples
    --------
    >>> import meanmap as mm
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, x = np.repeat(np.arange(10), 20), rng.normal(size=200)
    >>> y = 1 + 0.5 * x + rng.normal(size=10)[group] + rng.normal(size=200)
    >>> found = mm.fit("y ~ x + (1 | group)", {"y": y, "x": x, "group": group})  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    """
    law = _family(family, link)
    if weights is not None and not isinstance(weights, str):
        raise ParameterError(f"weights is {a_type(weights)}; expected the name of a column of data.")
    if priors is not None and not isinstance(priors, Mapping):
        raise ParameterError(f"priors is {a_type(priors)}; expected a mapping such as {{'x': (0.0, 0.5)}}.")
    read = Formula(formula, data, missing, () if weights is None else (weights,))
    counts = np.ones(len(read.rows.kept))
    if weights is not None:
        counts = np.asarray(read.rows.frame[weights], float)
        check_finite(counts, "weights")
        if (counts < 0).any() or not counts.any():
            raise ParameterError(f"weights has {counts.min():g}; expected numbers of 0 or more, some above 0.")
    levels: tuple[Any, ...] = ()
    if law.ordered:
        response, levels, name = read_levels(read, data)
        given, law = Response(response, np.ones(len(counts)), name), cumulative(len(levels))
    else:
        given = read_response(read, law)
        law = limited(law, given.limits) if given.limits else law
        counts = counts * (given.trials > 0)
    scaled = Scaled.of(read, given.values, law, counts, tuple(priors or ()))
    low, high = ((each - scaled.base) / scaled.unit for each in (given.low, given.high))
    response = (given.values - scaled.base) / scaled.unit
    observed = Observed.of(response, given.trials, read.rows.offset / scaled.unit, counts, low, high)
    predictor = scaled.predictor(read.rows)
    if not predictor.blocks:
        raise ParameterError(f"formula {formula!r} has no effects; expected at least an intercept: 'y ~ 1'.")
    both = [name for name in read.names if name in law.parameters]
    if both:
        raise ColumnError(
            f"the effect {both[0]!r} has the name of a parameter of {family} responses: rename the column."
        )
    components = scaled.components(read, law.parameters, priors or {})
    problem = Problem(predictor, components, law, observed)
    begin = np.zeros(components.size)
    for _, width, start in components.parts():
        begin[start : start + width] = np.log(0.5)
    for at, parameter in enumerate(law.parameters, start=components.size - len(law.parameters)):
        begin[at] = law.first.get(parameter, 0.0)
    if levels:
        begin[components.size - len(law.parameters) :] = first_gaps(given.values, counts)
    model, log_evidence, coordinates = integrate(problem, begin)
    nodes = model.nodes
    log_evidence -= float(law.densities(observed) @ counts) * np.log(scaled.unit)
    judged = None if law.exact else _judged(problem, nodes[0])
    shared = Shared.of(model, scaled, levels, judged)
    if judged is None:
        checked, corrected, unsure = None, 0.0, 0.0
    else:
        # More draws are affordable where equal rows are looked at once.
        checked = judged if problem.alike is None else _judged(problem, nodes[0], problem.alike)
        corrected, unsure = correction(problem, model, checked)
    single = law.ordered or ((law.of_labels or law.of_trials) and bool((given.trials <= 1).all()))
    apart = separated(read, scaled, observed, law)
    notes = doubts(read, predictor, law, single) + apart
    # Residuals of a belief that did not converge do not judge the family.
    notes += [] if model.unsettled > UNSETTLED else overdispersed(law, observed, nodes[0].settled)
    notes += of_zeros_and_ones(given, law) + without_trials(given)
    notes += copied_rows([read.rows.frame], ["data"]) if weights is None else fractions(counts, family)
    effects = [f"sd({label} | {group.name})" for group in read.rows.groups for label in group.labels]
    report = _report(problem, model, shared_names(read, levels), notes, shared, checked, effects, unsure)
    if apart and model.lacks_draws:
        joined = f"{report.status}, {'and' if ', but' in report.status else 'but'}"
        report = replace(report, status=f"{joined} predictions are nan where coefficients separate the response")
    return Fitted(
        read,
        given.name,
        given.limits,
        levels,
        scaled,
        model,
        coordinates,
        float(log_evidence + corrected),
        report,
        data_rows(data, read),
        shared,
        judged,
        corrected,
    )


def data_rows(data: Any, read: Formula) -> int:
    """The number of rows left out because of missing values."""
    total = len(data[next(iter(data))]) if isinstance(data, dict) else len(data)
    return total - len(read.rows.kept)


def _family(name: str, link: str | None):
    links = [each for each in FAMILIES if each[0] == name]
    if not links:
        known = list(dict.fromkeys(key[0] for key in FAMILIES))
        meant = called_here(name)
        near = "" if meant else did_you_mean(name, known)
        raise ParameterError(f"family is {name!r}{near}; expected one of {', '.join(map(repr, known))}.{meant}")
    chosen = (name, links[0][1] if link is None else link)
    if chosen not in links:
        raise ParameterError(f"link of {name} is {link!r}; expected {' or '.join(repr(each[1]) for each in links)}.")
    return FAMILIES[chosen]


def _judged(problem: Problem, best: Node, alike: Kinds | None = None) -> Weighted:
    """Weighted draws of the effects that all rows share."""
    first, every = (affordable(best.settled, *draws, alike) for draws in (_FIRST, _DRAWS))
    found = problem.weighted(best.phi, best.settled, first, alike)
    if first < every and found.effective < _ALIKE:
        found = problem.weighted(best.phi, best.settled, every, alike)
    # After these stand the effects of factors that have one group.
    width = len(problem.components.fixed[0][0]) if problem.components.fixed else 0
    return replace(found, draws=found.draws[:, :width])


def _added_to(notes: list[str], effect: str, moved: float) -> bool:
    """Say how inaccurate a standard deviation is in the note that it follows from its prior, if there is one."""
    for place, note in enumerate(notes):
        if note.startswith("each group of") and effect in note:
            notes[place] += (
                f". It is computed inaccurately as well: weighted draws move it {moved:+.2g} of its "
                "posterior standard deviations"
            )
            return True
    return False


def _report(
    problem: Problem,
    model: Integrated,
    names: tuple[str, ...],
    notes: list[str],
    shared: Shared,
    judged: Weighted | None,
    effects: list[str],
    unsure: float,
) -> Report:
    """Whether sweeps converged at all nodes, and whether weighted draws confirm the belief."""
    measures = {"nodes": float(problem.nodes)}
    nodes = model.nodes
    rested = model.unsettled <= _RARE and problem.beyond <= UNSETTLED
    if problem.beyond > UNSETTLED:
        notes.append(
            "components of variance were integrated only where sweeps converge, beside which about "
            f"{in_percent(problem.beyond)}% of the probability is expected: estimates may be off"
        )
    if model.unsettled > _RARE:
        notes.append(
            f"sweeps did not converge at nodes with {in_percent(model.unsettled)}% of the probability: estimates may "
            "be off"
        )
    status = "converged" if rested else "stopped before converging"
    doubted = bool(problem.components.size) and problem.nodes == 1
    if doubted:
        notes.append("components of variance were not integrated: one node has all of the probability")
    if problem.late > _LATE:
        doubted = True
        notes.append(
            f"components of variance were integrated over {problem.nodes} nodes, the last fifth of which still "
            f"have {in_percent(problem.late)}% of the probability: tails are cut off, and their intervals may be "
            "too narrow"
        )
    if problem.elsewhere > _ELSEWHERE:
        doubted = True
        notes.append(
            f"the interpolated posterior of the components of variance has {in_percent(problem.elsewhere)}% of its "
            f"probability where its {problem.nodes} nodes have none: do not use the estimates of standard deviations "
            "and correlations"
        )
    if problem.near_0:
        doubted = True
        listed = ", ".join(effects[at] for at in problem.near_0)
        notes.append(
            f"the data do not rule out that {listed} is 0, and with more than four components of variance, here "
            f"{problem.components.size}, and so many rows, logs are treated as nearly normal: estimates of components "
            f"may be off by a standard deviation{problem.components.fewer('. Use fewer')}"
        )
    off = np.flatnonzero(np.abs(problem.moved) > _MOVED)
    doubted = doubted or bool(len(off))
    far = [at for at in off if not _added_to(notes, effects[at], problem.moved[at])]
    if far:
        listed = ", ".join(f"{effects[at]} {problem.moved[at]:+.2g}" for at in far)
        notes.append(
            f"expectation propagation is inaccurate where groups have few rows: weighted draws move {listed} posterior "
            "standard deviations, and they may still be off by as much again"
        )
    if problem.worth < _WORTH:
        doubted = True
        notes.append(
            f"{problem.components.size} components of variance were integrated by {problem.nodes} weighted draws, "
            f"which are worth only {problem.worth:.0f} equal ones: ends of their intervals may be off"
            f"{problem.components.fewer('. Use fewer')}"
        )
    if judged is not None:
        shape = pareto_shape(judged.logs)
        measures |= {"Pareto k": shape, "effective share": judged.effective}
        measures |= {"log evidence: standard error": unsure}
        # If all distributions were computed by runs or better draws, draws from the joint Gaussian do not judge them.
        computed = len(shared.laws.by_runs) + len(shared.laws.by_draws)
        by_runs = computed == len(names) and len(problem.predictor.blocks) <= 2
        if shape > _DOUBTED and judged.effective < _NEARLY_ALL and not by_runs:
            told = [f"importance weights of the draws have a tail of shape {shape:.2g} (above {_DOUBTED})"]
        else:
            told = disagreements(judged, shared, names)
        notes += [f"{each}: standard deviations may be wrong" for each in told]
        doubted = doubted or bool(told)
        if shape > _DOUBTED and not (by_runs or told):
            notes.append(
                f"Pareto k is {shape:.2g} (above {_DOUBTED}), but weighted draws are worth "
                f"{in_percent(judged.effective)}% of equal ones, and agree with the table"
            )
        if unsure > _UNSURE:
            notes.append(
                f"the log evidence has a standard error of {in_digits(unsure, 1)} by weighted draws: so have Bayes "
                "factors, as logs"
            )
    status += ", but standard deviations may be wrong" if doubted else ""
    return Report(status, rested, problem.sweeps, [node.settled.moved for node in nodes], {}, tuple(notes), measures)
