"""One file per subject, each with a tuple CASES. A new file here is found by itself."""
