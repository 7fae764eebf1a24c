"""Parts of an index, in Lucene and in memory, against an index of only their passages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from tests.support.examples import examples, is_long, some_of
from tests.support.oracle.engine import LANGUAGE, MemoryEngine
from tests.support.parts import METADATA, check_random_parts


@pytest.mark.long
@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_part_in_memory_answers_as_an_index_of_its_passages_alone(seed: int) -> None:
    check_random_parts(lambda _, memory: memory, seed)


@pytest.mark.parametrize("seed", some_of(range(100, 100 + examples(20))))
def test_a_part_answers_as_an_index_of_its_passages_alone(tmp_path: Path, seed: int) -> None:
    def indexed(chunks: Sequence[Chunk], memory: MemoryEngine) -> LuceneEngine:
        writer = LuceneWriter(
            tmp_path, metadata=METADATA, language=LANGUAGE, sentences=True, resume=False
        )
        writer.add(chunks)
        writer.finish(replace(memory.manifest, engine="lucene"), {})
        return LuceneEngine.open(tmp_path, str(tmp_path))

    check_random_parts(indexed, seed, parts=3 if is_long() else 1)
