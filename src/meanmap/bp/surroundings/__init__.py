"""Beliefs about pixels from what surrounds them, without messages."""
