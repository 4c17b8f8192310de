"""Draws of gaps by miceforest, and their quantiles by quantile forests and LightGBM, as they come."""

import lightgbm
import miceforest
import numpy as np
import pandas as pd
from quantile_forest import RandomForestQuantileRegressor
from serving import serve
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # switches the next import on
from sklearn.impute import IterativeImputer

ROUNDS = 5


def prepare(model):
    """`rows` (sets, n, d) with NaN in gaps; the answer is tables (draws, n, d) of one set."""
    rows = model["rows"]

    def answer(which, draws, method="miceforest"):
        return METHODS[method](rows[which], draws, which)

    return answer


def chained(table, draws, seed):
    """Chained equations with LightGBM and predictive mean matching: draws."""
    frame = pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])
    kernel = miceforest.ImputationKernel(frame, num_datasets=draws, random_state=seed)
    kernel.mice(ROUNDS)
    return np.stack([kernel.complete_data(k).to_numpy(dtype=float) for k in range(draws)])


def forest(table, draws, seed):
    """A quantile forest a column; the other columns are first filled in by chained equations with extra trees."""
    learner = ExtraTreesRegressor(30, random_state=seed)
    whole = IterativeImputer(learner, max_iter=4, random_state=seed).fit_transform(table)

    def fitted(others, known, y):
        found = RandomForestQuantileRegressor(100, min_samples_leaf=5, random_state=seed).fit(others[known], y)
        return lambda levels: found.predict(others[~known], quantiles=list(levels))

    return by_column(table, whole, draws, fitted)


def boosted(table, draws, _):
    """A LightGBM regression for each quantile of each column; it reads gaps in other columns itself."""

    def fitted(others, known, y):
        def at(level):
            options = {"objective": "quantile", "alpha": level, "num_threads": 1, "verbosity": -1}
            return lightgbm.train(options, lightgbm.Dataset(others[known], y)).predict(others[~known])

        # Quantiles that cross are put in order.
        return lambda levels: np.sort(np.stack([at(level) for level in levels], axis=1), axis=1)

    return by_column(table, table, draws, fitted)


def by_column(table, features, draws, fitted):
    """Tables whose gaps hold the quantiles at k / (draws + 1)."""
    levels = np.arange(1, draws + 1) / (draws + 1)
    drawn = np.repeat(table[None], draws, axis=0)
    for j in range(table.shape[1]):
        known = ~np.isnan(table[:, j])
        if not known.all():
            others = np.delete(features, j, axis=1)
            drawn[:, ~known, j] = fitted(others, known, table[known, j])(levels).T
    return drawn


METHODS = {"miceforest": chained, "quantile forest": forest, "LightGBM quantiles": boosted}


serve(prepare)
