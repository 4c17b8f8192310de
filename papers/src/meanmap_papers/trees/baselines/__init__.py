"""What learned trees are compared with: the methods a reader would otherwise use."""
