"""The advice of a reply beside its hits: each piece asks the index, and tells what it learns."""
