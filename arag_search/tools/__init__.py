"""What a language model may call: one module a tool, one result type."""
