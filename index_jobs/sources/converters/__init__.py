"""Converters: from people's files (PDF, Word, HTML, tables, mail, ...) to documents."""
