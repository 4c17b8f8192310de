"""What scikit-learn's estimators are given, as it reads it."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from meanmap.core.errors import NonFiniteError
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Data

__all__ = ["read"]


def read(estimator: Any, *data: Data, **settings: Any) -> Any:
    """X, or X and y, by the rules of scikit-learn; integers too long for a float are refused, too.

    `schema_` is what the columns of X were at the fit; later a warning says which numbers are far outside.
    """
    try:
        found = validate_data(estimator, *data, dtype=np.float64, **settings)
    except OverflowError:
        raise NonFiniteError("X or y holds an integer that is too large for a float; expected at most 1e308.") from None
    X: Any = found[0] if len(data) > 1 else found
    if settings.get("reset", True):
        names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        estimator.schema_ = Schema.of(dict(zip(names, X.T, strict=True)), names=("X",))
    elif hasattr(estimator, "schema_"):
        for note in estimator.schema_.notes(dict(zip(estimator.schema_.names, X.T, strict=True)), "X"):
            warnings.warn(note, stacklevel=4)
    return found
