"""Models whose messages are drawn: mixtures and particles."""
