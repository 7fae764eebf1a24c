"""The texts of an index: passages, documents, lines, and the sentences to show."""
