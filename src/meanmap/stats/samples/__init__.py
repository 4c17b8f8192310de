"""Do samples come from one distribution? Two samples, several, and batches that arrive one after another."""
