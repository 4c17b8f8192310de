"""Networks: papers with citations, words and topics."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from meanmap.core.values import Value
from meanmap.datasets.files import fetched, own

__all__ = ["Citation", "citation"]


@dataclass(frozen=True, eq=False, repr=False)
class Citation(Value):
    """A citation network of papers.

    Attributes
    ----------
    links : (papers, papers) sparse matrix
        1 where one of two papers cites the other; symmetric.
    words : (papers, words) sparse matrix
        The number of times each word occurs in the title.
    topics : (papers, topics) array of bool
        The topics of each paper, one or more.
    """

    links: Any
    words: Any
    topics: Any


def citation() -> Citation:
    """9360 papers of computer science with 15,556 links, 6775 words and 5 topics (ACM 2000 and later, from ArnetMiner).

    The data are offered for research use and come from the repository daiquanyu/AdaGCN_TKDE.
    """
    prepared = own("citation/acmv9.npz")
    if prepared is not None:
        with np.load(prepared, allow_pickle=False) as file:
            size = len(file["adj_indptr"]) - 1
            ones = np.ones(len(file["adj_indices"]))
            links = scipy.sparse.csr_array((ones, file["adj_indices"], file["adj_indptr"]), shape=(size, size))
            parts = (file["attr_data"].astype(float), file["attr_indices"], file["attr_indptr"])
            words = scipy.sparse.csr_array(parts, shape=tuple(file["attr_shape"]))
            return Citation(links, words, file["labels"].astype(bool))
    raw = scipy.io.loadmat(own("citation/acmv9.mat") or fetched("citation/acmv9.mat"))
    first, second = np.nonzero(raw["network"])
    first, second = first[first != second], second[first != second]  # no paper cites itself
    links = scipy.sparse.csr_array((np.ones(len(first)), (first, second)), shape=raw["network"].shape)
    return Citation(links, scipy.sparse.csr_array(raw["attrb"].astype(float)), raw["group"].astype(bool))
