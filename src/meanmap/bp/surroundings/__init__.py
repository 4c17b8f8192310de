"""Beliefs about pixels from their surroundings, without messages."""
