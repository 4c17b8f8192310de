"""Each variable given all others, whatever is known of them: regressions whose weights on training rows are beliefs."""
