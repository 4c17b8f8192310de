"""Ways to compare two samples: each a statistic with a null distribution, in a table to which others may be added."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.stats.samples.blocks import block_length, block_test
from meanmap.stats.samples.feature_statistics import feature_test
from meanmap.stats.samples.gram_statistics import gram_test, limit_test
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["Compute", "Way", "choices", "register_two_sample", "way"]

# From two samples with their kernels, how many draws the null distribution has, a generator and an open door.
Compute = Callable[[Samples, int, np.random.Generator, Door], Outcome]


@dataclass(frozen=True)
class Way:
    """One statistic with one null distribution.

    Attributes
    ----------
    statistic, null : str
        What [`two_sample_test`][] is asked for.
    compute : callable
        `compute(samples, n_draws, generator, door)` gives an `Outcome`.
    label : callable
        From the samples to the statistic's name in the result.
    one_kernel : bool
        Whether it is for one kernel only.
    """

    statistic: str
    null: str
    compute: Compute
    label: Callable[[Samples], str]
    one_kernel: bool = False


_WAYS: dict[tuple[str, str], Way] = {}


def register_two_sample(
    statistic: str, null: str, compute: Compute, *, label: str | None = None, one_kernel: bool = False
) -> None:
    """Add a statistic, or a null distribution of one, to what [`two_sample_test`][] can be asked for.

    Parameters
    ----------
    statistic, null : str
        Their names; the pair must be new. The first null of a statistic is what null="auto" takes.
    compute : callable
        `compute(samples, n_draws, generator, door)` gives an `Outcome`. `samples[0]` and `samples[1]` are the points,
        `samples.pooled` both, `samples.kernels` the kernels, `samples.sizes` the numbers of points.
    label : str, optional
        What the statistic is called in the result; its name by default.
    one_kernel : bool
        Whether it is for one kernel only; the default kernel is then that of the median distance.

    Examples
    --------
    The distance of the means, under permutations:

    >>> import numpy as np
    >>> import meanmap as mm
    >>> from meanmap.stats import Null, Outcome, register_two_sample
    >>> def distance(samples, n_draws, generator, door):
    ...     n, points = samples.sizes[0], np.asarray(samples.pooled)
    ...     orders = [np.arange(len(points)), *(generator.permutation(len(points)) for _ in range(n_draws))]
    ...     found = [np.linalg.norm(points[o[:n]].mean(axis=0) - points[o[n:]].mean(axis=0)) for o in orders]
    ...     return Outcome(found[0], Null("permutation", np.array(found[1:]), exact=True))
    >>> register_two_sample("mean distance", "permutation", distance)
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(40, 2)), rng.normal(1.0, 1.0, size=(30, 2))
    >>> mm.two_sample_test(x, y, statistic="mean distance", n_permutations=99, rng=0).reject(0.05)
    True
    """
    for name, value in (("statistic", statistic), ("null", null)):
        if value == "auto":
            raise ParameterError(f"{name} is 'auto', which stands for one of the others: give it a name of its own.")
    if (statistic, null) in _WAYS:
        raise ParameterError(f"statistic={statistic!r} with null={null!r} is known already: give one another name.")
    _WAYS[statistic, null] = Way(statistic, null, compute, lambda samples: label or statistic, one_kernel)


def way(statistic: str, null: str) -> Way:
    """The way of this name."""
    return _WAYS[statistic, null]


def choices() -> dict[str, tuple[str, ...]]:
    """Which null distributions each statistic has; with "auto" all of them go."""
    found: dict[str, tuple[str, ...]] = {"auto": tuple(dict.fromkeys(null for _, null in _WAYS))}
    for statistic, null in _WAYS:
        found[statistic] = (*found.get(statistic, ()), null)
    return found


def _fused(name: str, alone: bool = False) -> Callable[[Samples], str]:
    return lambda samples: name + samples.fused(alone)


def _own() -> Iterator[Way]:
    """The ways of this library, in the order in which messages list them."""
    for statistic in ("unbiased", "biased"):
        for null in ("permutation", "wild"):
            yield Way(
                statistic,
                null,
                lambda s, n, g, d, u=statistic == "unbiased", k=null: gram_test(s, u, k, n, g, d),
                _fused(f"{statistic} MMD²", alone=null == "permutation"),
            )
    for null in ("gamma", "spectral"):
        yield Way(
            "biased",
            null,
            lambda s, n, g, d, k=null: limit_test(s, k, n, g),
            lambda samples: "biased MMD² × nm/(n + m)",
            one_kernel=True,
        )
    for null in ("permutation", "spectral"):
        yield Way(
            "features",
            null,
            lambda s, n, g, d, k=null: feature_test(s, k, n, g, d),
            _fused("unbiased MMD² of features", alone=null == "permutation"),
        )
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
