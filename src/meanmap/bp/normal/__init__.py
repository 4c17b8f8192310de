"""Gaussian models: two numbers a message."""
