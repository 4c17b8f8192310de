"""Effect sizes with confidence intervals, and tests of whether an effect is larger or smaller than a margin."""
