"""The query language: parsing text into a tree, printing the tree, and matching its words."""
