"""Ablations: one thing varied at a time, over questions, with what may be said of it."""
