"""Do samples come from the same distribution? Two samples, several samples, and batches that arrive over time."""
