"""OpenAI-compatible endpoints for chat models and encoders: addresses, retries, refusals."""
