"""OpenAI-compatible endpoints, as chat models and encoders ask them: address, retries, refusals."""
