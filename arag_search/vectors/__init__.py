"""Sentence and passage vectors beside the inverted index: encoders, the sidecar, search."""
