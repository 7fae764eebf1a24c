"""The counts of an index: words, fields, and the forms of a reply that count."""
