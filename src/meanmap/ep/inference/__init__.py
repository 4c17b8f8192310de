"""Running a model: sweeps until the beliefs converge, the report of the run, and its result."""
