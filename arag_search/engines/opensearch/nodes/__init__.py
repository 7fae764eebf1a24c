"""Local OpenSearch nodes without Docker: real processes, one per node, on loopback only.

For development and tests. ``cluster.py`` starts and stops them; ``node.py`` is the
program of a node.
"""
