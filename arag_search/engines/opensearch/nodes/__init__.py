"""Local OpenSearch nodes without Docker: ``arag-search opensearch up``, and the nodes of tests.

``cluster.py`` starts, reports and stops the nodes, ``node.py`` is the process of each of them.
"""
