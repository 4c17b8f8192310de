"""Learning an edge: from pairs to the operators of messages, and to likelihoods of observations."""
