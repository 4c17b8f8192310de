"""The methods of two-sample tests, statistics with null distributions, in a registry that can be extended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.synonyms import own_words
from meanmap.stats.samples.blocks import block_length, block_test
from meanmap.stats.samples.feature_statistics import OfSums, gaussian_limit, summed
from meanmap.stats.samples.gram_statistics import feature_test, gram_test, limit_test
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["Compute", "Way", "choices", "fitting", "register_two_sample", "way"]

# A function of two samples with their kernels, the number of draws, a generator and an open door.
Compute = Callable[[Samples, int, np.random.Generator, Door], Outcome]


@dataclass(frozen=True)
class Way:
    """One statistic with one null distribution.

    Attributes
    ----------
    statistic, null : str
        The names in `two_sample_test`.
    compute : callable
        `compute(samples, n_draws, generator, door)` gives an `Outcome`.
    label : callable
        A function that returns the statistic's name in the result for given samples.
    one_kernel : bool
        Whether it takes a single kernel only.
    exchanges : bool
        Whether draws come from `samples.labels`, so that any design of exchangeable rows works.
    of_sums : callable or None
        The same as `compute`, from sums over any number of rows.
    """

    statistic: str
    null: str
    compute: Compute
    label: Callable[[Any], str]
    one_kernel: bool = False
    exchanges: bool = False
    of_sums: OfSums | None = None


_WAYS: dict[tuple[str, str], Way] = {}


@own_words
def register_two_sample(
    statistic: str,
    null: str,
    compute: Compute | None = None,
    *,
    of_sums: OfSums | None = None,
    label: str | None = None,
    one_kernel: bool = False,
    exchanges: bool = False,
) -> None:
    """Register a statistic, or a null distribution of one, for `two_sample_test`.

    Parameters
    ----------
    statistic, null : str
        Their names; the pair must be new. The first null of a statistic is what null="auto" takes.
    compute : callable
        `compute(samples, n_draws, generator, door)` gives an `Outcome`. `samples[0]` and `samples[1]` are the points,
        `samples.pooled` both, `samples.kernels` the kernels, `samples.sizes` the numbers of points;
        `samples.labels(n_draws, generator)` gives the sample of each point, (1 + B, N): in the data, then in draws.
    of_sums : callable, instead of `compute`
        `of_sums(x, y, features, n_draws, generator)` gives an `Outcome` from means and covariances of features of both
        samples (`x.n`, `x.mean`, `x.covariance()`), which are summed over any number of rows, in memory or not.
    label : str, optional
        The statistic's name in the result; by default `statistic`.
    one_kernel : bool
        Whether it takes a single kernel only; the default kernel is then the RBF kernel at the median distance.
    exchanges : bool
        Whether all its draws come from `samples.labels`: it then works with `within=` and `clusters=`.

    Examples
    --------
    The distance of the means, under permutations:

    >>> import numpy as np
    >>> import meanmap as mm
    >>> from meanmap.stats import Null, Outcome, register_two_sample
    >>> def distance(samples, n_draws, generator, door):
    ...     points, labels = np.asarray(samples.pooled), samples.labels(n_draws, generator)
    ...     found = [np.linalg.norm(points[z == 0].mean(axis=0) - points[z == 1].mean(axis=0)) for z in labels]
    ...     return Outcome(found[0], Null("permutation", np.array(found[1:]), exact=True))
    >>> register_two_sample("mean distance", "permutation", distance, exchanges=True)
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(40, 2)), rng.normal(1.0, 1.0, size=(30, 2))
    >>> mm.two_sample_test(x, y, statistic="mean distance", n_permutations=99, rng=0).reject(0.05)
    True
    """
    for name, value in (("statistic", statistic), ("null", null)):
        if value == "auto":
            raise ParameterError(f"{name} is 'auto', which stands for one of the others: choose another name.")
    if (statistic, null) in _WAYS:
        raise ParameterError(f"statistic={statistic!r} with null={null!r} is registered already: choose another name.")
    if (compute is None) == (of_sums is None):
        raise ParameterError("pass either compute, for points in memory, or of_sums, for any number of rows.")
    compute = compute if of_sums is None else _of_rows(of_sums)
    assert compute is not None  # exactly one of the two was given
    _WAYS[statistic, null] = Way(statistic, null, compute, lambda _: label or statistic, one_kernel, exchanges, of_sums)


def way(statistic: str, null: str) -> Way:
    """The method with these names."""
    return _WAYS[statistic, null]


def choices(*, summed: bool = False, exchanged: bool = False) -> dict[str, tuple[str, ...]]:
    """The null distributions of each statistic; "auto" allows all of them. Optionally only those that are `summed` over
    any number of rows, or that work with any design of exchangeable rows (`exchanged`).
    """
    known = [k for k, each in _WAYS.items() if each.of_sums or not summed if each.exchanges or not exchanged]
    found: dict[str, tuple[str, ...]] = {"auto": tuple(dict.fromkeys(null for _, null in known))}
    for statistic, null in known:
        found[statistic] = (*found.get(statistic, ()), null)
    return found


def fitting(statistic: str, null: str) -> list[Way]:
    """All methods with these names; "auto" matches any name."""
    return [each for s, n in _WAYS if statistic in ("auto", s) and null in ("auto", n) for each in [_WAYS[s, n]]]


def _of_rows(of_sums: OfSums) -> Compute:
    return lambda s, n, g, d: summed(s, of_sums, n, g, d)


def _fused(name: str, columns: bool = True) -> Callable[[Samples], str]:
    return lambda samples: name + samples.fused(columns)


def _own() -> Iterator[Way]:
    """The methods of this library, in the order in which messages list them."""
    for statistic in ("unbiased", "biased"):
        for null in ("permutation", "wild"):
            yield Way(
                statistic,
                null,
                lambda s, n, g, d, u=statistic == "unbiased", k=null: gram_test(s, u, k, n, g, d),
                _fused(f"{statistic} MMD²"),
            )
    for null in ("gamma", "spectral"):
        yield Way(
            "biased",
            null,
            lambda s, n, g, d, k=null: limit_test(s, k, n, g),
            lambda samples: "biased MMD² × nm/(n + m)",
            one_kernel=True,
        )
    label = "unbiased MMD² of features"
    yield Way("features", "permutation", feature_test, _fused(label))
    limit = gaussian_limit
    yield Way("features", "spectral", _of_rows(limit), _fused(label, columns=False), of_sums=limit)
    for statistic in ("block", "linear"):
        for null in ("wild", "normal"):
            yield Way(
                statistic,
                null,
                lambda s, n, g, d, b=statistic, k=null: block_test(s, b, k, n, g),
                lambda samples, b=statistic: f"mean MMD² over blocks of {block_length(b, min(samples.sizes))} pairs",
                one_kernel=True,
            )


_WAYS.update({(each.statistic, each.null): each for each in _own()})
