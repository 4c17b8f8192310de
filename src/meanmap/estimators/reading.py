"""What scikit-learn's estimators are given, as it reads it."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from meanmap.core.errors import NonFiniteError

__all__ = ["read"]


def read(estimator: Any, *data: Any, **settings: Any) -> Any:
    """X, or X and y, by the rules of scikit-learn; integers too long for a float are refused, too."""
    try:
        return validate_data(estimator, *data, dtype=np.float64, **settings)
    except OverflowError:
        raise NonFiniteError("X or y holds an integer that is too large for a float; expected at most 1e308.") from None
