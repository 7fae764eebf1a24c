"""The operations that a query asks of an engine, and the clauses that they come from."""
