"""Models of states: discrete networks, clique trees, numbers in bins."""
