"""The queries of recorded runs: as recorded, as words, and as keywords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, cast

from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import changed_preset
from arag_search.agent.record import Record
from arag_search.corpus import Chunk
from arag_search.evaluation.interfaces import words_query
from arag_search.plan.clauses import ResolvedPlan, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.limits import MAX_LEAVES
from arag_search.query.problems import QueryError
from arag_search.query.reading import Operator
from arag_search.questions.files import Question
from arag_search.runs.folder import RunDescription, read_description, read_records
from arag_search.runs.run import run
from arag_search.search.index import Index
from arag_search.search.keywords import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from arag_search.tools.preset import Preset
from arag_search.tools.registry import TOOLS, QueryForm
from bench import BenchError
from bench.speed.queries import logical_queries

SEED = 1714
"""The seed of the choice of queries if there are more than wanted."""
_PROMPTS_BEFORE = {"logical_read": "arag"}
"""The prompts that presets had before they got one of their own."""


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query of a model: its text and plan, and the input of searches without operators.

    ``words`` are those of all parts that are not excluded, in order; ``keywords`` are these parts
    themselves, phrases whole.
    """

    text: str
    plan: ResolvedPlan
    words: tuple[str, ...]
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedQueries:
    """The queries of runs in the order of their records.

    ``counts`` has the number of searches by tool, how many of them were refused (these are left
    out, and so are those without a word), and how many of the queries differ. ``runs`` are the
    descriptions in the folders.
    """

    queries: Sequence[RecordedQuery]
    counts: Mapping[str, int]
    runs: Sequence[RunDescription]

    def some(self, count: int) -> RecordedQueries:
        """Draw ``count`` of the queries by a seed, in their order; all if there are no more."""
        if count >= len(self.queries):
            return self
        numbers = sorted(Random(SEED).sample(range(len(self.queries)), count))
        return RecordedQueries([self.queries[n] for n in numbers], self.counts, self.runs)


def with_replies_of_papers(preset: Preset) -> Preset:
    """Return a preset with the replies, descriptions and prompt of presets that reproduce a
    paper."""
    changes = {
        "reproduces": "A-RAG",
        "whole_up_to_tokens": 0,
        "relax": False,
        "prompt": _PROMPTS_BEFORE.get(preset.prompt, preset.prompt),
    }
    return changed_preset(preset, changes, preset.name)


def offline_run(index: Index, questions: Sequence[Question], preset: Preset, folder: Path) -> Path:
    """Let the offline model answer the questions into a run folder. Raises as ``run``."""
    run(index, questions, preset, OfflineModel(), folder)
    return folder


def read_queries(folders: Iterable[Path], index: Index) -> RecordedQueries:
    """Read the queries of all searches in the run folders, as the index understands them.

    Raises RunError for a folder without a run, BenchError if there is no query at all.
    """
    runs: list[RunDescription] = []
    queries: list[RecordedQuery] = []
    counts: Counter[str] = Counter()
    for folder in folders:
        runs.append(read_description(folder))
        for record in read_records(folder).by_id.values():
            queries += _of_record(record, index, counts)
    if not queries:
        raise BenchError(
            "No search is on record.",
            where=", ".join(run.questions or run.index for run in runs),
            allowed="runs of a preset that searches",
        )
    counts["queries"] = len(queries)
    counts["different queries"] = len({query.plan for query in queries})
    return RecordedQueries(queries, dict(counts), runs)


def recorded(text: str, index: Index, *, default_operator: Operator = "OR") -> RecordedQuery | None:
    """Return a query as the index understands it, or None if it has no word to search for.

    Raises QueryError for one that is refused.
    """
    query = index.parse(text, default_operator=default_operator)
    plan = ResolvedPlan(lower(query.tree, query.language))
    parts = [leaf.typed for leaf in wanted_leaves(plan.root) if leaf.is_text]
    words = tuple(word for part in parts for word in analysis.terms(part))
    keywords = [part for part in parts if len(part) <= MAX_KEYWORD_CHARACTERS]
    if not words or not keywords:
        return None
    shown = text if default_operator == "OR" else plan.root.text
    return RecordedQuery(shown, plan, words[:MAX_LEAVES], tuple(keywords[:MAX_KEYWORDS]))


def drawn_queries(index: Index, chunks: Sequence[Chunk], count: int) -> RecordedQueries:
    """Draw ``count`` logical queries from chunks, as though they were recorded, less those without
    a word. Raises BenchError if the chunks are too few."""
    drawn = (recorded(query.text, index) for query in logical_queries(chunks, count))
    return RecordedQueries([query for query in drawn if query is not None], {}, ())


def _of_record(record: Record, index: Index, counts: Counter[str]) -> Iterator[RecordedQuery]:
    for step in record.trajectory:
        tool = TOOLS.get(step.tool_name)
        if tool is None or tool.query_form is None:
            continue
        counts[step.tool_name] += 1
        query = None
        if step.status != "error":  # then the arguments were as the tool wants them
            arguments = {"query": "", **cast(dict[str, Any], step.tool_input)}
            form = tool.form_of(arguments) or tool.query_form
            operator = arguments.get("default_operator", "OR")
            with suppress(QueryError):  # of an index with other metadata
                text = _QUERIES[form](arguments)
                query = recorded(text, index, default_operator=operator)
        if query is None:
            counts["refused or without a word"] += 1
        else:
            yield query


def _quoted(keyword: str) -> str:
    return '"' + " ".join(keyword.replace("\\", " ").replace('"', " ").split()) + '"'


_QUERIES: Mapping[QueryForm, Callable[[Mapping[str, Any]], str]] = {
    "logical": lambda arguments: arguments["query"],
    "keywords": lambda arguments: " ".join(map(_quoted, arguments["keywords"])),
    "words": lambda arguments: words_query(arguments["query"]),
    "meaning": lambda arguments: words_query(arguments["query"]),
}
"""The functions that turn a tool's arguments into a logical query, by the form in which the tool
reads its query."""
