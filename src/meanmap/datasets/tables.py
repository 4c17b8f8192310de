"""Tables: the ozone of Los Angeles, and four classification problems."""

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.settings import one_of
from meanmap.core.tables.table import Table
from meanmap.datasets.files import DataNotFoundError, fetched, own

__all__ = ["UCI_NAMES", "ozone", "uci"]

OZONE_COLUMNS = ("O3", "vh", "wind", "humidity", "temp", "ibh", "dpg", "ibt", "vis", "doy")
OZONE_VALUES = "f93979dab82efb8c1f38594f63ef1e31d55bae44d2ba63e100720768d0cbb4c3"

FERTILITY = "season age childish_diseases accident_or_trauma surgical_intervention high_fevers alcohol_frequency"
UCI_COLUMNS = {
    "banknote": ("variance", "skewness", "curtosis", "entropy"),
    "transfusion": ("recency_months", "frequency_times", "monetary_cc", "time_months"),
    "fertility": (*FERTILITY.split(), "smoking_habit", "hours_sitting"),
    "ionosphere": tuple(f"x{number:02}" for number in range(1, 35)),
}
UCI_NAMES = tuple(UCI_COLUMNS)
# The raw value of the label 1 in each set.
UCI_ONE = {"banknote": "1", "transfusion": "1", "fertility": "O", "ionosphere": "g"}


def ozone() -> Table:
    """Ozone in Los Angeles in 1976: 330 days, its daily maximum and nine measurements of the weather.

    The columns are `O3` (ppm), `vh` (height of 500 mb at Vandenberg, m), `wind` (mph), `humidity` (%), `temp`
    (Sandburg, F), `ibh` (height of the inversion base, ft), `dpg` (pressure gradient to Daggett, mm Hg), `ibt`
    (temperature of the inversion base), `vis` (visibility, miles) and `doy` (day of the year). From Breiman and
    Friedman (1985).

    Examples
    --------
    >>> ozone()  # doctest: +SKIP
    Table(330 rows: O3, vh, wind, humidity, temp, ibh, dpg, ibt, vis, doy)
    """
    path = own("ozone/ozone_330x10.csv") or own("ozone/LAozone.data") or fetched("ozone/LAozone.data")
    values = np.array([[float(cell) for cell in row] for row in _rows(path)[1:]])
    if hashlib.sha256(values.astype("<f8").tobytes()).hexdigest() != OZONE_VALUES:
        raise DataNotFoundError(f"{path} does not hold the expected 330 days of ozone: remove it and try again.")
    return Table.of(dict(zip(OZONE_COLUMNS, values.T, strict=True)))


def uci(name: str) -> tuple[Table, Any]:
    """A UCI classification problem that the papers on expectation propagation use, and its labels.

    Parameters
    ----------
    name : str
        `"banknote"` (1372 rows of 4 columns), `"transfusion"` (748 of 4), `"fertility"` (100 of 9) or
        `"ionosphere"` (351 of 34, the second constant). CC BY 4.0.

    Returns
    -------
    table : Table
        The columns, not standardised.
    labels : (n,) array of int
        0 or 1.

    Examples
    --------
    >>> table, labels = uci("fertility")  # doctest: +SKIP
    >>> len(table), int(labels.sum())  # doctest: +SKIP
    (100, 12)
    """
    one_of(name, "name", UCI_NAMES)
    prepared = own(f"uci/{name}.csv")
    if prepared is not None:
        rows, one = _rows(prepared)[1:], "1"
    else:
        rows, one = _rows(own(f"uci/{name}.txt") or fetched(f"uci/{name}.txt")), UCI_ONE[name]
        rows = rows[1:] if name == "transfusion" else rows  # the only file with a header
    values = np.array([[float(cell) for cell in row[:-1]] for row in rows])
    labels = np.array([int(row[-1].strip() == one) for row in rows])
    return Table.of(dict(zip(UCI_COLUMNS[name], values.T, strict=True))), labels


def _rows(path: Path) -> Sequence[Sequence[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]
