"""Anytime-valid tests, which may be looked at after every batch: betting against the null hypothesis."""
