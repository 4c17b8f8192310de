"""What computes the messages of a black box: interfaces for the device and the host, sampling, Laplace, MCMC."""
