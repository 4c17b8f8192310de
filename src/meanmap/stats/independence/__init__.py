"""Are variables independent? Two, several, and many pairs of them."""
