"""What a query asks of an engine: operations, and the clauses that they come from."""
