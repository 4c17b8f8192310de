"""Learning an edge: pairs to operators that carry messages, and to likelihoods of what is observed."""
