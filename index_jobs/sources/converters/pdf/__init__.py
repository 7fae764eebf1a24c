"""PDF files: their characters, pages and text."""
