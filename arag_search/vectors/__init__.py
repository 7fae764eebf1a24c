"""Vectors of passages and sentences beside the inverted index: encoders, files, search."""
