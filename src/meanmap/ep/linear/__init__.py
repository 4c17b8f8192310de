"""Linear predictors as one unknown: a joint Gaussian of all effects, and likelihoods of η = A θ row by row."""
