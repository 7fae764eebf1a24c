"""Ablations: conditions measured on the same questions, compared and reported."""
