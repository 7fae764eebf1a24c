"""The replies of tools: passages written as text, cut to tokens, and read again."""
