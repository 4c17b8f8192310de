"""Do samples come from one distribution? Two samples, several samples, and batches that arrive over time."""
