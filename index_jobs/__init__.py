"""Corpora to chunks to indexes: read as a stream, cut, counted and written, resumable."""
