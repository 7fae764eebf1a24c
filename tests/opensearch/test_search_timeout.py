"""The limit on the time of a search, on a server."""

import pytest

from arag_search.engines.base import Deadline, Granularity, SearchRequest
from arag_search.errors import QueryTimeoutError
from arag_search.query.tree import Node, Phrase, Term, any_of
from tests.support.lucene_indexes import METADATA, chunk
from tests.support.opensearch_server import Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.plans import written


def test_opensearch_treats_a_query_out_of_time_as_an_error(opensearch_url: str) -> None:
    chunks = [chunk(n, "a w1 w2 w3 b a c b a b c " * 40) for n in range(6_000)]
    memory = MemoryEngine(chunks[:0], metadata=METADATA)
    server = Server(opensearch_url)
    engine = server.publish("slow", chunks, memory.manifest)
    try:
        heavy: Node = any_of(*(Phrase(f"c a b a b c w{n} a b " * 5, slop=20) for n in (1, 2, 3)))
        granularities: tuple[Granularity, ...] = ("chunk", "sentence")
        for granularity in granularities:
            request = SearchRequest(
                written(heavy), granularity=granularity, deadline=Deadline(0.001)
            )
            with pytest.raises(QueryTimeoutError):
                engine.search(request)
        quick = SearchRequest(written(Term("w1")), deadline=Deadline(30))
        assert engine.search(quick).total.number == 6_000
    finally:
        engine.close()
        server.clean()
