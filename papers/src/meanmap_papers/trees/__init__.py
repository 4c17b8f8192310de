"""Figures of Nonparametric tree graphical models via kernel embeddings (Song, Gretton & Guestrin 2010)."""
