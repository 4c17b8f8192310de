"""Figures of Kernel-based just-in-time learning for passing EP messages (Jitkrittum et al. 2015) and its draft."""
