"""The searches: logical, by keywords and by vectors."""
