"""Embedded Lucene: the engine for an index that is a folder on this machine."""
