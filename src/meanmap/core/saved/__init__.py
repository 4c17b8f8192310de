"""One file for one value: written completely or not at all, and read without executing code."""
