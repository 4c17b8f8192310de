"""Running a model: sweeps until beliefs stand still, what the run says about itself, and its answer."""
