"""Converters from ordinary files (PDF, Word, HTML, tables, mail, ...) to documents."""
