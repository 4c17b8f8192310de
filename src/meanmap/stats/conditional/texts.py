"""Texts as a few columns of numbers: their principal coordinates under the spectrum kernel."""

import numpy as np

from meanmap.core.door import Door
from meanmap.kernels.discrete import Spectrum

__all__ = ["LENGTH", "text_coordinates"]

# Substrings of so many characters, so many coordinates, chosen from at most so many rows: their eigenvectors take .2 s.
LENGTH, MOST_COORDINATES, MOST_ROWS = 3, 10, 1000


def text_coordinates(texts: np.ndarray, argument: str) -> np.ndarray:
    """The directions in which texts vary most, (n, r), r ≤ 10, by the normalised spectrum kernel.

    Examples
    --------
    >>> found = text_coordinates(np.array(["a cat", "a cat sat", "two dogs", "two dogs ran"]), "x")
    >>> np.sign(found[:, 0] * found[0, 0]).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    from scipy.sparse import csr_array

    kernel = Spectrum(LENGTH)
    with Door() as door:
        # Spaces mark where words begin and end, and no text is too short.
        counts = kernel.domain.read([f"  {text} " for text in texts.tolist()], argument, door)
    names, columns = np.unique(counts.indices, return_inverse=True)
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    shares = csr_array(
        (counts.data / np.repeat(lengths, np.diff(counts.indptr)), columns, counts.indptr), (len(texts), len(names))
    )
    some = shares[:: -(-len(texts) // MOST_ROWS)]
    gram = (some @ some.T).toarray()
    rows = gram.mean(axis=1)
    values, vectors = np.linalg.eigh(gram - rows - rows[:, None] + rows.mean())
    kept = np.flatnonzero(values > 1e-9 * values[-1])[::-1][:MOST_COORDINATES]
    # Vectors of a centred matrix sum to zero, so that the mean of `some` drops out.
    directions = some.T @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(shares @ directions - np.asarray(some.mean(axis=0)).ravel() @ directions)
