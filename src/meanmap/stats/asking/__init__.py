"""One door for questions about a table, written as a line."""
