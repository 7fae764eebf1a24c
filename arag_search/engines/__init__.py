"""Engines, which execute queries over an index: the seams, Lucene, OpenSearch, and plain Python."""
