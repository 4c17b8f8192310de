"""More random signs for the same products: groups of rows whose signs change together.

If rows are in random order and in G groups, sums over groups are independent and of the same size. Multiplied by the
signs of a Hadamard matrix and added up, these give G sums that are uncorrelated, and independent as far as they are
normal. Quadratic forms of B random sign vectors with each of G such sign changes are therefore as good as those of B G
vectors, and cost n² B multiplications, as the forms of pairs of groups are the same for all changes.
"""

import numpy as np

__all__ = ["bounds", "group_signs", "mixed", "number_of_groups"]

# Groups have about this many rows, so that products of small matrices take no longer than those of large ones, and
# there are at most this many.
ROWS_A_GROUP, MOST_GROUPS = 128, 16


def number_of_groups(n: int) -> int:
    """The number of groups of n rows, a power of two."""
    return int(2 ** np.clip(np.round(np.log2(n / ROWS_A_GROUP)), 0, np.log2(MOST_GROUPS)))


def bounds(n: int, groups: int) -> list[int]:
    """Where groups of consecutive rows begin, and where the last one ends."""
    return [n * number // groups for number in range(groups + 1)]


def mixed(n: int) -> np.ndarray:
    """A random order of n rows, always the same, so that sorted rows do not make groups unlike."""
    return np.random.default_rng(0).permutation(n)


def group_signs(groups: int) -> np.ndarray:
    """A Hadamard matrix (G, G), with the sign (−1)^(bits that a and g share) in row a and column g."""
    found = np.ones((1, 1))
    while len(found) < groups:
        found = np.kron(np.array([[1, 1], [1, -1]]), found)
    return found
