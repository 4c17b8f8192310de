"""Each variable given any of the others: regressions whose weights on training rows are beliefs."""
