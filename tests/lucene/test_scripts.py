"""Words of many scripts are found as people type them."""

from contextlib import closing
from pathlib import Path

from tests.support.lucene_indexes import build
from tests.support.oracle.engine import MemoryEngine
from tests.support.scripts import CHUNKS, assert_found


def test_words_of_every_script_are_found(tmp_path: Path) -> None:
    for engine in (build(tmp_path, CHUNKS), MemoryEngine(CHUNKS)):
        with closing(engine):
            assert_found(engine)
