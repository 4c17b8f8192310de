"""Tests that may be looked at after every batch: betting against the hypothesis."""
