"""Models of variables with kernels: on trees, on any graph, on images, along growing chains."""
