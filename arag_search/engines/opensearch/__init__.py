"""The engine over an OpenSearch cluster: trees, hits, order and scores as on embedded Lucene."""
