"""Functions that take data, each as the battery of invariances calls it."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import meanmap as mm
from meanmap import ep
from meanmap.learning.default import unit_free_kernel

__all__ = ["ELSEWHERE", "FEW", "FUNCTIONS", "ROWS_OF", "Wrap", "X", "Y", "columns", "drift", "given", "numbers", "told"]

FEW: dict[str, Any] = {"n_permutations": 99, "rng": 0, "missing": "drop"}
RNG = np.random.default_rng(2026)


def sample(n: int, shift: float) -> pd.DataFrame:
    """Two numbers that go together, a count, a label and a truth value; all exact in float32."""
    a = RNG.normal(shift, 1.0, n).astype(np.float32).astype(float)
    return pd.DataFrame(
        {
            "b": (a + RNG.normal(0, 0.5, n)).astype(np.float32).astype(float),
            "a": a,
            "d": RNG.poisson(3, n),
            "c": np.where(a + RNG.normal(0, 0.7, n) > shift, "u", "v"),
            "e": RNG.random(n) > 0.5,
        }
    )


X, Y = sample(40, 0.0), sample(36, 0.5)
Wrap = Callable[[pd.DataFrame], Any]


def told(result: Any) -> tuple[float, ...]:
    return result.pvalue, result.statistic


def sizes(effect: Any) -> tuple[float, ...]:
    shift = (effect.shift.estimate, effect.shift.high) if effect.shift else ()
    return effect.distance.estimate, effect.distance.low, effect.share.high, *shift


def network(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Shares of the labels of a column, given another, in five rows. Rows with gaps would be learned from, too."""
    return five_rows(mm.bp.DependencyNetwork().fit(wrap(columns(x, 0, 3).dropna())), x, wrap)


def five_rows(model: Any, x: pd.DataFrame, wrap: Wrap, **settings: Any) -> tuple[float, ...]:
    """Shares of the labels of a column, given another."""
    belief = model.predict(wrap(columns(x, 0)[:5]), [x.columns[3]], **settings)
    return tuple(np.concatenate(list(belief.probabilities(x.columns[3]).values())))


def from_one(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """The same in a network of five columns, which learns a regression on the one that is known."""
    return five_rows(mm.bp.DependencyNetwork().fit(wrap(columns(x, 0, 1, 2, 3, 4).dropna())), x, wrap)


def with_users(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """A test of samples of users with two rows each, whose ids are left out with a note; and with them as clusters."""
    whole = [frame.notna().all(axis=1).to_numpy() for frame in (x, y)]
    x, y = (
        f.assign(user=(np.cumsum(each) - 1) // 2 * 2 + k) for k, (f, each) in enumerate(zip((x, y), whole, strict=True))
    )
    found = mm.two_sample_test(wrap(x), wrap(y), **FEW)
    by_user = mm.two_sample_test(wrap(x), wrap(y), clusters="user", **FEW)
    return *told(found), float(sum("each value of 'user'" in note for note in found.warnings)), *told(by_user)


def effect(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of one label on another, adjusted for a number."""
    both = columns(pd.concat([x, y], ignore_index=True), 0, 3, 4).dropna()
    number, outcome, cause = both.columns
    graph = mm.bp.BayesianNetwork([(number, cause), (number, outcome), (cause, outcome)])
    ends = dict(zip(("from_", "to"), sorted(both[cause].unique()), strict=True))
    difference = graph.effect(wrap(both), outcome, of=cause, rng=0, **ends).difference()
    return tuple(np.concatenate([difference.value, *difference.interval().values()]))


def in_clusters(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """The same from clusters of three rows."""
    both = columns(pd.concat([x, y], ignore_index=True), 0, 3, 4).dropna()
    number, outcome, cause = both.columns
    graph = mm.bp.BayesianNetwork([(number, cause), (number, outcome), (cause, outcome)])
    ends = dict(zip(("from_", "to"), sorted(both[cause].unique()), strict=True))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "26 clusters are few")
        found = graph.effect(wrap(both), outcome, of=cause, rng=0, clusters=3, **ends)
    return tuple(np.concatenate([found.difference().value, *found.interval().values()]))


def undecided(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Whether an effect that depends on an arrow in doubt is refused, and one that does not depend on it."""
    both = columns(pd.concat([x, y], ignore_index=True), 0, 2, 3, 4).dropna()
    number, count, outcome, cause = both.columns
    ends = dict(zip(("from_", "to"), sorted(both[cause].unique()), strict=True))
    arrows, answers = [(number, cause), (number, outcome), (count, outcome), (cause, outcome)], list[float]()
    for doubted in (cause, outcome), (number, count):
        plain = mm.graphs.PDAG.of(arrows)
        graph = mm.graphs.PDAG(plain.names, plain.directed, plain.undirected, (doubted,)).to_networkx()
        try:
            found = mm.bp.BayesianNetwork(graph).effect(wrap(both), outcome, of=cause, rng=0, **ends).difference()
            answers += np.concatenate([found.value, *found.interval().values()]).tolist()
        except mm.errors.InputError as error:
            answers.append(float("tests do not determine" in str(error)))
    return tuple(answers)


def quantiles_of_effect(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of a truth value on a count, adjusted for a number."""
    both = columns(pd.concat([x, y], ignore_index=True), 1, 2, 4).dropna()
    number, outcome, cause = both.columns
    graph = mm.bp.BayesianNetwork([(number, cause), (number, outcome), (cause, outcome)])
    ends = dict(zip(("from_", "to"), sorted(both[cause].unique()), strict=True))
    found = graph.effect(wrap(both), outcome, of=cause, rng=0, **ends)
    return tuple(np.concatenate([[found.quantiles(q).value, *found.quantiles(q).interval()] for q in (0.3, 0.5, 0.9)]))


def drift(x: Any, y: Any) -> tuple[float, ...]:
    monitor = mm.stats.DriftMonitor.of(x, **FEW).step(y)
    return (float(monitor.pvalues[0]),)


def alarmed(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """A monitor of rows with high values of a column as plain values, and how that column differs."""
    name = x.columns[1]
    high = y[~(y[name] <= x[name].quantile(0.6))]
    monitor = mm.DriftMonitor.of(wrap(x), run_length=5, **FEW)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "3 of .. rows of batch were left out")
        facts = monitor.step(wrap(high)).to_dict()
    (found,) = facts["compared"]
    rows = [r for r in found["columns"] if r["column"] == str(name) and not r["what"].startswith("missing")]
    said = [value for each in rows for value in each.values() if isinstance(value, float)]
    return *facts["pvalues"], *facts["evidence"], *facts["alarms"], *said


def gradient(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of the log evidence of a ready model, with respect to the mean and the width of the prior of its weights."""
    whole = x.dropna()
    labels = whole.iloc[:, 3].to_numpy() == sorted(set(whole.iloc[:, 3]))[0]
    fit = mm.ep.models.logistic_regression(wrap(columns(whole, 1, 2)), labels == labels[0], intercept_sd=2.5)

    def priors(at: Any) -> dict[str, Any]:
        return {"w": mm.ep.MultivariateNormal(at["mean"], at["variance"] * np.eye(3))}

    found = fit.posterior.evidence_gradient(priors, {"mean": np.zeros(3), "variance": 2.5**2})
    return *found["mean"], float(found["variance"])


def watched(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """By the command, of files: the p-value of the batch, and those of its columns."""
    from typer.testing import CliRunner

    from meanmap.cli.commands import app

    with TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("reference.csv", "batch.csv")]
        for path, frame in zip(paths, map(wrap, (x, y)), strict=True):
            plain = frame if isinstance(frame, pd.DataFrame) else mm.Table.of(frame).to_pandas()
            plain.to_csv(path, index=False)
        asked = ["drift", *paths, "--seed", "0", "--json", "--labels", str(x.columns[3])]
        said = json.loads(CliRunner().invoke(app, asked).stdout)
    first = set(map(str, x.columns[:5]))
    found = said["compared"][0]["columns"]
    compared = [each for each in found if each["column"] in first and not each["what"].startswith("missing")]
    return said["batches"][0]["pvalue"], *sorted(each["pvalue"] for each in compared)


def columns(frame: pd.DataFrame, *numbers: int) -> pd.DataFrame:
    return frame[[frame.columns[j] for j in numbers]]


def edges(graph: Any, frame: pd.DataFrame) -> tuple[Any, ...]:
    """By position, so that names do not matter."""
    at = {str(name): j for j, name in enumerate(frame.columns)}
    found = sorted(sorted((at[str(s)], at[str(t)])) for s, t in graph.to_networkx().edges())
    return tuple(end for edge in found for end in edge)


def numbers(x: pd.DataFrame) -> pd.DataFrame:
    """All columns but the labels and the truth values."""
    return columns(x, *(j for j in range(x.shape[1]) if j not in (3, 4)))


def given(x: pd.DataFrame) -> pd.DataFrame:
    """A number and the label, and what was added."""
    return columns(x, 1, 3, *range(5, x.shape[1]))


def mean_given(x: Any, y: Any, at: Any) -> tuple[float, ...]:
    return tuple(mm.condition(x, y, ridge=0.01, missing="drop")(at).mean().ravel())


def chances(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of a ready model: the label by two numbers."""
    whole = x.dropna()
    labels = whole.iloc[:, 3].to_numpy() == sorted(set(whole.iloc[:, 3]))[0]
    fit = mm.ep.models.logistic_regression(wrap(columns(whole, 1, 2)), labels == labels[0])
    return tuple(fit.predict_proba(wrap(columns(whole, 1, 2)[:3])).ravel())


def mixed(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Evidence, standard deviation of groups, and predictions for five rows, of a regression by formula."""
    names = [f"`{name}`" for name in x.columns]
    formula = f"{names[1]} ~ {names[0]} + {names[4]} + (1 | {names[3]})"
    fit = mm.fit(formula, wrap(pd.concat([x, y])), missing="drop")
    groups = fit.to_frame()["estimate"].iloc[3]
    return fit.log_evidence, groups, *fit.predict(wrap(x.dropna()[:5])).to_numpy().ravel()


def cut(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """The same of responses that are known only to be above a value, and of those that are missing below one."""
    both = pd.concat([x, y], ignore_index=True)
    response, found = both.columns[1], list[float]()
    end, least = both[response].quantile(0.8), both[response].quantile(0.1)
    above = both.assign(status=np.where(both[response] > end, "right", "none"))
    above[response] = above[response].clip(upper=end)
    within = both[~(both[response] < least)].reset_index(drop=True)
    for left, frame in (f"censored(`{response}`, status)", above), (f"truncated(`{response}`, lb={least!r})", within):
        fit = mm.fit(f"{left} ~ `{x.columns[0]}` + (1 | `{x.columns[3]}`)", wrap(frame), missing="drop")
        found += [fit.log_evidence, *fit.predict(wrap(frame.dropna()[:5])).to_numpy().ravel()]
    return tuple(found)


def afterwards(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of a regression by formula: effects of groups, draws, new responses, rows left out, contrasts."""
    both, names = pd.concat([x, y]), [f"`{name}`" for name in x.columns]
    fit = mm.fit(f"{names[1]} ~ {names[0]} + {names[3]} + (1 | {names[2]})", wrap(both), missing="drop")
    drawn = mm.io.posterior_draws(fit, draws=3, rng=0)["posterior"]
    apart = fit.contrasts(str(x.columns[3]))
    return (
        *fit.group_effects()[["estimate", "sd", "low", "high"]].to_numpy().ravel(),
        *fit.draws(3, rng=0)["sigma"],
        *drawn["sigma"].ravel(),
        *fit.simulate(draws=2, rng=0)[:, :5].ravel(),
        *fit.leave_one_out().to_numpy()[:5],
        abs(float(apart["estimate"].iloc[0])),
        float(apart["sd"].iloc[0]),
        *lines_of(fit.plot_groups()),
        *lines_of(fit.plot_check(draws=20, rng=0)),
    )


def lines_of(axes: Any) -> tuple[float, ...]:
    """All points of the lines of a picture, which is closed."""
    from matplotlib import pyplot

    found = np.concatenate([line.get_xydata().ravel() for ax in np.ravel(axes) for line in ax.lines])
    pyplot.close(np.ravel(axes)[0].figure)
    return tuple(found)


def far_outside(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """How much less likely a row is that lies ten times as far from all others: units drop out of the difference."""
    pair = columns(x, 0, 1).dropna()
    far = pd.concat([pair[:3] + times * np.ptp(pair.to_numpy(float), axis=0) for times in (5, 50)], ignore_index=True)
    arrow = [tuple(map(str, pair.columns))]
    models = mm.KernelGraph(arrow), mm.bp.BayesianNetwork(arrow)
    scores = [model.fit(wrap(pair)).score(wrap(far)) for model in models]
    return tuple(np.concatenate([score[3:] - score[:3] for score in scores]))


def ring(x: pd.DataFrame) -> tuple[float, ...]:
    """A field of two variables: where the mean is, in standard deviations."""
    first, second = (x.iloc[:, j].to_numpy(float) for j in (1, 0))
    field = mm.KernelField([(0, 1)], relations=["r"], variables=["p", "q"]).fit({"r": (first, second)})
    return ((field.query({0: first[3]})[1].mean() - np.nanmean(second)) / np.nanstd(second),)


def short_ring(x: pd.DataFrame) -> tuple[float, ...]:
    """A field of four variables in a ring: means of two, in standard deviations."""
    first, second = (x.iloc[:, j].to_numpy(float) for j in (1, 0))
    edges, relations = [(0, 1), (1, 2), (2, 3), (3, 0)], ["r", "s", "r", "s"]
    field = mm.KernelField(edges, relations=relations, variables=["p", "q", "p", "q"])
    found = field.fit({"r": (first, second), "s": (second, first)}).query({0: first[3]})
    parts = [(found[i].mean() - np.nanmean(data)) / np.nanstd(data) for i, data in ((1, second), (2, first))]
    return tuple(map(float, parts))


def linear(x: pd.DataFrame, known: bool) -> tuple[float, ...]:
    """A mean, a slope and two groups by factors written by hand: in standard deviations, and log evidence without
    units. All noise is known, or its precision is not.
    """
    part = x.iloc[:, [0, 1, 3]].dropna()
    y, a = (part.iloc[:, j].to_numpy(float) for j in (0, 1))
    s, t, group = y.std(), a.std(), np.unique(part.iloc[:, 2].astype(str), return_inverse=True)[1]
    prior = ep.MultivariateNormal([y.mean() - a.mean() * s / t, s / t], np.diag([9 * s**2, (s / t) ** 2]))
    w, u = ep.Variable("w", prior), ep.Variable("u", ep.Normal([0.0, 0.0], s**2))
    z, mean = (ep.Variable(name, ep.Normal, plate=len(y)) for name in ("z", "mean"))
    tau = 4 / s**2 if known else ep.Variable("tau", ep.Gamma(2.0, s**2 / 2))
    design = np.column_stack([np.ones(len(y)), a])
    noise = ep.Gaussian(mean, observed=y, precision=tau)
    post = ep.infer(ep.FactorGraph(ep.Dot(design, w, z), ep.Sum(z, u[group], out=mean), noise))
    slope, effects = float(post["w"].mean()[1]) * t / s, np.asarray(post["u"].mean()) / s
    return slope, *effects, *(post["u"].sd() / s), float(post.log_evidence + len(y) * np.log(s)) / len(y)


def image(x: pd.DataFrame) -> tuple[float, ...]:
    """An image restored from a noisy one: pixels in standard deviations of the clean one."""
    noisy, clean = (x.dropna().iloc[:40, j].to_numpy().reshape(5, 8) for j in (1, 0))
    restored = mm.KernelGrid().fit(clean, noisy, rng=0).restore(noisy).mean()
    return tuple(((np.ravel(restored) - clean.mean()) / clean.std())[:5])


def transformed(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of the transformers and regressors: inner products of features, and a prediction."""
    from meanmap.estimators import ConditionalMeanRegressor, FourierFeatures, LowRankFeatures

    rows, y = wrap(columns(x.dropna(), 0, 1)), x.dropna().iloc[:, 2].to_numpy(float)
    features = [
        each.fit(rows).transform(rows) for each in (LowRankFeatures(tolerance=1e-4), FourierFeatures(random_state=0))
    ]
    predicted = ConditionalMeanRegressor(ridge=0.01).fit(rows, y).predict(rows)
    return (*(float(np.sum((phi[:9] @ phi.T) ** 2)) for phi in features), *predicted[:3])


def learned(x: Any) -> Any:
    """One lengthscale for each column."""
    return mm.learn_kernel(x, mm.kernels.RBF([1.0, 1.0, 1.0]), landmarks=10, draws=1, rng=0, missing="drop").kernel


def learned_sum(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Values of a learned sum of kernels, each of which has a lengthscale and a weight."""
    rows = columns(x, 0, 1)
    kernel = mm.kernels.RBF([1.0, 1.0]) + mm.kernels.Matern([1.0, 1.0])
    found = mm.learn_kernel(wrap(rows), kernel, landmarks=10, draws=1, rng=0, missing="drop").kernel
    return (float(np.sum(found(wrap(rows.dropna()[:9])))),)


def posterior(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Under a kernel in the units of the columns."""
    whole = numbers(x).dropna().reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "3 of 43 rows of x were left out")
        found = mm.embeddings.posterior_embedding(
            wrap(numbers(x)), unit_free_kernel(whole), landmarks=wrap(whole[::4]), missing="drop"
        )
    return tuple(found.mean(wrap(whole[:3]))) + tuple(found.sd(wrap(whole[:3])))


def bets(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """After a second batch, which is where there may be gaps."""
    first = mm.stats.TwoSampleBet.of(wrap(x[:9]), wrap(y[:9]), missing="drop", rng=0)
    second = mm.stats.IndependenceBet.of(wrap(given(x[:9])), wrap(columns(x[:9], 0, 2)), missing="drop", rng=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "3 of 3. rows of .* were left out|3 of 3. pairs|3 of 3. rows")
        first = first.update(wrap(x[9:]), wrap(y[9:]))
        second = second.update(wrap(given(x[9:])), wrap(columns(x[9:], 0, 2)))
    return float(first.log_evalues[-1]), float(second.log_evalues[-1])


def together(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """A test for each pair of three columns, corrected for their number, in both orders."""
    pairs = ((0, 1), (0, 2), (1, 2))
    tests = [mm.independence_test(wrap(columns(x, a)), wrap(columns(x, b)), **FEW) for a, b in pairs]
    tests.append(mm.two_sample_test(wrap(columns(x, 0)), wrap(y[[x.columns[0]]]), **FEW))
    return *mm.stats.adjusted(tests).pvalues.values(), *list(mm.stats.adjusted(tests[::-1]).pvalues.values())[::-1]


def plans(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """By states of two parts of a sample, of numbers and of all columns."""
    found = []
    for columns in (list(x.columns)[:1], list(x.columns)):
        plan = mm.stats.plan("two samples", wrap(x[columns]), wrap(y[columns]), missing="drop", rng=0)
        halves = plan.state(wrap(x[columns][9:])).merge(plan.state(wrap(x[columns][:9])))
        found.append(plan.result(halves, plan.state(wrap(y[columns])), 999))
    one, every = found
    # Features of points are rounded to a share of how far they reach, which is one. Draws of the limit, with which
    # several columns are compared, are equal in law only.
    return 1 + one.statistic, float(every.pvalue < 0.5)


def witness(x: pd.DataFrame, y: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Under a kernel in the units of the columns."""
    found = mm.embeddings.posterior_witness(wrap(numbers(x)), wrap(alike(y, x)), unit_free_kernel(numbers(x)))
    return tuple(found.mean(wrap(numbers(x)[:3]))) + tuple(found.sd(wrap(numbers(x)[:3])))


def operators(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """A likelihood, a covariance and Bayes' rule, of a number and a count."""
    cause, effect = columns(x, 0, 1), columns(x, 2)
    kernels = unit_free_kernel(cause.dropna()), unit_free_kernel(effect.dropna())
    says = mm.embeddings.likelihood(wrap(cause), wrap(effect), ridge=0.01, missing="drop")(wrap(cause[:3]))
    whole = x.dropna()
    cause, effect = columns(whole, 0, 1), columns(whole, 2)
    pairs = mm.embeddings.cross_covariance(wrap(effect), wrap(cause), kernels[1], kernels[0])(wrap(cause[:3]))
    prior = mm.embed(wrap(effect), kernels[1])
    rule = mm.embeddings.bayes_rule(
        wrap(cause), wrap(effect), prior, kernel_x=kernels[0], kernel_y=kernels[1], ridge=0.01
    )
    return (*says(wrap(effect[:2])).ravel(), *pairs(wrap(effect[:2])).ravel(), *rule(wrap(cause[:2])).mean().ravel())


def made_for(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Inner products of features that were made for the columns."""
    whole = numbers(x).dropna()
    kernel = unit_free_kernel(whole)
    made = (
        mm.features.PivotedCholesky.fit(kernel, wrap(whole), 1e-3),
        mm.features.Nystrom.fit(kernel, wrap(whole), 9, rng=0),
    )
    pair = columns(whole, 0, 1)
    drawn = mm.features.Fourier.draw(unit_free_kernel(pair), wrap(pair), 50, rng=0)
    made = [(phi(wrap(whole[:5])), phi(wrap(whole))) for phi in made] + [(drawn(wrap(pair[:5])), drawn(wrap(pair)))]
    return tuple(float(np.sum((some @ every.T) ** 2)) for some, every in made)


def regressions(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of the ready models: a count, as a number, an ordered label and a truth value too, by two columns."""
    whole, models = x.dropna(), mm.ep.models
    rows, new = wrap(columns(whole, 0, 1)), wrap(columns(whole, 0, 1)[:3])
    counts = whole.iloc[:, 2].to_numpy(int)
    return (
        *models.robust_regression(rows, counts.astype(float)).predict(new),
        *models.poisson_regression(rows, counts).predict(new),
        *models.ordinal_regression(rows, np.minimum(counts, 3), levels=[0, 1, 2, 3]).predict_proba(new).ravel(),
        *models.probit_regression(rows, counts > 2).predict_proba(new).ravel(),
    )


def densities(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """Of a regressor that is scored by its density, and of features of a learned kernel."""
    from meanmap.estimators import ConditionalDensity, LearnedFeatures

    whole = x.dropna()
    rows, y = wrap(columns(whole, 0, 1)), whole.iloc[:, 2].to_numpy(float)
    phi = LearnedFeatures(mm.kernels.RBF([1.0, 1.0]), tolerance=1e-4, random_state=0).fit_transform(rows)
    return (
        *ConditionalDensity(ridge=0.01).fit(rows, y).log_density(rows, y)[:4],
        float(np.sum((phi[:9] @ phi.T) ** 2)),
    )


def bags(x: pd.DataFrame) -> tuple[float, ...]:
    """Samples of one column, by which a number is predicted."""
    from meanmap.estimators import BagRegressor

    whole = x.dropna()[:40]
    samples, y = list(whole.iloc[:, 0].to_numpy().reshape(10, 4)), whole.iloc[::4, 2].to_numpy(float)
    return tuple(BagRegressor(ridge=0.1).fit(samples, y).predict(samples[:3]))


def innovations(x: pd.DataFrame, wrap: Wrap) -> tuple[float, ...]:
    """What the past does not say, of each row."""
    found = mm.structure.prewhiten(wrap(numbers(x)), method="ar")
    return tuple(np.ravel([np.asarray(column)[:3] for column in list(found.columns.values())[:3]]))


def doubtful(x: pd.DataFrame, wrap: Wrap) -> tuple[int | bool, ...]:
    """Which column has one number far from all others in some rows, by position, as a test notes it.

    And which column of numbers as text it refuses, and whether it notes that each row is there twice.
    """
    first = x.iloc[:, 0]
    far = first.where(np.arange(len(x)) % 10 != 3, first.max() + 50 * np.ptp(first.dropna()))
    text = pd.Series([None if missing else repr(value) for value, missing in zip(first, first.isna(), strict=True)])
    named = [f"'{name}'" for name in x.columns]
    found: list[int | bool] = []
    notes = mm.stats.joint_independence_test(wrap(x.assign(**{str(x.columns[0]): far})), **FEW).warnings
    found += [named.index(word) for note in notes if "far from all" in note for word in note.split()[1:2]]
    try:
        mm.stats.joint_independence_test(wrap(x.assign(**{str(x.columns[0]): text.set_axis(x.index)})), **FEW)
    except mm.errors.KindError as error:
        found += [at for at, name in enumerate(x.columns) if str(error).startswith(f"{name} is text that looks like")]
    twice = mm.stats.joint_independence_test(wrap(pd.concat([x, x], ignore_index=True)), **FEW).warnings
    return (*found, any("repeat another row" in note for note in twice))


# Each takes two frames and what turns a frame into what is passed on. Columns of the first are known by position.
FUNCTIONS: dict[str, Callable[[pd.DataFrame, pd.DataFrame, Wrap], tuple[Any, ...]]] = {
    "two_sample_test": lambda x, y, wrap: told(mm.two_sample_test(wrap(numbers(x)), wrap(alike(y, x)), **FEW)),
    "two_sample_test, median": lambda x, y, wrap: told(
        mm.two_sample_test(wrap(numbers(x)), wrap(alike(y, x)), "median", **FEW)
    ),
    "two_sample_test, mixed": lambda x, y, wrap: told(mm.two_sample_test(wrap(x), wrap(y), **FEW)),
    "two_sample_test, within": lambda x, y, wrap: (
        *told(mm.two_sample_test(wrap(x), wrap(y), within=x.columns[3], **FEW)),
        *sizes(mm.two_sample_effect(wrap(x), wrap(y), within=x.columns[3], missing="drop", rng=0)),
        *told(mm.closeness_test(wrap(x), wrap(y), 0.5, within=x.columns[3], missing="drop", rng=0)),
    ),
    "two_sample_effect": lambda x, y, wrap: sizes(mm.two_sample_effect(wrap(x), wrap(y), missing="drop", rng=0)),
    "two_sample_test, ids that repeat": with_users,
    "test": lambda x, y, wrap: told(mm.test(f"`{x.columns[0]}` ~ `{x.columns[2]}` | `{x.columns[3]}`", wrap(x), **FEW)),
    "closeness_test": lambda x, y, wrap: told(mm.closeness_test(wrap(x), wrap(y), 0.5, missing="drop", rng=0)),
    "independence_effect": lambda x, y, wrap: sizes(
        mm.independence_effect(wrap(given(x)), wrap(columns(x, 0, 2)), missing="drop", rng=0)
    ),
    "conditional_independence_effect": lambda x, y, wrap: sizes(
        mm.conditional_independence_effect(
            wrap(columns(x, 0)), wrap(columns(x, 2)), wrap(given(x)), missing="drop", rng=0
        )
    ),
    "k_sample_test": lambda x, y, wrap: told(mm.k_sample_test([wrap(x), wrap(y), wrap(x)], **FEW)),
    "DriftMonitor": lambda x, y, wrap: drift(wrap(x), wrap(y)),
    "DriftMonitor, an empty column": lambda x, y, wrap: drift(wrap(x), wrap(y.assign(**{x.columns[0]: np.nan}))),
    "DriftMonitor.to_dict": alarmed,
    "meanmap drift": watched,
    "independence_test": lambda x, y, wrap: told(mm.independence_test(wrap(given(x)), wrap(columns(x, 0, 2)), **FEW)),
    "conditional_independence_test": lambda x, y, wrap: told(
        mm.conditional_independence_test(wrap(columns(x, 0)), wrap(columns(x, 2)), wrap(given(x)), **FEW)
    ),
    "joint_independence_test": lambda x, y, wrap: told(mm.stats.joint_independence_test(wrap(x), **FEW)),
    "chow_liu": lambda x, y, wrap: edges(mm.chow_liu(wrap(x), missing="drop"), x),
    "pc": lambda x, y, wrap: edges(mm.pc(wrap(x), missing="drop", rng=0), x),
    "embed": lambda x, y, wrap: (float(mm.embed(wrap(x)).norm()), float(mm.embed(wrap(numbers(x))).norm())),
    "default_kernel": lambda x, y, wrap: (float(np.sum(mm.default_kernel(wrap(x))(wrap(x)))),),
    "condition": lambda x, y, wrap: (
        *mean_given(wrap(given(x)), wrap(columns(x, 2)), wrap(given(x)[:3])),
        *mean_given(wrap(columns(x, 0, 1)), wrap(columns(x, 2)), wrap(columns(x, 0, 1)[:3])),
    ),
    "KernelGraph": lambda x, y, wrap: tuple(
        mm.KernelGraph([(x.columns[0], x.columns[3])])
        .fit(wrap(columns(x, 0, 3)), missing="drop")
        .query({x.columns[0]: float(x.iloc[3, 0])})
        .probabilities(x.columns[3])
        .values()
    ),
    "KernelGraph, rows": lambda x, y, wrap: five_rows(
        mm.KernelGraph([(x.columns[0], x.columns[3])]).fit(wrap(columns(x, 0, 3)), missing="drop"), x, wrap
    ),
    "scores far outside": lambda x, y, wrap: far_outside(x, wrap),
    "DependencyNetwork": lambda x, y, wrap: network(x, wrap),
    "DependencyNetwork, from one column": lambda x, y, wrap: from_one(x, wrap),
    "BayesianNetwork": lambda x, y, wrap: tuple(
        mm.bp.BayesianNetwork([(x.columns[0], x.columns[3])])
        .fit(wrap(columns(x, 0, 3).dropna()))
        .do({x.columns[0]: float(x.iloc[3, 0])}, rng=0)
        .probabilities(x.columns[3])
        .values()
    ),
    "BayesianNetwork, rows": lambda x, y, wrap: five_rows(
        mm.bp.BayesianNetwork([(x.columns[0], x.columns[3])]).fit(wrap(columns(x, 0, 3).dropna())), x, wrap, rng=0
    ),
    "BayesianNetwork, effect": effect,
    "BayesianNetwork, effect in clusters": in_clusters,
    "BayesianNetwork, effect in doubt": undecided,
    "BayesianNetwork, quantiles of an effect": quantiles_of_effect,
    "KernelField": lambda x, y, wrap: ring(x),
    "KernelField, a ring": lambda x, y, wrap: short_ring(x),
    "KernelGrid": lambda x, y, wrap: image(x),
    "infer, linear": lambda x, y, wrap: linear(x, known=True),
    "infer, linear with an unknown precision": lambda x, y, wrap: linear(x, known=False),
    "logistic_regression": lambda x, y, wrap: chances(x, wrap),
    "evidence_gradient": lambda x, y, wrap: gradient(x, wrap),
    "fit": mixed,
    "fit, censored and truncated": cut,
    "fit, afterwards": afterwards,
    "posterior_embedding": lambda x, y, wrap: posterior(x, wrap),
    "learn_kernel": lambda x, y, wrap: (
        float(np.sum(learned(wrap(columns(x, 0, 1, 2)))(wrap(columns(x[:9], 0, 1, 2))))),
    ),
    "learn_kernel, a sum": lambda x, y, wrap: learned_sum(x, wrap),
    "estimators": lambda x, y, wrap: transformed(x, wrap),
    "k_sample_effect": lambda x, y, wrap: sizes(mm.k_sample_effect([wrap(x), wrap(y), wrap(x)], missing="drop", rng=0)),
    "bets": bets,
    "adjusted": together,
    "plans": plans,
    "posterior_witness": witness,
    "likelihood, covariance, Bayes": lambda x, y, wrap: operators(x, wrap),
    "features": lambda x, y, wrap: made_for(x, wrap),
    "other regressions": lambda x, y, wrap: regressions(x, wrap),
    "densities": lambda x, y, wrap: densities(x, wrap),
    "bags": lambda x, y, wrap: bags(x),
    "prewhiten": lambda x, y, wrap: innovations(x, wrap),
    "notes on doubtful tables": lambda x, y, wrap: doubtful(x, wrap),
}
# The rows of public names that are not called as they are.
ROWS_OF = {
    "IndependenceBet": "bets",
    "TwoSampleBet": "bets",
    "plan": "plans",
    "TwoSamplePlan": "plans",
    "BagRegressor": "bags",
    "ConditionalDensity": "densities",
    "LearnedFeatures": "densities",
    "ConditionalMeanRegressor": "estimators",
    "FourierFeatures": "estimators",
    "LowRankFeatures": "estimators",
    "Fourier": "features",
    "Nystrom": "features",
    "PivotedCholesky": "features",
    "likelihood": "likelihood, covariance, Bayes",
    "cross_covariance": "likelihood, covariance, Bayes",
    "bayes_rule": "likelihood, covariance, Bayes",
    "poisson_regression": "other regressions",
    "probit_regression": "other regressions",
    "ordinal_regression": "other regressions",
    "robust_regression": "other regressions",
}
# Public names that take data and have no row, and why.
ELSEWHERE = {
    "median_heuristic": "answers in the units of the data",
    "at_median": "answers in the units of the data",
    "log_pseudolikelihood": "takes a kernel and landmarks in the units of the data",
    "sample_kernel": "reads as learn_kernel does; its units are in tests/learning/test_sampling.py",
    "kernel_for": "is called by default_kernel",
    "gp_classification": "reads as the other regressions do; its kernel has one unit for each column",
    "IndependencePlan": "reads as TwoSamplePlan does; tests/stats/samples/test_two_sample_plan.py",
    "ConditionalIndependencePlan": "reads as conditional_independence_test does; "
    "tests/stats/conditional/test_conditional_plan.py",
    "JointIndependencePlan": "reads as joint_independence_test does; tests/stats/independence/test_joint_plan.py",
    "KSamplePlan": "reads as TwoSamplePlan does; tests/stats/samples/test_k_sample_plan.py",
    "RegressionPlan": "reads as condition does; tests/embeddings/test_regression_plan.py",
    "DependencyNetworkImputer": "is a DependencyNetwork that reads as scikit-learn does; tests/estimators/test_gaps.py",
    "KernelGraphImputer": "is a KernelGraph that reads as scikit-learn does; tests/estimators/test_gaps.py",
    "KernelGraphRegressor": "is a KernelGraph that reads as scikit-learn does; tests/estimators/test_gaps.py",
    "KernelGraphClassifier": "is a KernelGraph that reads as scikit-learn does; tests/estimators/test_gaps.py",
    "TwoStageFeatures": "reads as BagRegressor does; if data change, its features are redrawn",
    "TwoStage": "is drawn by TwoStageFeatures",
    "DependenceTree": "is the result of chow_liu",
    "Graph": "takes edges",
    "Field": "is the base class of all fields",
    "CentredLikelihood": "is learned within fields",
    "LearnedLikelihood": "is learned within fields",
    "NoiseLikelihood": "is learned within fields",
    "compound_gamma": "takes one sample of numbers in their own unit",
    "ForestGrid": "takes images, as KernelGrid does",
    "pooled": "passes tables unchanged to your function; tests/bp/test_pooling.py",
    "Schema": "reads the data of all others",
    "Table": "reads the data of all others",
}


def alike(y: pd.DataFrame, x: pd.DataFrame) -> pd.DataFrame:
    """The numbers of one frame in another, in that one's order."""
    return y[[name for name in y if name in numbers(x)]]
