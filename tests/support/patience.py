"""How long a test waits for another process or thread that has to do something."""

PATIENCE_S = 120.0
"""Seconds. What waits so long is broken, not slow: a laptop with other work may take ten times
what a quiet machine does."""
