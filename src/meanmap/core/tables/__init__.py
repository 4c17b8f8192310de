"""Tables and the kinds of their columns: units, missing values, rows read piece by piece."""
