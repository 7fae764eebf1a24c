"""The clients to which ``arag-search install`` adds the server: by their own commands, or in their
files of settings."""
