"""Factors: from a plain function, and those whose messages are exact."""
