"""The queries of recorded runs: as recorded, as words, and as keywords."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.evaluation.interfaces import words_query
from arag_search.plan.clauses import ResolvedPlan, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.runs.folder import read_records
from arag_search.search.asked import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from arag_search.search.index import Index
from bench import BenchError
from bench.scale.queries import CLASSES, drawn_queries


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query of a model, and the input of searches without operators. ``words`` are the words of
    all parts that are not excluded, in order. ``keywords`` are these parts themselves, phrases
    whole."""

    text: str
    words: tuple[str, ...]
    keywords: tuple[str, ...]

    @property
    def words_query(self) -> str:
        """The words as alternatives."""
        return words_query(" ".join(self.words))


def read_queries(folders: Iterable[Path], index: Index) -> list[RecordedQuery]:
    """Read the queries of all searches in run folders, as the index understands them, in their
    order. Queries that are refused or have no word are left out.

    Raises RunError for a folder without a run, BenchError if there is no query at all.
    """
    folders = list(folders)
    queries: list[RecordedQuery] = []
    for folder in folders:
        for record in read_records(folder).by_id.values():
            for step in record.trajectory:
                if step.tool_name != "logical_search" or step.status == "error":
                    continue
                with suppress(QueryError):  # of an index with other metadata
                    queries += recorded(str(step.tool_input["query"]), index)
    if not queries:
        raise BenchError(
            "No search is on record.",
            where=", ".join(map(str, folders)),
            allowed="runs of a preset with logical_search",
        )
    return queries


def recorded(text: str, index: Index) -> list[RecordedQuery]:
    """Return a query as the index understands it, or nothing if it has no word to search for.

    Raises QueryError if it is refused.
    """
    query = parse(text, index.manifest.query_schema)
    plan = ResolvedPlan(lower(query.tree, query.language))
    parts = [leaf.typed for leaf in wanted_leaves(plan.root) if leaf.is_text]
    words = tuple(word for part in parts for word in analysis.terms(part))[:MAX_LEAVES]
    keywords = [part for part in parts if len(part) <= MAX_KEYWORD_CHARACTERS][:MAX_KEYWORDS]
    return [RecordedQuery(text, words, tuple(keywords))] if words and keywords else []


def generated(index: Index, chunks: Sequence[Chunk], count: int, seed: int) -> list[RecordedQuery]:
    """Draw about ``count`` queries for passages from chunks, as many of each class, as though they
    were recorded. Raises BenchError if the chunks are too few."""
    classes = [name for name, of in CLASSES.items() if of.granularity == "chunk"]
    drawn = drawn_queries(chunks, -(-count // len(classes)), seed)
    return [query for name in classes for text in drawn[name] for query in recorded(text, index)]
