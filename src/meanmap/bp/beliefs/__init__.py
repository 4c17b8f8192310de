"""What queries answer: beliefs as densities, histograms, labels; their pictures."""
