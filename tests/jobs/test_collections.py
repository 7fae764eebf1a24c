"""Passages of a published collection, in an index."""

from pathlib import Path

from arag_search.engines.lucene.location import hold_live
from arag_search.engines.lucene.reader import LuceneEngine
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import ROWS, table


def test_passages_of_a_table_are_neighbours_in_the_index() -> None:
    Path("p.tsv").write_text(table(ROWS))
    build_index(["p.tsv"], "index", BuildOptions())
    generation = hold_live(Path("index"))
    engine = LuceneEngine.open(generation.path, "index")
    try:
        chunks = list(engine.scan(None))
        assert [(chunk.id, chunk.part, chunk.parts) for chunk in chunks] == [
            ("1", 1, 1),
            ("2", 1, 1),
            ("3", 1, 1),
        ]
        assert engine.manifest.already_chunked
    finally:
        engine.close()
        generation.release()
