"""The tools of AgenticRAG for documents: search, find, open and summarize."""
