"""What is known in a query: values, functions and observations, read for every model."""
