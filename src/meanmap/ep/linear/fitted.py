"""The result of a formula: a table of effects and components of variance, and predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from meanmap.core.containers import handed_over
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.intervals import ends
from meanmap.core.notes import note_lines, note_table, warn_of
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import probability, whole_number
from meanmap.core.types import Axes, Data, Seed
from meanmap.core.values import Value, aligned, frame_of
from meanmap.ep.linear.contrasts import differences, named, reference_grid
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.doubts import far_outside
from meanmap.ep.linear.draws import JointDraws, smooth, trials_of
from meanmap.ep.linear.ends import uncertain_ends
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.instead import of_a_fit
from meanmap.ep.linear.integrate import UNSETTLED, Integrated
from meanmap.ep.linear.leave_out import log_densities
from meanmap.ep.linear.mixtures import Normals, Smooth, levels_of, quantiles
from meanmap.ep.linear.pictures import Check, Ranges, data_charts, draw_each
from meanmap.ep.linear.predictions import expected, probabilities
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.shapes import marginals
from meanmap.ep.linear.shared import Shared, shared_names
from meanmap.ep.linear.skewed import Skewed
from meanmap.ep.linear.surface import Drawn
from meanmap.ep.weighted_draws import Weighted
from meanmap.plots.facts import Page, Section
from meanmap.plots.intervals import away_from_zero
from meanmap.plots.paged import Paged

__all__ = ["Fitted"]

# Points with shares.
Weights = tuple[np.ndarray, np.ndarray]
# Why a fit is not saved.
_NOT_KEPT = (
    "it holds the formula as another library reads it; keep the formula and the rows, and call mm.fit again, or keep "
    "its to_frame() or mm.io.to_arviz(it)."
)
# Of rows in a warning.
_NAMED = 10
# Standard deviations of a component beyond this many times its mean are those of its tail.
_LONG = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Paged, Value):
    """A regression by formula, after its data; made by `fit`.

    Attributes
    ----------
    levels : tuple
        Of ordered labels, from the lowest to the highest.
    log_evidence : float
        The log probability of the response under the model, to compare models of the same response by.
    report : Report
        Whether sweeps converged, and whether weighted draws confirm the belief.
    """

    formula: Formula
    response: str
    limits: str
    levels: tuple[Any, ...]
    scaled: Scaled
    model: Integrated
    coordinates: Coordinates
    log_evidence: float
    report: Report
    left_out: int
    shared: Shared
    judged: Weighted | None
    corrected: float = 0.0

    def to_save(self) -> "Fitted":
        """Refuse it: the formula is an object of another library."""
        raise KindError(f"a Fitted cannot be saved: {_NOT_KEPT}")

    def __reduce__(self) -> Any:
        """Refuse pickles and copies in the same words."""
        raise KindError(f"a Fitted cannot be pickled or copied: {_NOT_KEPT}")

    if not TYPE_CHECKING:  # so that type checkers refuse other names

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"'Fitted' object has no attribute {name!r}{of_a_fit(name)}")

    @property
    def mean(self) -> np.ndarray:
        """Estimates of the effects that all rows share, in the order of the table; `to_frame()` has their names."""
        return self.shared.mean

    @property
    def covariance(self) -> np.ndarray:
        """The joint covariance of the effects that all rows share."""
        return self.shared.covariance

    def to_frame(self, confidence: float = 0.95) -> Any:
        """A pandas frame: estimate, sd and interval of effects, then of components of variance."""
        rows, columns = self._table(confidence), ("estimate", "sd", "low", "high")
        return frame_of({name: [row[k] for row in rows] for k, name in enumerate(columns, 1)}, [row[0] for row in rows])

    def predict(self, data: Data | None = None, confidence: float = 0.95, groups: bool = True) -> Any:
        """The expected response at the fitted rows, or at new ones, as a pandas frame: estimate, sd, low, high.

        Its index is that of the data, or row numbers. New groups have the distribution of all groups; `groups=False` is
        for effects of groups that are 0 (`re.form=NA` in lme4), and needs no columns of groups. A binomial response is
        the share of successes. Ordered labels have a row for the probability of each;
        `predict(frame)["estimate"].unstack()` has a column for each. A censored or truncated response has the mean that
        it has without its limits. Under a log link a new group beside few has no mean (nan, with a note). On the scale
        of the link intervals are np.log of these, say, and draws of `expected`.
        """
        pandas: Any = import_module("pandas")
        data = handed_over(data)
        rows = self.formula.later(data, groups)
        warn_of(far_outside(self.formula, rows))
        level = probability(confidence)
        index = self.formula.index if data is None else getattr(data, "index", None)
        if self.levels:
            found = probabilities(self.model, rows, self.scaled, level)
            codes = range(len(rows.kept)) if index is None else index
            labels = pandas.CategoricalIndex(self.levels, self.levels, ordered=True)
            index = pandas.MultiIndex.from_product([codes, labels], names=[None, self.response])
        else:
            found, notes = expected(self.model, rows, self.scaled, level)
            warn_of(notes)
        return pandas.DataFrame(found, index, ["estimate", "sd", "low", "high"])

    def group_effects(self, confidence: float = 0.95) -> Any:
        """Group effects, as a pandas frame by factor, group and effect: estimate, sd, low, high."""
        pandas: Any = import_module("pandas")
        level, parts = probability(confidence), []
        for at, (group, units) in enumerate(zip(self.formula.rows.groups, self.scaled.groups, strict=True)):
            block, turn = at + bool(self.scaled.width), self.scaled.unit * units.turn
            joints = [node.settled.joint for node in self.model.nodes]
            means = [(each.predictor.split(each.mean)[block] @ turn.T).ravel() for each in joints]
            variances = [np.einsum("ab,gbc,ac->ga", turn, each.within(block), turn).ravel() for each in joints]
            law = Normals(np.stack(means, axis=1), np.sqrt(np.stack(variances, axis=1)), self.model.shares)
            skewed = Skewed.of(self.model, self._one_by_one(block, turn), law, np.zeros_like(law.means))
            ends, notes = skewed.interval(level)
            warn_of(notes)
            (mean, sd), (low, high) = law.moments, ends.T
            names = {
                "factor": group.name,
                "group": [level for level in map(named, group.levels) for _ in group.labels],
                "effect": list(group.labels) * len(group.levels),
            }
            parts.append(pandas.DataFrame({**names, "estimate": mean, "sd": sd, "low": low, "high": high}))
        if not parts:
            raise ParameterError(f"formula {self.formula.text!r} has no effects of groups, such as (1 | group).")
        return pandas.concat(parts, ignore_index=True).set_index(["factor", "group", "effect"])

    def _one_by_one(self, block: int, turn: np.ndarray) -> Any:
        """Matrix rows that each give one effect of a group of a block, in the units of the data."""
        blocks = self.model.nodes[0].settled.joint.predictor.blocks
        each: Any = sparse.kron(sparse.eye_array(blocks[block].size), turn)
        sizes = [other.total for other in blocks]
        sides = (sum(sizes[:block]), sum(sizes[block + 1 :]))
        parts = [sparse.csr_array((each.shape[0], sides[0])), each, sparse.csr_array((each.shape[0], sides[1]))]
        return sparse.hstack(parts, format="csr")

    def contrasts(self, column: str, at: Mapping[str, Any] | None = None, confidence: float = 0.95) -> Any:
        """Differences of the predictor between all levels of a column, or all groups, as a pandas frame.

        Numbers are compared by `contrasts("age", at={"age": [30, 40]})`. All else is equal: other numbers have their
        means, other labels are averaged over their levels, and groups have no effect, unless `at={"x": 40}` says
        otherwise. Intervals hold for each difference by itself. For the log link exp of a difference is a ratio of
        means, for logit a ratio of odds.
        """
        pandas: Any = import_module("pandas")
        level = probability(confidence)
        names, combinations = differences(*reference_grid(self.formula, column, at or {}), self.scaled)
        # Only the effects that all rows share have weighted draws.
        judged = None if combinations[:, self.scaled.width :].any() else self.judged
        law = marginals(self.model, combinations, judged)
        found = np.stack([*law.moments, *law.interval(level)], axis=1)
        return pandas.DataFrame(found, names, ["estimate", "sd", "low", "high"])

    def draws(self, count: int = 1000, rng: Seed = None, groups: bool = False) -> Any:
        """Joint draws of everything in the table, as a pandas frame with a column for each of its rows.

        `groups=True` adds a column for each effect of each group, such as `Intercept | g[3]`, in the same draws.
        """
        pandas: Any = import_module("pandas")
        generator, components = Rng.of(rng).generator, []
        joint = self._drawn(whole_number(count, "count", least=1), generator)
        if self.model.components.size:
            around = self._component_values(smooth(self.model, self.coordinates, joint.taken, generator))
            for (_, values), (_, own, drawn) in zip(around, self._smooth_components, strict=True):
                # Ranks are those of the joint distribution, values those of the component's own.
                components.append(quantiles(*own, levels_of(values, *drawn))[:, None])
        table = np.concatenate([joint.of_shared(), *components], axis=1)[joint.order]
        found = pandas.DataFrame(table, columns=[row[0] for row in self._table(0.95)])
        return pandas.concat([found, pandas.DataFrame(joint.columns(self.formula))], axis=1) if groups else found

    def expected(self, data: Data | None = None, draws: int = 200, rng: Seed = None, groups: bool = True) -> np.ndarray:
        """Draws (draws, n) of the expected response at the fitted rows, or at others; `predict` summarises it.

        For ordered labels (draws, n, labels): the probability of each; ends for rare labels, by 8000 draws, have a
        standard error of up to .15 standard deviations. With the same `rng` and number they are the
        draws of `draws`, row by row, so that effects and expected responses are joint. `groups` is that of `predict`.
        """
        rows, generator = self.formula.later(handed_over(data), groups), Rng.of(rng).generator
        return self._drawn(whole_number(draws, "draws", least=1), generator).expected(rows, generator)

    def simulate(self, data: Data | None = None, draws: int = 200, rng: Seed = None) -> np.ndarray:
        """New responses (draws, n) at the fitted rows, or at others; to compare with the observed ones.

        New groups have the distribution of all groups; rows of one new group share its effects. Censored or truncated
        responses are drawn without their limits.
        """
        data, generator = handed_over(data), Rng.of(rng).generator
        rows = self.formula.later(data)
        trials = self.model.observed.trials if data is None else trials_of(self.response, data)
        found = self._drawn(whole_number(draws, "draws", least=1), generator).responses(rows, trials, generator)
        return np.array(self.levels)[found.astype(int)] if self.levels else found

    def _drawn(self, count: int, generator: np.random.Generator) -> JointDraws:
        return JointDraws.of(self.model, self.scaled, self.shared, count, generator)

    def leave_one_out(self) -> Any:
        """The log density of each response given all other rows, as a pandas series with the index of the data, or row
        numbers; its sum compares models.

        From cavities of expectation propagation, and from integrals over the effects of groups of few rows, with the
        components integrated. Rows with much influence, 30 at most, are left out in turn and the model is fitted again,
        in tables of up to 20,000 rows; a warning names rows whose density may be off. Errors lean upwards where groups
        are small: by .001 in a row of labels, and by .1 in surprising ones with a second factor. The difference of
        two models of n rows has the standard error √n · sd of the rows' differences (Vehtari, Gelman & Gabry 2017).
        """
        pandas: Any = import_module("pandas")
        of_unit = self.model.observed.weights * self.model.family.densities(self.model.observed)
        # Evidence without a row is not corrected for the skewness of shared effects.
        in_units = self.log_evidence - self.corrected + of_unit.sum() * np.log(self.scaled.unit)
        found, off = log_densities(self.model, self.scaled.predictor(self.formula.rows), in_units)
        found = found - of_unit * np.log(self.scaled.unit)
        if len(off):
            index = list(self.formula.index[off[:_NAMED]])
            more = f" and {len(off) - _NAMED} more" if len(off) > _NAMED else ""
            listed = ", ".join(map(str, index)) + more
            warn_of([f"the log densities of rows with much influence may be off by more than .1: {listed}"])
        return pandas.Series(found, self.formula.index, name="log_density")

    def plot(self, ax: Axes | None = None, confidence: float = 0.95) -> Any:
        """Draw effects that all rows share, components of variance and correlations, with their intervals.

        The intercept is left out if there are other effects, since it is often on another scale. Returns the matplotlib
        Axes, an array: one for each of the three that the model has.
        """
        return draw_each(self._ranges(confidence), ax)

    def plot_groups(self, ax: Axes | None = None, confidence: float = 0.95) -> Any:
        """Draw the effects of each group with intervals, the largest first.

        Returns the matplotlib Axes, an array: one for each effect of each factor.
        """
        return draw_each(self._group_ranges(confidence), ax)

    def plot_check(self, ax: Axes | None = None, draws: int = 200, rng: Seed = None) -> Any:
        """Draw the responses and simulated ones (a posterior predictive check); returns the matplotlib Axes.

        For labels and few distinct values it shows their shares, otherwise the distribution function, with a pointwise
        interval that holds 95% of the simulated curves.
        """
        return self._check(draws, rng).draw(ax)

    def _ranges(self, confidence: float) -> list[Ranges]:
        rows, count = self._table(confidence), len(self.shared.laws.means)
        effects = [row for row in rows[:count] if row[0] != "Intercept"] or rows[:count]
        correlations = [row for row in rows[count:] if row[0].startswith("cor(")]
        others = [row for row in rows[count:] if row not in correlations]
        parts = (("Effects", effects), ("Components", others), ("Correlations", correlations))
        return [Ranges.of(title, part, confidence) for title, part in parts if part]

    def _group_ranges(self, confidence: float) -> list[Ranges]:
        found = []
        for (factor, effect), part in self.group_effects(confidence).groupby(["factor", "effect"], sort=False):
            part = part.reset_index("group").sort_values("estimate", ascending=False, kind="stable")
            rows = list(zip(*(part[name] for name in ("group", "estimate", "sd", "low", "high")), strict=True))
            found.append(Ranges.of(f"{effect} | {factor}", rows, confidence))
        return found

    def _check(self, draws: int, rng: Seed) -> Check:
        if self.limits:
            raise ParameterError(
                f"the response {self.response!r} is {self.limits}, and simulate() draws it without limits, so that "
                "they cannot be compared."
            )
        observed = self.model.observed
        response = observed.response * self.scaled.unit + self.scaled.base
        if self.levels:
            response = np.array(self.levels)[response.astype(int)]
        return Check.of(self.response, response, self.simulate(draws=draws, rng=rng), observed.weights, self.levels)

    def _table(self, confidence: float) -> list[tuple[str, float, float, float, float]]:
        level, law = probability(confidence), self.shared.laws
        columns = zip(shared_names(self.formula, self.levels), *law.moments, *law.interval(level), strict=True)
        rows = [(name, float(m), float(s), float(a), float(b)) for name, m, s, a, b in columns]
        return rows + self._components(level)

    def _components(self, level: float) -> list[tuple[str, float, float, float, float]]:
        tails, found = np.array(ends(level)), []
        for name, (values, shares), _ in self._smooth_components:
            mean = float(shares @ values)
            sd = float(np.sqrt(shares @ (values - mean) ** 2))
            found.append((name, mean, sd, *map(float, quantiles(values, shares, tails))))
        return found

    @property
    def _notes(self) -> tuple[str, ...]:
        """Those of the report, and those on components: ends of intervals that are uncertain, and estimates that say
        little, such as that of the shape of counts that may as well be Poisson.
        """
        long = {name for name, mean, sd, *_ in self._components(0.95) if sd > _LONG * abs(mean)}
        medians = {
            name: float(quantiles(*law, np.array([0.5]))[0]) for name, law, _ in self._smooth_components if name in long
        }
        drawn = self._smooth_components if isinstance(self.model.surface, Drawn) else []
        return (
            *self.report.notes,
            *uncertain_ends((name, *own) for name, own, _ in drawn),
            *(
                f"the distribution of {name} has so long a tail that its mean, the estimate, and its sd say little: "
                f"the median is {median:.4g}"
                for name, median in medians.items()
                if not name.startswith("cor(")
            ),
        )

    @cached_property
    def _smooth_components(self) -> list[tuple[str, Weights, Weights]]:
        """Of each component: weighted points of its posterior between nodes, and of what joint draws come from."""
        if self.model.surface is None:
            return []
        phis = np.stack([node.phi for node in self.model.nodes])
        psi, shares = self.model.surface.points()
        around, masses = Smooth(self.coordinates.split(phis), self.model.shares).many()
        own, joint = (self._component_values(self.coordinates.joined(each)) for each in (psi, around))
        pairs = zip(own, joint, strict=True)
        return [(name, (values, shares), (drawn, masses)) for (name, values), (_, drawn) in pairs]

    def _component_values(self, phis: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Standard deviations and correlations of effects and parameters of the family, at each φ."""
        found, laws = [], self.model.components.covariances(phis)
        for at, group in enumerate(self.formula.rows.groups):
            turn = self.scaled.unit * self.scaled.groups[at].turn
            covariances = turn @ laws[at] @ turn.T
            sds = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
            found += [(f"sd({label} | {group.name})", sds[:, k]) for k, label in enumerate(group.labels)]
            sets = np.repeat(np.arange(len(group.sets)), group.sets)
            for i in range(len(group.labels)):
                for j in np.flatnonzero(sets[:i] == sets[i]):
                    correlation = np.clip(covariances[:, i, j] / (sds[:, i] * sds[:, j]), -1 + 1e-12, 1 - 1e-12)
                    found.append((f"cor({group.labels[j]}, {group.labels[i]} | {group.name})", correlation))
        for k, name in enumerate(() if self.levels else self.model.family.parameters):
            values = np.exp(phis[:, phis.shape[1] - len(self.model.family.parameters) + k])
            found.append((name, values * (self.scaled.unit if name == "sigma" else 1.0)))
        return found

    def _as_page(self, brief: bool = False) -> Page:
        rows, charts = self._table(0.95), tuple(each.chart() for each in self._ranges(0.95))
        table = (("name", "estimate", "sd", "2.5%", "97.5%"), *((n, *(f"{v:.4g}" for v in each)) for n, *each in rows))
        said = [line.strip() for line in str(self).splitlines()]
        notes = note_table(self._notes)
        columns = ("estimate", "sd", "low", "high")
        facts = {"formula": self.formula.text, "log_evidence": float(self.log_evidence),
                 "estimates": {n: dict(zip(columns, each, strict=True)) for n, *each in rows}}  # fmt: skip
        shared = [row for row in rows[: len(self.shared.laws.means)] if row[0] != "Intercept"]
        _, _, _, low, high = zip(*shared, strict=True) if shared else ((),) * 5
        answer = away_from_zero([row[0] for row in shared], np.array(low), np.array(high)) if shared else ""
        data = data_charts(self.response, self.formula.rows.frame, self.formula.asked)
        facts_of_model = f"{said[1][:1].upper()}{said[1][1:]}. 95% intervals."
        sections = [Section("Effects and components of variance", answer, facts_of_model, charts=(*data, *charts),
                            tables=(table, notes))]  # fmt: skip
        if not brief and self.formula.rows.groups:
            charts = tuple(each.chart() for each in self._group_ranges(0.95))
            sections.append(Section("Effects of groups", "The effect of each group, the largest first.",
                                    code="found.group_effects()", charts=charts))  # fmt: skip
        if not brief and not self.limits:
            said = "The model does not reproduce shares outside the interval of the simulated ones."
            chart = self._check(200, 0).chart()
            sections.append(Section("Responses", said, code="found.plot_check()", charts=(chart,)))
        return Page(self.formula.text, "", tuple(sections), facts)

    def __str__(self) -> str:
        rows, family = self.formula.rows, self.model.family
        counts = [f"{len(rows.kept)} rows" + (f" ({self.left_out} left out with gaps)" if self.left_out else "")]
        total = float(self.model.observed.weights.sum())
        counts += [f"weights sum to {total:g}"] if (self.model.observed.weights != 1).any() else []
        counts += [f"{group.name}: {len(group.levels)} groups" for group in rows.groups]
        counts += [" < ".join(map(str, self.levels))] if self.levels else []
        counts += self._limited()
        counts += [f"probability of {self.response}"] if family.of_labels else []
        lines = ["Intervals do not hold: sweeps did not converge."] if self.model.unsettled > UNSETTLED else []
        lines += [f"{self.formula.text}", f"  family {family.name}, link {family.link}; {', '.join(counts)}"]
        if self.formula.references:
            lines.append(f"  compared with {', '.join(f'{k} = {v}' for k, v in self.formula.references.items())}")
        if self.scaled.intercept is None and self.scaled.constants:
            names = ", ".join(self.formula.names[at] for at in self.scaled.constants)
            lines.append(
                f"  no intercept: its prior is that of each of {names}, and the evidence differs from that with one"
            )
        table = [("", "estimate", "sd", "2.5%", "97.5%")]
        table += [(row[0], *(f"{value:.4g}" for value in row[1:])) for row in self._table(0.95)]
        lines += aligned(table)
        lines.append(f"  log evidence {self.log_evidence:.6g}; {self.report.status}")
        return "\n".join([*lines, *note_lines(self._notes)])

    def _limited(self) -> list[str]:
        """The numbers of rows censored on each side, or that rows are truncated."""
        low, high = np.isfinite(self.model.observed.low), np.isfinite(self.model.observed.high)
        if self.limits != "censored":
            return [self.limits] if self.limits else []
        inside = low & high & (self.model.observed.low < self.model.observed.high)
        sides = {"left": ~low, "right": ~high, "interval": inside}
        return [f"censored: {', '.join(f'{n.sum()} {side}' for side, n in sides.items() if n.any()) or 'none'}"]

    def __repr__(self) -> str:
        return f"Fitted({self.formula.text!r}, {self.model.family.name}; {self.report.status})"
