"""How large an effect is, with intervals, and tests of whether it is larger or smaller than a margin."""
