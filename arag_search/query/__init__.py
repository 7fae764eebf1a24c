"""The query language: from text to a tree, and the words that both sides of a match see."""
