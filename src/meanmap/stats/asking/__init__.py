"""Questions about a table, written as a formula."""
