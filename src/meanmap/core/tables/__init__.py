"""Tables and what their columns mean: kinds, units, missing values, rows that come piece by piece."""
