"""Gaussian models, whose messages are two numbers."""
