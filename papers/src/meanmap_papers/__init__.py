"""The figures of the papers: what each claims, how it is run, what is drawn."""

__version__ = "0.1.0"
