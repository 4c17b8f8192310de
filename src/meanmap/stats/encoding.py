"""User-supplied representations: any function from rows to vectors, in batches, fixed or fitted to half of the rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, NonFiniteError, ShapeError
from meanmap.core.held import counts_as_numbers
from meanmap.core.points import on_host
from meanmap.core.tables.missing import chosen_rows, length
from meanmap.kernels.reading import read_alike
from meanmap.kernels.stationary import RBF
from meanmap.learning.deep import DeepKernel, learn_deep_kernel
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["deep_samples", "encoded", "encoded_samples", "learns"]

# Rows encoded at once, and how many are encoded again to check that their vectors do not change.
BATCH, AGAIN = 256, 4
# Networks compute in single precision, and in an order that depends on the batch.
TOLERANCE = 1e-3
Encoder = Callable[[Any], Any]


def encoded(sample: object, features: Encoder, argument: str, generator: np.random.Generator) -> np.ndarray:
    """The feature vectors of all rows, (n, d).

    Level and p-values require that each vector is a function of its row alone: some rows are encoded again beside
    others, and a network that normalises over a batch, or drops units at random, is refused.

    Examples
    --------
    >>> lengths = lambda texts: [[len(text), 1.0] for text in texts]
    >>> encoded(["a", "bb", "ccc"], lengths, "x", np.random.default_rng(0)).tolist()
    [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    """
    sample = on_host(sample)
    features = _callable(features, f"features_{argument}")
    n = length(sample)
    parts = [_vectors(sample, np.arange(at, min(at + BATCH, n)), features, argument) for at in range(0, n, BATCH)]
    widths = sorted({part.shape[1] for part in parts})
    if len(widths) > 1:
        raise ShapeError(f"features gave vectors of {widths} numbers for batches of {argument}; expected one length.")
    found = np.concatenate(parts)
    some = generator.choice(n, min(n, AGAIN), replace=False)
    again = _vectors(sample, some, features, argument)
    if np.abs(again - found[some]).max() > TOLERANCE * max(1e-300, float(np.abs(found).max())):
        raise InputError(
            f"features of a row of {argument} change with the rows beside it, or from call to call: the level would "
            "not hold. Put the network into evaluation mode, as model.eval() does."
        )
    return found


def encoded_samples(
    samples: Sequence[Any], features: Any, names: Sequence[str], generator: np.random.Generator
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The feature vectors of two samples, and notes.

    An object with `fit` learns from half of the rows of each, with the samples' numbers as labels; the other rows are
    tested.
    """
    if not learns(features):
        return [encoded(s, _callable(features), name, generator) for s, name in zip(samples, names, strict=True)], ()
    first, left = _halves([on_host(sample) for sample in samples], generator)
    learned = _joined(first)
    labels = np.repeat(np.arange(len(samples)), list(map(length, first)))
    fitted = features.fit(learned, labels)
    fitted = features if fitted is None else fitted
    ways = (getattr(fitted, name, None) for name in ("transform", "decision_function", "predict_proba"))
    function = _callable(next(filter(None, ways), fitted))
    told = f"features were fitted to half of the rows, {len(labels)}, and the test uses the other half."
    return [encoded(s, function, name, generator) for s, name in zip(left, names, strict=True)], (told,)


def deep_samples(
    samples: Sequence[Any], names: Sequence[str], generator: np.random.Generator
) -> tuple[list[np.ndarray], DeepKernel, tuple[str, ...]]:
    """Half of the rows of two samples, the deep kernel that was trained on the others, and notes."""
    with Door() as door:
        matrices = [np.asarray(part, float) for part in read_alike(RBF(), samples, names, door)]
    for matrix, name in zip(matrices, names, strict=True):
        check_rows(len(matrix), name, 2 * LEAST_POINTS)
    first, left = _halves(matrices, generator)
    told = f"the deep kernel was trained on half of the rows, {sum(map(len, first))}, and the test uses the other half."
    return left, learn_deep_kernel(first[0], first[1], generator), (told,)


def learns(features: object) -> bool:
    """Whether features are fitted to some of the rows first."""
    return hasattr(features, "fit")


def _halves(samples: Sequence[Any], generator: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """The samples split in two at random, with rows in their original order."""
    cuts = [np.array_split(generator.permutation(length(sample)), 2) for sample in samples]
    first, second = (
        [chosen_rows(sample, np.sort(cut[side])) for sample, cut in zip(samples, cuts, strict=True)] for side in (0, 1)
    )
    return first, second


def _callable(features: object, argument: str = "features") -> Encoder:
    if not callable(features):
        raise KindError(f"{argument} is {features!r}; expected a function from rows to vectors, or an object with fit.")
    return features


def _vectors(sample: object, rows: np.ndarray, features: Encoder, argument: str) -> np.ndarray:
    """The vectors of some rows, in one call."""
    found = np.asarray(features(chosen_rows(sample, rows)))
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != len(rows) or not counts_as_numbers(found):
        raise ShapeError(
            f"features gave {found.dtype} of shape {found.shape} for {len(rows)} rows of {argument}; expected a vector "
            "of numbers for each row."
        )
    if not np.isfinite(found).all():
        raise NonFiniteError(f"features of {argument} hold values that are not finite.")
    return found.astype(float)


def _joined(parts: Sequence[Any]) -> Any:
    if all(isinstance(part, list) for part in parts):
        return [row for part in parts for row in part]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    raise KindError("features with fit= take samples that are arrays or lists: pass x.to_numpy() and y.to_numpy().")
