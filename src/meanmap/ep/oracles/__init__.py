"""Oracles compute the messages of black boxes: interfaces for the device and the host, sampling, Laplace, MCMC."""
