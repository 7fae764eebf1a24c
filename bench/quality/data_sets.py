"""The data sets of a bench: a folder each with a corpus and questions.jsonl, and its kept index
and vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

from arag_search.engines.base import check_compact
from arag_search.errors import AragError
from arag_search.evaluation.bootstrap import SEED
from arag_search.questions.files import Question
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.progress import open_progress
from arag_search.vectors.base import Encoder
from bench.workbench import kept_index
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

SETS = ("2wikimultihopqa", "musique", "hotpotqa")


def drawn(questions: Sequence[Question], count: int | None, name: str) -> list[Question]:
    """Draw ``count`` of the questions, in their order and always the same ones for a name; return
    all if there are no more or ``count`` is None."""
    if count is None or count >= len(questions):
        return list(questions)
    chosen = Random(f"{SEED} {name}").sample(range(len(questions)), count)
    return [questions[number] for number in sorted(chosen)]


def open_kept(corpus: Path, work: Path, encoder: Encoder | str | None) -> Index:
    """Open the index of a corpus that is kept in ``work``, or build it there; with vectors of both
    units if an encoder is passed, by its name or open (it then stays open)."""
    return open_with_vectors(kept_index(corpus, work), work, encoder)


def open_with_vectors(location: Path, work: Path, encoder: Encoder | str | None) -> Index:
    """Open an index, with vectors that are kept in ``work`` if an encoder is passed; see
    ``open_kept``."""
    vectors: Path | None = None
    if encoder is not None:
        name = encoder if isinstance(encoder, str) else encoder.identity.name
        vectors = work / f"vectors-{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}"
        embed_index(
            location, encoder, EmbedOptions(vectors=vectors, sentence_titles=False), open_progress()
        )
    index = open_index(location, vectors=vectors, encoder=encoder, search_timeout_s=None)
    try:
        check_compact(index.engine.deletions(), str(location))
    except AragError:
        index.close()
        raise
    return index
