"""Which rows are exchangeable: strata, clusters, pairs, blocks of time, and weights of rows."""
