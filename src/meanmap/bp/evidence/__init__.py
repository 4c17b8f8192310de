"""Evidence of a query: values, functions and observations, read for every model."""
