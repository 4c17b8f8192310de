"""Every kind of result has a page and is drawn in a notebook: one table."""

import inspect
import json
import re
import typing

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp, ep
from meanmap.plots import Paged
from meanmap.stats.simulation import PowerCurve, RejectionRate

RNG = np.random.default_rng(0)
A, NOISE, MORE = RNG.normal(size=(3, 80))
TABLE = {"sun": A, "rain": A + NOISE, "mud": A + NOISE + MORE}
LABELS = {"sun": A, "wet": np.where(A + NOISE > 0, "yes", "no")}
QUICK = {"rng": 0, "n_permutations": 99}


def monitor():
    found = mm.DriftMonitor.of(RNG.normal(size=(200, 1)), rng=0, n_permutations=99)
    return found.step(RNG.normal(size=(25, 1))).step(RNG.normal(3.0, 1.0, size=(25, 1)))


def network():
    return mm.KernelGraph([("sun", "wet")]).fit(LABELS)


def posterior():
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    return ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=2.0)), rng=0)


def effect(outcome):
    table = {"dose": A, "mood": A + NOISE, "well": np.where(A + NOISE > 0, "yes", "no")}
    model = mm.bp.BayesianNetwork([("dose", "mood"), ("dose", "well")])
    return model.effect(table, of="dose", on=outcome, from_=0.0, to=1.0, rng=0)


def rate():
    return mm.stats.rejection_rate(lambda x: x, lambda rng: rng.random(), repeats=40, rng=0)


def power():
    found = [RejectionRate(np.repeat([0.01, 0.5], [k, 100 - k]), 0.05, 0, rate().report) for k in (20, 90)]
    return PowerCurve((50, 100), tuple(found))


def field():
    return mm.KernelField([(0, 1), (1, 2), (2, 0)]).fit((A, A + NOISE))


RESULTS = {
    "two samples": lambda: mm.two_sample_test(TABLE, {**TABLE, "sun": A + 1}, **QUICK),
    "several samples": lambda: mm.k_sample_test({"a": A, "b": NOISE, "c": MORE}, **QUICK),
    "independence": lambda: mm.independence_test(A, LABELS["wet"], **QUICK),
    "conditional independence": lambda: mm.conditional_independence_test(A, NOISE, MORE, **QUICK),
    "joint independence": lambda: mm.joint_independence_test([A, NOISE, MORE], **QUICK),
    "effect": lambda: mm.two_sample_effect(A, NOISE, rng=0),
    "monitor": monitor,
    "graph": lambda: mm.graphs.Graph.of([("a", "b"), ("b", "c"), ("x", "y")]),
    "causes": lambda: mm.pc(TABLE, rng=0),
    "tree": lambda: mm.chow_liu(TABLE, rng=0),
    "network": network,
    "states": lambda: bp.DiscreteGraph([("a", "b")], {("a", "b"): np.array([[0.9, 0.1], [0.2, 0.8]])}),
    "beliefs": lambda: network().query({"sun": [-1.0, 0.0, 1.0]}),
    "beliefs about numbers": lambda: network().query({"wet": "yes"}),
    "posterior": posterior,
    "model": lambda: ep.models.logistic_regression(np.stack([A, NOISE], axis=1), A + NOISE > 0),
    "Gaussian graph": lambda: bp.GaussianGraph([[2.0, -1.0], [-1.0, 2.0]], [1.0, 0.0], ["sun", "rain"]),
    "Bayesian network": lambda: mm.BayesianNetwork([("sun", "rain"), ("rain", "mud")]),
    "fitted Bayesian network": lambda: mm.BayesianNetwork([("sun", "wet")]).fit(LABELS),
    "dependency network": lambda: bp.DependencyNetwork().fit(TABLE),
    "causal effect": lambda: effect("mood"),
    "causal effect on a label": lambda: effect("well"),
    "unfitted network": lambda: mm.KernelGraph([("sun", "wet")]),
    "unfitted field": lambda: mm.KernelField([(0, 1), (1, 2), (2, 0)]),
    "field": field,
    "scores of arrows": lambda: mm.BayesianNetwork([("sun", "mud"), ("rain", "mud")]).judge(TABLE),
    "rejection rate": rate,
    "power": power,
    "learned kernel": lambda: mm.learn_kernel(A[:, None], rng=0),
    "bet": lambda: mm.stats.TwoSampleBet.of(A, NOISE, rng=0).update(NOISE, A),
    "bet on independence": lambda: mm.stats.IndependenceBet.of(A, NOISE, rng=0).update(NOISE, A),
    "Gaussian process": lambda: ep.models.gp_classification(
        A[:, None], A > 0, kernel=mm.kernels.RBF(1.0), variance=1.0, rng=0
    ),
    "adjusted": lambda: mm.stats.adjusted({"sun": 0.01, "rain": 0.3}),
    "belief about a number": lambda: network().query({"wet": "yes"})["sun"],
    "belief about a label": lambda: network().query({"sun": 1.0})["wet"],
    "beliefs of several queries": lambda: network().query({"wet": ["yes", "no"]})["sun"],
    "normal belief": lambda: RESULTS["Gaussian graph"]().query({"sun": 1.0})["rain"],
    "histogram": lambda: RESULTS["dependency network"]().query({"sun": 1.0})["rain"],
    "posterior of a number": lambda: posterior()["mu"],
    "law of a state": lambda: mm.families.Bernoulli(0.3),
    "law of a vector": lambda: mm.families.MultivariateNormal(np.zeros(2), np.eye(2)),
    "embedding": lambda: mm.embed(A, mm.kernels.RBF(1.0)),
    "embedding of vectors": lambda: mm.embed(np.stack([A, NOISE], axis=1), mm.kernels.RBF(1.0)),
    "formula": lambda: mm.fit("rain ~ sun", TABLE),
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_has_a_page_and_a_picture(kind, tmp_path):
    result = RESULTS[kind]()
    assert isinstance(result, Paged)
    text = result.page(tmp_path / "a.html").read_text("utf-8")
    assert len(text.encode()) < 1e6
    facts = json.loads(re.findall(r'id="facts">(.*?)</script>', text, re.DOTALL)[0])
    assert facts["charts"]
    assert facts["facts"]
    for chart in facts["charts"]:
        assert len(chart["panels"]) == np.prod([len(each["choices"]) for each in chart["controls"]], initial=1)
    shown = result._repr_html_()
    assert "<svg" in shown
    assert "<script" not in shown


def facts_of(result, path):
    return json.loads(re.findall(r'id="facts">(.*?)</script>', result.page(path).read_text("utf-8"), re.DOTALL)[0])


def test_the_evidence_of_a_network_moves_its_beliefs_as_queries_do(tmp_path):
    model = network()
    *_, chart = facts_of(model, tmp_path / "a.html")["charts"]
    assert [each["choices"][:2] for each in chart["controls"][:2]] == [["sun", "wet"], ["sun", "wet"]]
    levels = [float(each) for each in chart["controls"][2]["choices"]]
    values = [float(f"{each:.4g}") for each in model.query({})["sun"].quantile(levels)]
    wet = model.query({"sun": np.array(values)})["wet"].probabilities()
    for k, value in enumerate(values):
        panel = chart["panels"][len(levels) + k]
        assert panel["note"].startswith(f"Given sun = {value:.4g}: ")
        shown = dict(zip([name for _, name in panel["x"]["ticks"]], panel["marks"][0]["y"], strict=True))
        assert shown == pytest.approx({label: float(p[k]) for label, p in wet.items()}, abs=1e-5)


def test_a_belief_shows_its_mean_and_interval(tmp_path):
    beliefs = network().query({"wet": "yes"})
    said = facts_of(beliefs, tmp_path / "a.html")["facts"]["beliefs"]["sun"][0]
    assert said["mean"] == float(beliefs["sun"].mean())
    assert said["interval"] == [float(each) for each in beliefs["sun"].quantile([0.025, 0.975])]


def titles(kind):
    page = RESULTS[kind]()._as_page()
    return page.title, page.sections[0].answer


def test_titles_and_answers_are_sentences():
    assert titles("two samples")[0] == "Do x and y come from the same distribution?"
    assert titles("two samples")[1].startswith("Evidence of a difference: the hypothesis of equal distributions is re")
    assert titles("several samples")[0] == "Do a, b and c come from the same distribution?"
    title, answer = titles("independence")
    assert title == "Is x independent of y?"
    assert answer.startswith("Evidence of dependence: independence is rejected at level 0.05 (p = 0.01")
    title, answer = titles("conditional independence")
    assert title == "Is x independent of y given z?"
    assert answer.startswith("No evidence of dependence: independence is not rejected at level 0.05 (p = ")
    assert titles("joint independence")[0].endswith(" jointly independent?")
    assert titles("effect")[0] == "How large is the difference between x and y?"
    assert titles("monitor")[1].startswith("Alarm at batch 2, of 2 batches; the latest p-value is ")
    assert titles("causes")[1] == "3 nodes, 2 lines."
    assert titles("bet")[1].startswith("After 2 batches the e-value is ")
    assert titles("formula")[1] == "The interval of sun excludes 0."
    assert titles("causal effect")[1].startswith("Setting dose to 1 rather than 0 changes the mean of mood by ")
    several = mm.independence_test(["sun", "rain"], ["mud"], data=TABLE, **QUICK)
    assert several._as_page().title == "Are sun and rain independent of mud?"
    close = mm.closeness_test(A[:, None], A[:, None] + 3, 0.1, rng=0)._as_page()
    assert close.title == "Are x and y closer than after a shift of all columns by 0.1 standard deviations?"
    assert close.sections[0].answer == "Not shown at level 0.05 (p = 1)."


@pytest.mark.parametrize(
    ("kind", "marks"),
    [
        ("effect", ["bars", "bars"]),
        ("two samples", ["bars", "bars"]),
        ("independence", ["dots"]),
        ("conditional independence", ["dots"]),
        ("causal effect", ["dots"]),
        ("causal effect on a label", ["dots"]),
        ("formula", ["dots"]),
    ],
)
def test_the_first_picture_is_the_data(kind, marks):
    chart = RESULTS[kind]()._as_page().sections[0].charts[0]
    assert [mark.kind for mark in chart.panels[0].marks] == marks


def test_the_page_of_a_closeness_test_and_of_effect_sizes_begin_with_the_data():
    found = (
        mm.closeness_test(TABLE, TABLE, 0.5, rng=0),
        mm.independence_effect(A, NOISE, rng=0),
        mm.conditional_independence_effect(A, NOISE, MORE, rng=0),
        mm.k_sample_effect({"a": A, "b": NOISE, "c": MORE, "d": A + 1}, rng=0),
    )
    kinds = [[mark.kind for mark in each._as_page().sections[0].charts[0].panels[0].marks] for each in found]
    assert kinds == [["bars"] * 2, ["dots"], ["dots"], ["line"] * 4]  # bars of four would hide one another


def test_labels_in_a_series_are_drawn():
    """The page began with the null distribution, and had the method as its title."""
    pandas = pytest.importorskip("pandas")
    words = pandas.Series(LABELS["wet"].tolist(), dtype=object)
    for each in (words, words.to_numpy(), words.astype("string")):
        page = mm.independence_test(A, each, **QUICK)._as_page()
        assert page.title == "Is x independent of y?"
        assert [name for _, name in page.sections[0].charts[0].panels[0].y.ticks] == ["no", "yes"]


def test_an_effect_size_says_the_clearest_difference_in_a_sentence():
    before, after = {"a": A, "b": 2.0 * NOISE}, {"a": A, "b": 2.0 * NOISE + 5.0}
    (first, *_) = mm.two_sample_effect(before, after, rng=0)._as_page().sections
    low, high = np.mean(before["b"]), np.mean(after["b"])
    assert first.answer.startswith(f"The mean of b is {low:.4g} in x and {high:.4g} in y, a difference of 5 (")
    same = mm.two_sample_effect(before, before, rng=0)._as_page().sections[0].answer
    assert same.startswith("No column is shown to differ. The ")


def test_labels_without_letters_are_seen():
    table = {"y": A, "t": np.repeat(["", "new"], 40)}
    page = mm.two_sample_test(table, by="t", **QUICK)._as_page()
    assert [mark.series for mark in page.sections[0].charts[0].panels[0].marks] == ["t=''", "t=new"]


def test_samples_are_not_drawn_row_by_row(tmp_path):
    chart = facts_of(RESULTS["several samples"](), tmp_path / "a.html")["charts"][0]
    assert [mark["kind"] for mark in chart["panels"][0]["marks"]] == ["bars"] * 3


# Classes that public functions and methods return, by what is no answer to look at: functions and spaces, settings,
# what is being built on, and arrays that are read by their attributes.
WITHOUT_PAGE = {
    "kernels and features": "Bags EmbeddingGaussian ExpectedProduct Features Kernel MeanVariance Nystrom "
    "PivotedCholesky RandomProjection TensorProduct KernelDraws",
    "functions and operators": "Combination Embedding FeatureEmbedding Operator PosteriorEmbedding Witness "
    "RegressionPlan",
    "factors and oracles": "Answer AroundMode BlackBox Density Diary Factor Factors ImportanceSampling "
    "Interval Learned MCMC MessageOperator Quadrature",
    "likelihoods and messages": "CentredLikelihood EdgeOperators LearnedLikelihood NoiseLikelihood Variable",
    "estimators of scikit-learn": "BagRegressor ConditionalMeanRegressor KernelGraphClassifier KernelGraphRegressor "
    "TwoStageFeatures",
    "linear algebra": "Moments OnlineRegression Ridge RidgePath Solution",
    "data and settings": "Citation Exchange FunctionTests KernelTests Knowledge Outcome Rng Rooted SampleState Schema "
    "Section Slots Stereo Table",
    "restorers of images": "FittedForestGrid FittedKernelGrid",
    "a few numbers, printed": "Configuration Pooled Sensitivity Stream",
}


def returned():
    """Classes of this library that public functions and methods say they return."""
    folders = "bp core datasets embeddings ep estimators families features graphs io kernels learning linalg stats"
    for place in (mm, ep.models, mm.structure, *(getattr(mm, name) for name in folders.split())):
        for name in place.__all__:
            held = getattr(place, name)
            parts = vars(held) if isinstance(held, type) else {name: held}
            for part in (each for key, each in parts.items() if not key.startswith("_")):
                function = getattr(part, "__func__", part)
                if inspect.isfunction(function):
                    try:
                        found = typing.get_type_hints(function).get("return")
                    except NameError:  # names that are imported for type checkers alone
                        continue
                    if isinstance(found, type) and found.__module__.startswith("meanmap"):
                        yield found


def test_every_class_of_results_has_a_page_or_a_reason():
    excused = {name for names in WITHOUT_PAGE.values() for name in names.split()}
    found = set(returned())
    assert len(found) > 60
    assert sorted({each.__name__ for each in found if not issubclass(each, Paged)} - excused) == []
    assert sorted(excused - {each.__name__ for each in found}) == []


def test_a_difference_of_embeddings_and_a_message_say_why_nothing_is_drawn(tmp_path):
    kernel = mm.kernels.RBF(1.0)
    improper = mm.families.Normal.from_natural(0.0, -1.0)
    for each, why in (
        (mm.embed(A, kernel) - mm.embed(NOISE, kernel), "no density"),
        (improper, "not a probability distribution"),
    ):
        text = each.page(tmp_path / "a.html").read_text("utf-8")
        assert why in text
        assert "<svg" not in each._repr_html_()
