"""Which rows may be exchanged: strata, clusters, pairs, blocks of time, and weights of rows."""
