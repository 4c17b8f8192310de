"""The engine: a graph, operators and own factors in; messages, beliefs and a report out. It knows no data."""
