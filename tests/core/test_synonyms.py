"""Arguments by the names that the command line and other libraries have for them."""

import inspect

import numpy as np
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core.errors import NonFiniteError, ParameterError
from meanmap.core.synonyms import DESIGNS, own_words
from meanmap.ep.factor import Factor

TABLE = {"a": np.arange(20.0), "b": np.arange(20.0) ** 2}
CALLS = {
    "two_sample_test": ((TABLE, TABLE), "seed"),
    "k_sample_test": (([TABLE, TABLE],), "seed"),
    "independence_test": ((TABLE["a"], TABLE["b"]), "random_state"),
    "joint_independence_test": (([TABLE["a"], TABLE["b"]],), "seed"),
    "conditional_independence_test": ((TABLE["a"], TABLE["b"], TABLE["b"]), "seed"),
    "conditional_independence_effect": ((TABLE["a"], TABLE["b"], TABLE["b"]), "seed"),
    "two_sample_effect": ((TABLE, TABLE), "seed"),
    "k_sample_effect": (([TABLE, TABLE],), "seed"),
    "independence_effect": ((TABLE["a"], TABLE["b"]), "random_state"),
    "closeness_test": ((TABLE, TABLE), "seed"),
    "test": (("a ~ b", TABLE), "seed"),
    "pc": ((TABLE,), "seed"),
    "chow_liu": ((TABLE,), "seed"),
    "learn_kernel": ((TABLE["a"],), "seed"),
    "sample_kernel": ((TABLE["a"],), "seed"),
    "median_heuristic": ((TABLE["a"],), "seed"),
    "default_kernel": ((TABLE,), "seed"),
    "at_median": ((mm.kernels.RBF(), TABLE["a"]), "seed"),
    "kernel_for": ((TABLE["a"],), "seed"),
    "posterior_witness": ((TABLE["a"], TABLE["b"]), "seed"),
    "rejection_rate": ((None, None), "seed"),
    "power_curve": ((None, None, [10]), "seed"),
}
PUBLIC = {
    name: function
    for folder in (mm, mm.stats, mm.learning, mm.embeddings)
    for name in folder.__all__
    if inspect.isfunction(function := getattr(folder, name))
}


@pytest.mark.parametrize("name", CALLS)
def test_another_word_for_rng_is_answered_with_ours(name):
    arguments, word = CALLS[name]
    with pytest.raises(TypeError, match=rf"{name}\(\) takes no {word}=; here it is called rng: type rng=7\."):
        PUBLIC[name](*arguments, **{word: 7})


def test_every_public_function_with_rng_says_so():
    assert {name for name, function in PUBLIC.items() if "rng" in inspect.signature(function).parameters} == set(CALLS)


# What functions of ours make: nobody types what is in it.
MADE = ("Schema", "Samples", "Mode", "Operator", "PointEmbedding", "Derivatives")


def _switches(folder):
    """Of each function and class of a folder, and of each class's own ways to make one: what is True or False."""
    for name in folder.__all__:
        found = getattr(folder, name)
        makers = [found]
        if inspect.isclass(found):
            makers += [getattr(found, each) for each in ("of", "fit", "predict") if hasattr(found, each)]
        for function in filter(callable, makers):
            if name in MADE:
                continue
            try:
                known = inspect.signature(function).parameters
            except ValueError:
                continue
            for switch, each in known.items():
                if isinstance(each.default, bool):
                    yield pytest.param(function, switch, id=f"{function.__qualname__}({switch})")


FOLDERS = (
    mm,
    mm.stats,
    mm.learning,
    mm.embeddings,
    mm.kernels,
    mm.ep,
    mm.ep.models,
    mm.ep.learned,
    mm.bp,
    mm.estimators,
)
ARGUMENTS = {
    ep.BlackBox: (lambda z: z, ep.Variable("z", ep.Normal), ep.Variable("p", ep.Normal)),
    ep.Density: (lambda z: -(z**2), ep.Variable("z", ep.Normal)),
    mm.KernelGrid: (),
    mm.KernelGrid.fit: (mm.KernelGrid(), None),
    mm.estimators.ConditionalMeanRegressor.predict: (mm.estimators.ConditionalMeanRegressor(), None),
    mm.estimators.ConditionalDensity.predict: (mm.estimators.ConditionalDensity(), None),
}


SWITCHES = {each.id: each for folder in FOLDERS for each in _switches(folder)}


@pytest.mark.parametrize(("function", "switch"), SWITCHES.values())
def test_switches_are_true_or_false(function, switch):
    """Python takes "no" for true, and None for false."""
    known = inspect.signature(function).parameters.values()
    needed = [None for each in known if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    named = {each.name: None for each in known if each.default is each.empty and each.kind is each.KEYWORD_ONLY}
    for wrong in ("no", "False", 0, None):
        with pytest.raises(ParameterError, match=rf"{switch} is {wrong!r}; expected True or False"):
            function(*ARGUMENTS.get(function, needed), **named, **{switch: wrong})


def test_switches_are_found_by_place_too():
    @own_words
    def draw(n, twice=False, *rest, loud=True):
        return n, twice, rest, loud

    assert draw(1, True, 2, loud=np.bool_(False)) == (1, True, (2,), False)
    with pytest.raises(ParameterError, match="twice is 2; expected True or False"):
        draw(1, 2, True)
    with pytest.raises(ParameterError, match="loud is 'no'; expected True or False"):
        draw(1, loud="no")


def test_levels_are_for_results():
    with pytest.raises(TypeError, match=r"two_sample_test\(\) takes no alpha=: .* result\.reject\(0\.01\)"):
        mm.two_sample_test(TABLE, TABLE, alpha=0.01)
    with pytest.raises(TypeError, match=r"pc\(\) takes no alpha=; here it is called level: type level=0\.01"):
        mm.pc(TABLE, alpha=0.01)
    result = mm.two_sample_test(np.arange(9.0), np.arange(9.0), n_permutations=19, rng=0)
    with pytest.raises(TypeError, match=r"reject\(\) takes no alpha=; here it is called level"):
        result.reject(alpha=0.05)
    with pytest.raises(TypeError, match=r"driving_columns\(\) takes no level=; .* type confidence=0\.9"):
        result.driving_columns(level=0.9)
    for effect in (mm.two_sample_effect, mm.k_sample_effect, mm.independence_effect):
        with pytest.raises(TypeError, match=r"takes no level=; here it is called confidence: type confidence=0\.9"):
            effect(TABLE, TABLE, level=0.9)
    with pytest.raises(TypeError, match=r"takes no level=; here it is called confidence: type confidence=0\.9"):
        mm.conditional_independence_effect(TABLE, TABLE, TABLE, level=0.9)
    with pytest.raises(TypeError, match=r"two_sample_effect\(\) takes no alpha=; .*: type confidence=0\.95\."):
        mm.two_sample_effect(TABLE, TABLE, alpha=0.05)
    with pytest.raises(TypeError, match=r"two_sample_effect\(\) takes no level=; .*: type confidence=0\.9\."):
        mm.two_sample_effect(TABLE, TABLE, level=0.1)
    with pytest.raises(TypeError, match=r"pc\(\) takes no confidence=; here it is called level: type level=0\.05\."):
        mm.pc(TABLE, confidence=0.95)
    with pytest.raises(TypeError, match=r"of\(\) takes no seed=; here it is called rng"):
        mm.DriftMonitor.of(TABLE, seed=0)


S = ep.Variable("s", ep.Normal(0.0, 1.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ep.Gaussian(S, observed=[1.0], variance=0.09), "the precision: type precision=1/0.09."),
        (lambda: ep.Gaussian(S, observed=[1.0], sd=0.3), "the precision: type precision=1/0.3**2."),
        (lambda: ep.Gaussian(S, observed=[1.0], scale=np.float64(0.3)), "the precision: type precision=1/0.3**2."),
        (lambda: ep.Gaussian(S, observed=[1.0], var=np.ones(9)), "the precision: type precision=1/var."),
        (lambda: ep.Gaussian(S, y=np.arange(9.0)), "called observed: type observed=y."),
        (lambda: ep.Sum(S, out=1.0, sd=2.0), "the precision: type precision=1/2.0**2."),
        (lambda: ep.Interval(S, lower=0.0), "called low: type low=0.0."),
        (lambda: ep.Interval(S, 0.0, sd=2.0), "called noise: type noise=2.0."),
        (lambda: ep.Student(S, observed=1.0, df=3), "called degrees: type degrees=3."),
        (lambda: ep.Bernoulli(probs=S, observed=[1]), "called p: type p=probs."),
        (lambda: ep.Normal(0.0, sd=2.0), "the variance: type variance=2.0**2."),
        (lambda: ep.Normal(mu=0.0, precision=4.0), "called mean: type mean=0.0."),
        (lambda: ep.Normal(precision=4.0), "the variance: type variance=1/4.0."),
        (lambda: ep.Gamma(2.0, scale=3.0), "the rate: type rate=1/3.0."),
        (lambda: ep.Gamma.from_mean_variance(2.0, sd=3.0), "the variance: type variance=3.0**2."),
        (lambda: ep.Beta(alpha=2.0, beta=3.0), "called a: type a=2.0."),
        (lambda: ep.Dirichlet(alpha=[1.0, 2.0]), "called concentration: type concentration=[1.0, 2.0]."),
        (lambda: ep.MultivariateNormal([0.0], cov=np.eye(1)), "called covariance: type covariance=cov."),
        (lambda: mm.families.Bernoulli(p=0.3), "called probability: type probability=0.3."),
        (lambda: mm.families.Laplace(mu=0.0), "called location: type location=0.0."),
        (lambda: mm.families.Uniform(upper=2.0), "called high: type high=2.0."),
    ],
)
def test_factors_and_families_answer_other_words_with_their_own(make, said):
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).endswith(f"; here it is {said}")


def test_the_arguments_of_all_factors_and_families_are_checked():
    made = (mm.families.Distribution, mm.families.Family, mm.families.Flat)  # which nobody gives arguments
    folders = [(ep, name) for name in ep.__all__] + [(mm.families, name) for name in mm.families.__all__]
    found = {getattr(folder, name) for folder, name in folders} - set(made)
    classes = {each for each in found if isinstance(each, type) and issubclass(each, Factor | mm.families.Distribution)}
    functions = {each for each in found if inspect.isfunction(each) and "factors" in each.__module__}
    assert len(classes) > 15
    assert len(functions) > 5
    assert {each for each in classes if not hasattr(each.__init__, "__wrapped__")} == set()
    assert {each for each in functions if not hasattr(each, "__wrapped__")} == set()


def test_all_else_stays_as_it_was():
    def draw(n: int, rng=None) -> int:
        """So many."""
        return n

    told = own_words(draw)
    assert inspect.signature(told) == inspect.signature(draw)
    assert (told.__doc__, told.__name__, told.__module__) == (draw.__doc__, "draw", draw.__module__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        told(3, colour=1)


@pytest.mark.parametrize("word", DESIGNS)
def test_designs_that_a_function_does_not_take_are_refused_with_those_that_do(word):
    named = {part for part in DESIGNS[word].replace(" and ", ", ").split(", ") if "." not in part}
    known = {name for name in CALLS if word in inspect.signature(PUBLIC[name]).parameters}
    assert named <= known <= named | {"conditional_independence_effect", "test"}
    with pytest.raises(TypeError, match=rf"takes no {word}=; these do: .*two_sample_test"):
        mm.stats.TwoSampleBet.of(TABLE, **{word: TABLE["a"]})
    with pytest.raises(TypeError, match=r"DriftMonitor\.of\(\) takes no weights=; these do"):
        mm.DriftMonitor.of(TABLE, weights=TABLE["a"])


def test_missing_rows_are_dropped_on_request_where_that_can_be_typed():
    column = [1.0, np.nan, *range(9)]
    with pytest.raises(NonFiniteError, match=r"Drop those rows or fill them in first, or pass missing='drop'\.$"):
        mm.two_sample_test(column, column)
    with pytest.raises(NonFiniteError, match=r"Drop those rows or fill them in first\.$"):
        mm.kernels.RBF(1.0)(column, column)
    with pytest.raises(NonFiniteError, match=r"not finite: inf at .* in first\.$"):
        mm.two_sample_test([1.0, np.inf, *range(9)], column[2:])


def test_a_method_called_on_its_class_says_so():
    """Once: 'DataFrame' object has no attribute '_read'."""
    table = {"a": [1.0, 2.0], "b": [2.0, 3.0]}
    with pytest.raises(TypeError, match=r"fit\(\) was called on the class; make a BayesianNetwork first"):
        mm.BayesianNetwork.fit(table, [("a", "b")])
    with pytest.raises(TypeError, match="make a KernelGraph first"):
        mm.KernelGraph.fit()
