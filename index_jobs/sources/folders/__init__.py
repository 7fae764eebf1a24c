"""Folders of files as a source: which files are read, and what is known of them."""
