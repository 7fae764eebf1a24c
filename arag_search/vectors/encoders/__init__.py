"""Encoders of texts as unit vectors. ``choose.open_encoder`` opens an encoder by its name."""
