"""The engine over an OpenSearch cluster: the same trees, hits, order and scores as embedded Lucene."""
