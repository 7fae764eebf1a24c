"""search: the tool of AgenticRAG that finds documents with several queries at once (section
3.3). A document in its reply has a reference, its metadata, and pieces of its text with their line
numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Annotated, NamedTuple

from pydantic import Field

from arag_search.corpus import nfc, split_at
from arag_search.engines.hits import Hit
from arag_search.query.filters import parse_filter
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.problems import QueryError
from arag_search.search.asked import OPTIONS
from arag_search.search.finding.by_vectors import fuse, words_query
from arag_search.search.index import Index
from arag_search.search.reading.lines import DocumentLines
from arag_search.search.reading.snippets import MAX_SENTENCES, sentences_with
from arag_search.search.results import SearchResult
from arag_search.system.progress import counted
from arag_search.tokens import count_up_to, cut_to
from arag_search.tools.conversation import Reference, ShownReference
from arag_search.tools.documents.lines import reference_line, vector_units
from arag_search.tools.preset import PLAIN, Preset, SearchBackend
from arag_search.tools.replies.block import (
    SHOWN_BEFORE,
    Block,
    Paragraph,
    checksum,
    retrieved_tokens,
)
from arag_search.tools.replies.fit import fit
from arag_search.tools.replies.spans import metadata_text
from arag_search.tools.replies.writing import shown_title
from arag_search.tools.tool import Arguments, Mistake, ReadSet, Tool, ToolResult
from arag_search.vectors.base import VectorUnit

_LONG_TOKENS = 100
"""A longer sentence, such as a table, is shown by its lines with most words of the query."""
_GAP = "... "


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A passage of a document in a reply, of so many ``sentences``. ``lines`` is None if the
    document has changed since the search; then offsets begin at the passage, not at the document.
    """

    id: str
    sentences: int
    lines: DocumentLines | None
    start: int
    number: str

    def paragraph(self, units: Sequence[Unit]) -> Paragraph:
        """Return units of the passage with the numbers of the lines that they are in."""
        label, lines = self.number, None
        if self.lines is not None:
            first = self.lines.line_at(units[0].start)
            last = self.lines.line_at(max(units[-1].end - 1, 0))
            lines = self.lines.place(first)[0], self.lines.place(last)[0]
            label = f"line{'s' * (first != last)} {self.lines.name(first, last)}"
        numbers = tuple(dict.fromkeys(unit.number + 1 for unit in units))
        is_whole = len(numbers) == self.sentences and all(unit.is_whole for unit in units)
        return Paragraph(self.id, _text(self, units), numbers, is_whole, f"{label}: ", lines)


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence of a passage, or a line of a long one. It has its ``number`` in the passage (from
    0) and its offsets in the document. ``is_seen`` is whether it was shown before."""

    part: Part
    number: int
    start: int
    end: int
    text: str
    is_whole: bool
    is_seen: bool


def units_of(
    lines: DocumentLines,
    hit: Hit,
    query: str,
    language: str,
    *,
    short: bool,
    seen: Collection[int],
) -> list[Unit]:
    """Return what to show of a hit: its snippet or, if ``short``, one sentence of it. ``seen`` are
    the checksums of sentences that were shown before."""
    sentences = split_at(hit.content, hit.sentence_ends)
    chosen = list(hit.sentences)
    most = 1 if short else MAX_SENTENCES
    if len(chosen) > most:
        best = sentences_with(query, hit.content, hit.sentence_ends, language)
        chosen = [number for number in best if number in chosen][:most] or chosen[:most]
    start, known = lines.start_of(hit.id), lines
    if start is None or not lines.text.startswith(hit.content, start):
        start, known = 0, None
    part = Part(hit.id, len(sentences), known, start, f"part {hit.part} of {hit.parts}")
    units: list[Unit] = []
    for number in chosen:
        begin = start + (hit.sentence_ends[number - 1] if number else 0)
        units += _units(part, query, language, number, sentences[number], begin, seen)
    return units


def _units(
    part: Part,
    query: str,
    language: str,
    number: int,
    sentence: str,
    begin: int,
    seen: Collection[int],
) -> list[Unit]:
    is_seen, lines = checksum(sentence) in seen, part.lines
    start = begin + len(sentence) - len(sentence.lstrip())
    end = start + len(sentence.strip())
    if lines is None or end <= start or count_up_to(sentence, _LONG_TOKENS) is not None:
        return [Unit(part, number, start, end, sentence.strip(), True, is_seen)]
    first, last = lines.lines_between(start, end)
    places = [
        (max(lines.starts[at], start), min(lines.ends[at], end)) for at in range(first, last + 1)
    ]
    texts = [lines.text[line_start:line_end] for line_start, line_end in places]
    ends = tuple(accumulate(len(text) + 1 for text in texts))
    best = sentences_with(query, "\n".join([*texts, ""]), ends, language)
    is_whole = len(texts) == 1
    return [Unit(part, number, *places[at], texts[at].strip(), is_whole, is_seen) for at in best]


class ShownDocument(NamedTuple):
    """A document in a reply, with what may be shown of its passages. Its header has two lines, and
    each passage is a paragraph."""

    reference: Reference
    about: str
    units: Sequence[Unit]

    def block(self, *, hides: bool) -> Block:
        """Return the block with all units. With ``hides``, leave out the units that were shown
        before."""
        shown = [at for at, unit in enumerate(self.units) if not (hides and unit.is_seen)]
        left_out = "shown" if self.units and not shown else None
        name = reference_line(self.reference) + (f" ({SHOWN_BEFORE})" if left_out else "")
        return Block(
            self.reference.id,
            self.reference.title,
            f"{name}\n{self.about}",
            [unit.text for unit in self.units],
            shown,
            self._paragraphs,
            retrieved_title=shown_title(self.reference.title),
            left_out=left_out,
            reference=self.reference.id,
        )

    def passages(self, block: Block) -> tuple[str, ...]:
        """Return the ids of the passages of which anything is shown, or was before."""
        numbers = range(len(self.units)) if block.left_out == "shown" else block.shown
        return tuple(dict.fromkeys(self.units[number].part.id for number in numbers))

    def note_seen(self, block: Block, read_set: ReadSet) -> None:
        """Record the sentences that are shown whole."""
        for number in block.shown if block.cut is None else ():
            unit = self.units[number]
            if unit.is_whole:
                read_set.note(unit.part.id, [checksum(unit.text)])

    def _paragraphs(self, block: Block) -> list[Paragraph]:
        units = [self.units[number] for number in block.shown]
        return [part.paragraph(list(own)) for part, own in groupby(units, attrgetter("part"))]


def _text(part: Part, units: Sequence[Unit]) -> str:
    text, expected = "", part.start
    for unit in units:
        if unit.start > expected + 2:  # more than blanks between
            text += f" {_GAP}" if text else _GAP
        elif text:
            text += " "
        text += " ".join(unit.text.split())
        expected = unit.end
    return text


MAX_QUERIES = 5
PASSAGES_A_DOCUMENT = 3
"""The best passage of a document, and up to two further ones."""
_FETCHED = 5  # passages asked for, per document wanted, where a search cannot bound them itself
_SHARE_OF_QUERIES = 4  # the queries take at most a quarter of a reply
_MAX_METADATA_TOKENS = 80
_FILE_FIELDS = ("file", "type")
GO_DEEPER = "Go deeper: find with patterns, open with line_number."
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class DocumentSearchArguments(Arguments):
    """The arguments of search."""

    queries: list[QueryText] = Field(
        min_length=1,
        max_length=MAX_QUERIES,
        description="One to five wordings of what is needed, or several needs, each a query.",
    )
    filter: str = Field("", description=OPTIONS["filter"].says)


class SingleSearchArguments(Arguments):
    """The arguments of search without several queries (section 5.5)."""

    query: str = Field(min_length=1, max_length=MAX_CHARACTERS, description="What is needed.")
    filter: str = Field("", description=OPTIONS["filter"].says)


@dataclass(slots=True)
class _Found:
    """A document that was found. ``place`` is its position in the order of discovery. Each of its
    best passages (``hits``) has the query that found it; queries are numbered from 0."""

    place: int
    doc_id: str
    title: str
    hits: list[Hit] = field(default_factory=list[Hit])
    texts: list[str] = field(default_factory=list[str])
    queries: list[int] = field(default_factory=list[int])

    def note(self, hit: Hit, query: int, text: str) -> None:
        """Note a passage that a query has found."""
        if query not in self.queries:
            self.queries.append(query)
        known = {other.id for other in self.hits}
        if len(known) < PASSAGES_A_DOCUMENT and hit.id not in known:
            self.hits.append(hit)
            self.texts.append(text)


class DocumentSearch(Tool):
    """A search for documents. It merges the rankings of its queries by reciprocal rank fusion (K =
    60). Equal scores are ordered by the first query that found them, then by rank.

    Sentences that are still visible are not shown again.
    """

    name = "search"
    arguments = DocumentSearchArguments

    results_per_query: int = 10
    """The documents that each query may add."""
    vectors: VectorUnit = "passage"
    """The unit of the vectors to search by, if the index has it."""
    advice: str = GO_DEEPER

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        if not preset.multi_query:
            self.arguments = SingleSearchArguments
        self.backend: SearchBackend = preset.search_backend
        if self.backend == "auto":
            self.backend = "hybrid" if vector_units(index) else "words"
        super().__init__(index, preset)

    def _features(self) -> dict[str, bool]:
        return {
            "several": self.preset.multi_query,
            "logical": self.backend == "logical",
            "meaning": self.backend in ("hybrid", "semantic"),
        }

    def _description(self) -> str:
        return super()._description().replace("<results_per_query>", str(self.results_per_query))

    def _call(
        self, arguments: DocumentSearchArguments | SingleSearchArguments, read_set: ReadSet
    ) -> ToolResult:
        filter = arguments.filter.strip() or None
        if filter is not None:
            parse_filter(filter, self.index.manifest.query_schema)
        is_one = isinstance(arguments, SingleSearchArguments)
        queries, notes = distinct_queries([arguments.query] if is_one else arguments.queries)
        if len(queries) > 1 and self.index.engine.is_remote:  # which answers all at the same time
            with ThreadPoolExecutor(len(queries)) as pool:
                begun = [
                    pool.submit(copy_context().run, self._searched, query, filter)
                    for query in queries
                ]
            results = [search.result() for search in begun]
        else:
            results = [self._searched(query, filter) for query in queries]
        if all(isinstance(result, QueryError) for result in results):
            raise Mistake("\n".join(map(str, results)))
        documents = self._fused(queries, results)
        return self._reply(queries, results, documents, notes, read_set)

    def _searched(self, query: str, filter: str | None) -> SearchResult | QueryError:
        index, wanted = self.index, self.results_per_query
        try:
            if self.backend == "logical":
                return index.logical_search(
                    query,
                    top_k=PASSAGES_A_DOCUMENT * wanted,
                    per_document=PASSAGES_A_DOCUMENT,
                    filter=filter,
                    as_written=self.preset.reproduces is not None,
                )
            if self.backend == "words":
                words, _ = words_query(nfc(query))
                return index.logical_search(
                    '""' if words is None else str(words),
                    top_k=PASSAGES_A_DOCUMENT * wanted,
                    per_document=PASSAGES_A_DOCUMENT,
                    filter=filter,
                    feedback=False,
                    as_written=True,  # they are no logical query
                )
            if self.backend == "hybrid":
                return index.hybrid_search(
                    query,
                    top_k=_FETCHED * wanted,
                    filter=filter,
                    vectors=self._unit(),
                    full_text=True,
                )
            by_sentence = self._unit() == "sentence"
            by_meaning = index.semantic_search if by_sentence else index.naive_embedding_search
            return by_meaning(query, top_k=_FETCHED * wanted, filter=filter)
        except QueryError as error:
            return error

    def _unit(self) -> VectorUnit:
        units = vector_units(self.index)
        if self.vectors in units or not units:
            return self.vectors
        return "sentence" if self.vectors == "passage" else "passage"

    def _fused(
        self, queries: Sequence[str], results: Sequence[SearchResult | QueryError]
    ) -> list[_Found]:
        by_id: dict[str, _Found] = {}
        rankings: list[list[int]] = []
        for number, result in enumerate(results):
            ranking: dict[str, int] = {}
            for hit in result.hits if isinstance(result, SearchResult) else ():
                if hit.doc_id not in ranking and len(ranking) == self.results_per_query:
                    continue
                document = by_id.setdefault(hit.doc_id, _Found(len(by_id), hit.doc_id, hit.title))
                ranking[hit.doc_id] = document.place
                document.note(hit, number, queries[number])
            rankings.append(list(ranking.values()))
        documents = list(by_id.values())
        return [documents[item.ordinal] for item in fuse(*rankings)]

    def _reply(
        self,
        queries: Sequence[str],
        results: Sequence[SearchResult | QueryError],
        documents: Sequence[_Found],
        notes: Sequence[str],
        read_set: ReadSet,
    ) -> ToolResult:
        search = read_set.references.begin_search()
        share = self.max_result_tokens // _SHARE_OF_QUERIES // len(queries)
        head = _lines_on_queries(results, self.results_per_query, share)
        head += [f"Note: {note}" for note in notes]
        if not documents:
            text = cut_to("\n".join([_none(results), *head]), self.max_result_tokens)
            return ToolResult(text, "empty", total=0, is_absent=True)
        known = {reference.doc_id for reference in read_set.references}
        seen = sum(document.doc_id in known for document in documents)
        first = _summary(results, documents, seen)
        shown_documents = self._shown(documents, len(queries), search, read_set)
        by_id = {document.reference.id: document for document in shown_documents}
        blocks = [document.block(hides=read_set.is_kept) for document in shown_documents]

        def frame(_: Sequence[Block]) -> tuple[str, str]:
            return "\n".join([first, *head]), self.advice

        fitted = fit(frame, blocks, self.max_result_tokens)
        shown: list[ShownReference] = []
        for block in fitted.blocks:
            document = by_id[block.id]
            passages = document.passages(block)
            document.reference.note(passages)
            shown.append(ShownReference(block.id, document.reference.doc_id, passages))
            document.note_seen(block, read_set)
        return ToolResult(
            text=fitted.text,
            status="ok" if shown else "empty",
            ids=tuple(dict.fromkeys(id for document in shown for id in document.passages)),
            retrieved_tokens=retrieved_tokens(fitted.blocks),
            passages=fitted.spans,
            references=tuple(shown),
        )

    def _shown(
        self, documents: Sequence[_Found], queries: int, search: int, read_set: ReadSet
    ) -> list[ShownDocument]:
        language = self.index.manifest.language
        all_lines = self.index.document_lines([document.doc_id for document in documents])
        shown: list[ShownDocument] = []
        for document, lines in zip(documents, all_lines, strict=True):
            if lines is None:  # deleted since it was found
                continue
            reference = read_set.references.of_document(document.doc_id, document.title, search)
            units: list[Unit] = []
            for at, (hit, text) in enumerate(zip(document.hits, document.texts, strict=True)):
                seen = read_set.seen.get(hit.id, ())
                units += units_of(lines, hit, text, language, short=at > 0, seen=seen)
            by = [number + 1 for number in document.queries] if queries > 1 else []
            shown.append(ShownDocument(reference, _about(lines, by), units))
        return shown


def distinct_queries(queries: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return queries that differ by more than case and white space, with a note on the others."""
    kept: dict[str, str] = {}
    for query in queries:
        kept.setdefault(" ".join(nfc(query).casefold().split()), query)
    same = len(queries) - len(kept)
    if not same:
        return list(kept.values()), []
    return list(kept.values()), [f"{same} of {len(queries)} queries repeat another one."]


def _lines_on_queries(
    results: Sequence[SearchResult | QueryError], most: int, max_tokens: int
) -> list[str]:
    """Return one line with a sentence about each query that ran, then a line for each query that
    found nothing or did not run. A query or an error is cut to ``max_tokens``."""
    ran: list[str] = []
    others: list[str] = []
    for number, result in enumerate(results, 1):
        if isinstance(result, QueryError):
            others.append(f"{number}: {cut_to(str(result), max_tokens)}")
            continue
        documents = min(len({hit.doc_id for hit in result.hits}), most)
        ran.append(f"{number}: {documents} for {cut_to(result.understood, max_tokens)}.")
        if result.feedback is not None:
            others.append(f"{number}: {cut_to(result.feedback.line(), max_tokens)}")
    return [" ".join(ran), *others] if ran else others


def _summary(
    results: Sequence[SearchResult | QueryError], documents: Sequence[_Found], seen: int
) -> str:
    several = sum(len(document.queries) > 1 for document in documents)
    details: list[str] = []
    if several:
        by = "both" if len(results) == 2 else "several"
        details.append(f"{several} found by {by}")
    if seen:
        details.append(f"{seen} seen before")
    note = f" ({', '.join(details)})" if details else ""
    queries = counted(len(results), "query", "queries")
    return f"{queries}, {counted(len(documents), 'document')}{note}."


def _none(results: Sequence[SearchResult | QueryError]) -> str:
    if len(results) == 1:
        return "No document matches the query."
    return f"No document matches any of the {len(results)} queries."


def _about(lines: DocumentLines, queries: Sequence[int]) -> str:
    fields = dict(lines.metadata)
    first = {name: fields.pop(name) for name in _FILE_FIELDS if name in fields}
    texts = [
        metadata_text(first),
        f"lines: {lines.count}",
        metadata_text(fields),
        f"queries: {', '.join(map(str, queries))}" if queries else "",
    ]
    return f"({cut_to('; '.join(text for text in texts if text), _MAX_METADATA_TOKENS)})"
