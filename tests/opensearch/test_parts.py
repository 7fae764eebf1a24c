"""Parts of indexes on a server, against indexes in memory of their passages alone."""

from collections.abc import Sequence

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchEngine
from arag_search.engines.memory.engine import MemoryEngine
from tests.support.examples import examples
from tests.support.opensearch_server import Server
from tests.support.parts import check_random_parts


@pytest.mark.parametrize("seed", range(200, 200 + examples(10)))
def test_a_part_answers_as_an_index_of_its_passages_alone(opensearch_url: str, seed: int) -> None:
    server = Server(opensearch_url)

    def indexed(chunks: Sequence[Chunk], memory: MemoryEngine) -> SearchEngine:
        return server.publish("parts", chunks, memory.manifest, 1 + seed % 2)

    try:
        check_random_parts(indexed, seed, parts=2)
    finally:
        server.clean()
