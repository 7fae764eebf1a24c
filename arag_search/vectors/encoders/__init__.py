"""Encoders: what turns texts into unit vectors. ``choose.open_encoder`` opens one by its name."""
