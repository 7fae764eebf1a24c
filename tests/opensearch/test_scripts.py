"""OpenSearch finds words of many scripts as Lucene does."""

from contextlib import closing

from tests.support.opensearch_server import Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.scripts import CHUNKS, assert_found


def test_words_of_every_script_are_found(opensearch_url: str) -> None:
    server = Server(opensearch_url)
    try:
        engine = server.publish("scripts", CHUNKS, MemoryEngine(CHUNKS).manifest)
        with closing(engine):
            assert_found(engine)
    finally:
        server.clean()
