"""Figures of Kernel belief propagation (Song, Gretton, Bickson, Low & Guestrin 2011)."""
