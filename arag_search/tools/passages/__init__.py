"""The tools for passages: one module for each kind of search, and reading by id."""
