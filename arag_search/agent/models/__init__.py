"""ChatModel and its implementations."""
