"""The answers to queries: beliefs as densities, histograms and labels, and their pictures."""
