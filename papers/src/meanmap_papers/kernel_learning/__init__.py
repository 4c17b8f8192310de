"""Figures of Bayesian learning of kernel embeddings (Flaxman, Sejdinovic, Cunningham & Filippi 2016)."""
