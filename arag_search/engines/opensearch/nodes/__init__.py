"""Local OpenSearch nodes without Docker: real processes, one a node, on loopback only.

For development and tests. ``cluster.py`` starts and ends them, ``node.py`` is what each runs.
"""
