"""The tools that a language model may call: one module per tool, one result type."""
