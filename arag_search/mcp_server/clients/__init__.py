"""The clients that people have, and how each is set up to start the server.

A client's own command adds the entry where there is one. Otherwise its file of settings is changed
as text, at one key, so that comments and foreign entries stay as they are.
"""
