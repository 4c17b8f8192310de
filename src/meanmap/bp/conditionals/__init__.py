"""The distribution of each variable given any others, by regressions that weight training rows."""
