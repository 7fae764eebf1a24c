"""Parts of indexes, compared with indexes of the passages that their filters admit and no others.

The order of passages by BM25, and the scores, may differ, since their statistics are those of the
whole index. Everything else has to be the same, and nothing may show what is hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchEngine
from arag_search.errors import AragError
from arag_search.mcp_server.addresses import read_address
from arag_search.query.fields import MetadataType
from arag_search.search.advice.relaxing import MAX_NEAREST
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.conversation import References
from arag_search.tools.preset import SearchBackend
from arag_search.tools.preset_files import changed_preset, load_preset
from arag_search.tools.replies.pointers import PASSAGES, POINTED
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import tools_of
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.opening import VectorSource
from tests.support.long_documents import long_document
from tests.support.mcp_servers import live_indexes
from tests.support.oracle.engine import MemoryEngine
from tests.support.oracle.vectors import MemoryVectors

METADATA: dict[str, MetadataType] = {
    "acl": "keyword", "deny": "keyword", "owner": "keyword", "year": "number", "on": "date"
}  # fmt: skip
LOCATION = "the index"
PRINCIPALS = ("everyone", "hr", "sales", "alice", "bob")
NAMES = ("Opera House", "Winter Garden", "Venice")
"""Titles of some documents, which other texts name."""
WORDS = ("opera", "venice", "libretto", "season", "winter", "poet", "bridge", "born")
_TOOLS = [
    "logical_search", "keyword_search", "semantic_search", "hybrid_search",
    "naive_embedding_search", "chunk_read",
]  # fmt: skip
_BACKENDS: tuple[SearchBackend, ...] = ("words", "logical", "semantic", "hybrid")
_EXACT = {"keyword_search", "semantic_search", "naive_embedding_search", "chunk_read"}


def mark_of(number: int) -> str:
    """Return a word that stands in one document only: in its id, its title unless that is one of
    NAMES, its text, and as the value of a field."""
    return f"q{number:02d}zx"


def year_of(number: int) -> int:
    return 7_100 + 13 * number


def guarded_corpus(random: Random) -> list[list[Chunk]]:
    """Return documents of one to three passages, 20 at most, each with a random list of who may
    read it; some have no list, and some deny a principal."""
    titled, longest = random.random() < 0.8, random.choice((1, 2, 3))
    corpus: list[list[Chunk]] = []
    for number in range(20 // longest):
        mark = mark_of(number)
        lines = [
            f"{' '.join(random.choices(WORDS, k=random.choice((2, 4, 7))))} {mark}{name}"
            for _ in range(random.randint(1, longest))
            for name in [random.choice(("", f" of the {random.choice(NAMES)}."))]
        ]
        metadata: dict[str, Any] = {
            "owner": f"owner-{mark}",
            "year": year_of(number),
            "on": f"{year_of(number)}-05-31",
        }
        if random.random() < 0.9:
            metadata["acl"] = tuple(random.sample(PRINCIPALS, random.choice((1, 1, 2, 3))))
        if random.random() < 0.2:
            metadata["deny"] = random.choice(PRINCIPALS[1:])
        title = f"The {random.choice(WORDS)} {mark}" if titled and random.random() < 0.8 else ""
        if random.random() < 0.2:
            title = random.choice(NAMES)
        text = "\n".join(lines)
        corpus.append(long_document(number, f"doc-{mark}", title, text, passage=1, **metadata))
    return corpus


def access_of(random: Random) -> tuple[str, Callable[[Chunk], bool]]:
    """Return a filter for some principals, and which passages it admits."""
    principals = random.sample(PRINCIPALS, random.choice((1, 1, 2, 3)))
    denied = random.choice((None, *PRINCIPALS[1:]))
    filter = f"acl:({' OR '.join(principals)})" if len(principals) > 1 else f"acl:{principals[0]}"

    def admits(chunk: Chunk) -> bool:
        allowed: Any = chunk.metadata.get("acl", ())
        return not set(principals).isdisjoint(allowed) and (
            denied is None or chunk.metadata.get("deny") != denied
        )

    return (filter if denied is None else f"{filter} NOT deny:{denied}"), admits


def vectors_of(chunks: Sequence[Chunk]) -> VectorSource:
    encoder = HashingEncoder()
    return VectorSource.of(MemoryVectors(chunks, encoder), encoder)


@dataclass(slots=True)
class Part:
    """A part of an index, and the index of its passages alone. ``hidden`` are the numbers of the
    documents that are not in it, ``ids`` the ids of all passages, ``offsets`` those of pages of
    searches by vectors that have no deleted passages."""

    part: Index
    alone: Index
    hidden: list[int]
    ids: list[str]
    doc_ids: list[str]
    offsets: tuple[int, ...]

    def check(self, random: Random) -> None:
        """Compare all that the two indexes answer."""
        self.check_reading()
        self.check_searches(random)
        self.check_tools(random)
        self.check_document_tools(random)
        self.check_server()

    def check_reading(self) -> None:
        part, alone = self.part, self.alone
        assert list(part.scan()) == list(alone.scan())
        assert list(part.documents()) == list(alone.documents())
        assert part.read(self.ids) == alone.read(self.ids)
        assert part.document_lines(self.doc_ids) == alone.document_lines(self.doc_ids)
        for id in self.ids:
            for filter in (None, "year:>7200"):
                self.same(lambda index, id=id, filter=filter: index.chunk_read([id], filter=filter))
        for doc_id in self.doc_ids:
            for asked in (doc_id, f"{doc_id[:-1]}y"):
                self.same(lambda index, asked=asked: index.document_read(asked))
        for names in ((), ("owner", "year"), ("doc_id",), ("acl",)):
            assert part.fields(*names) == alone.fields(*names)
        assert part.metadata_fields == alone.metadata_fields
        assert part.contents == alone.contents

    def same(self, call: Callable[[Index], object]) -> None:
        """Check that a call returns or raises the same on both indexes."""
        assert _answer(call, self.part) == _answer(call, self.alone)

    def check_searches(self, random: Random) -> None:
        part, alone = self.part, self.alone
        for query in self.queries(random):
            for options in ({}, {"sort": "year:desc"}, {"per_document": 1}):
                self.compare(
                    lambda index, query=query, options=options: index.logical_search(
                        query, top_k=1000, explain=True, relax=True, branches=True, **options
                    ),
                    query,
                )
            self.compare(
                lambda index, query=query: index.logical_search(
                    query, granularity="sentence", top_k=1000, relax=True
                ),
                query,
            )
        for words in (random.choice(WORDS), mark_of(random.choice(self.hidden or [0]))):
            for search, exact in (
                (Index.semantic_search, True),
                (Index.naive_embedding_search, True),
                (Index.hybrid_search, False),
            ):
                for offset in self.offsets if exact else (0,):
                    self.compare(
                        lambda index, search=search, words=words, offset=offset: search(
                            index, f"The Poet {words}", top_k=100, offset=offset, names=True
                        ),
                        words,
                        exact=exact,
                    )
            query = f"{words} poet"
            near = part.nearest_sentences(query, 1000)
            assert near == alone.nearest_sentences(query, 1000)

        word, mark = random.choice(WORDS), mark_of(random.choice(self.hidden or [0]))
        counted = (word, f"{word[:3]}*", f"{mark}~1", mark, f"{word[:-1]}x", f"{word} AND poet")
        for filter in (None, "year:>7200"):
            assert part.words(*counted, filter=filter) == alone.words(*counted, filter=filter)

    def queries(self, random: Random) -> list[str]:
        """Return logical queries; some match nothing, and some name what is hidden."""
        first, second, third = random.sample(WORDS, 3)
        mark = mark_of(random.choice(self.hidden or [0]))
        year = year_of(random.choice(self.hidden or [0]))
        return [
            first,
            f"{first} OR {second}",
            f'"{first} {second}" OR "{third} {first}" OR title:{second}',
            f"{first} AND {second} AND {third} AND nowhere",
            f"title:{mark} AND {first}",
            f"{mark} OR {first}",
            f"owner:owner-{mark[:-1]} AND {first}",
            f"year:{year} AND {first}",
            "the AND of",
            f"{first} NOT {mark}",
        ]

    def compare(
        self, search: Callable[[Index], SearchResult], query: str, *, exact: bool = False
    ) -> None:
        """Compare the results of a search; ``exact`` if their order does not depend on BM25."""
        result, expected = search(self.part), search(self.alone)
        hits = [replace_scores(hit) for hit in result.hits]
        wanted = [replace_scores(hit) for hit in expected.hits]
        if exact:
            assert result.hits == expected.hits
        elif result.per_document:  # the best passage of a document
            assert {hit.doc_id for hit in hits} == {hit.doc_id for hit in wanted}
        else:
            assert sorted(hits, key=str) == sorted(wanted, key=str)
        if result.sort:  # passages of a document, which have the same value, are in order of score
            assert [hit.doc_id for hit in hits] == [hit.doc_id for hit in wanted]
        notes, wanted_notes = (  # which passage is the best of several depends on BM25
            [re.sub(r"\[[^]]*\]", "[]", note) for note in of.notes] for of in (result, expected)
        )
        assert notes == wanted_notes
        assert (result.total, result.total_is_exact, result.passages) == (
            expected.total,
            expected.total_is_exact,
            expected.passages,
        )
        assert str(result.feedback) == str(expected.feedback)
        assert result.branches == expected.branches
        assert len(result.nearest) == len(expected.nearest)
        if len(expected.nearest) < MAX_NEAREST:
            assert {(near.id, near.lacks) for near in result.nearest} == {
                (near.id, near.lacks) for near in expected.nearest
            }
        self.hides(str(result.to_dict()), query)

    def check_tools(self, random: Random) -> None:
        """Compare the replies of tools for passages."""
        mark = mark_of(random.choice(self.hidden or [0]))
        word = random.choice(WORDS)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("keyword_search", {"keywords": [word, mark, "poet"], "top_k": 20}),
            ("semantic_search", {"query": f"Who is {mark} {word}?", "top_k": 20}),
            ("naive_embedding_search", {"query": f"{word} of Venice", "top_k": 20}),
            ("hybrid_search", {"query": f"{word} {mark}", "max_results": 20}),
            *(("logical_search", {"query": query, "top_k": 20}) for query in self.queries(random)),
            ("logical_search", {"query": word, "sort": "year:asc", "top_k": 20}),
            ("logical_search", {"query": word, "show": "titles"}),
            *(("chunk_read", {"chunk_ids": [id]}) for id in self.ids),
            ("chunk_read", {"chunk_ids": random.sample(self.ids, min(len(self.ids), 20))}),
        ]
        for name in ("logical_read", "arag_full"):
            changes = {"tools": _TOOLS, "loop_guards": name == "logical_read"}
            preset = changed_preset(load_preset(name), changes, "test")
            tools, wanted = tools_of(preset, self.part), tools_of(preset, self.alone)
            for tool in _TOOLS:
                assert tools[tool].description == wanted[tool].description
                assert tools[tool].parameters == wanted[tool].parameters
            seen, seen_alone = ReadSet(), ReadSet()
            for tool, arguments in calls:
                if name == "arag_full" and not arguments.keys().isdisjoint(("sort", "show")):
                    continue
                reply = tools[tool].run(arguments, seen)
                expected = wanted[tool].run(arguments, seen_alone)
                assert _counts(reply) == _counts(expected), (tool, arguments)
                few = {name: 2 if name == "top_k" else arguments[name] for name in arguments}
                again = [own[tool].run(few, ReadSet()) for own in (tools, wanted)]
                pointed, wanted_pointers = map(_pointed, again)
                if pointed[0] == wanted_pointers[0]:
                    assert pointed == wanted_pointers, arguments
                if tool in _EXACT:
                    assert (reply.text, reply.ids) == (expected.text, expected.ids)
                self.hides(f"{reply.text} {reply.ids} {reply.references}", arguments)

    def check_document_tools(self, random: Random) -> None:
        """Compare the replies of search, find and open."""
        mark = mark_of(random.choice(self.hidden or [0]))
        words = random.sample(WORDS, 2)
        for backend in _BACKENDS:
            preset = load_preset("agentic_rag")
            preset = changed_preset(preset, {"search_backend": backend}, "test")
            tools, wanted = tools_of(preset, self.part), tools_of(preset, self.alone)
            seen, seen_alone = ReadSet(), ReadSet()
            for arguments in (
                {"queries": words},
                {"queries": [f"{words[0]} {mark}", "poet"], "filter": "year:>7200"},
                {"queries": [" AND ".join((*words, mark))], "filter": "year:>7200"},
            ):
                reply = tools["search"].run(arguments, seen)
                expected = wanted["search"].run(arguments, seen_alone)
                assert _counts(reply) == _counts(expected)
                assert _heads(reply) == _heads(expected)
                assert sorted(shown.doc_id for shown in reply.references) == sorted(
                    shown.doc_id for shown in expected.references
                )
                if backend == "semantic":
                    assert reply.text == expected.text
                self.hides(reply.text, arguments)
            for name, more in (
                ("open", {}),
                ("open", {"line_number": 1}),
                ("find", {"patterns": [*words, mark, "zx"]}),
                ("find", {"patterns": words, "mode": "semantic"}),
            ):
                for doc_id in self.doc_ids:
                    replies = [
                        _of_document(own[name].run({**more, "reference_id": id}, read_set), id)
                        for own, read_set in ((tools, seen), (wanted, seen_alone))
                        for id in [named(read_set.references, doc_id)]
                    ]
                    assert replies[0] == replies[1]
                    self.hides(str(replies[0]), [doc_id, more])

    def check_server(self) -> None:
        """Compare what a server offers, the texts at addresses, and what connectors fetch."""
        served, alone = (live_indexes({"i": index}) for index in (self.part, self.alone))
        assert served.offered() == alone.offered()
        for address in (
            *(f"arag://i/chunk/{id}" for id in [*self.ids, "never.1"]),
            *(f"arag://i/document/{doc_id}" for doc_id in [*self.doc_ids, "never"]),
        ):
            texts = [
                _answer(lambda index, address=address: read_address(address, {"i": index}), own)
                for own in (self.part, self.alone)
            ]
            assert texts[0] == texts[1]
        fetches = [tools_of(load_preset("connector"), own) for own in (self.part, self.alone)]
        for id in [*self.ids, *self.doc_ids]:
            texts = [tools["connector_fetch"].run({"id": id}).text for tools in fetches]
            assert texts[0] == texts[1]

    def hides(self, text: str, asked: object) -> None:
        """Check that a text names nothing hidden but what was asked for."""
        question = json.dumps(asked)
        for number in self.hidden:
            for secret in (mark_of(number), str(year_of(number))):
                is_shown = re.search(rf"(?<![\d.]){secret}(?!\d)", text)
                assert secret in question or not is_shown, (secret, asked)


def part_of(
    whole: Index, documents: Sequence[Sequence[Chunk]], random: Random, offsets: tuple[int, ...]
) -> Part:
    """Return a random part of an index of the documents."""
    about = whole.manifest
    filter, admits = access_of(random)
    chunks = [chunk for document in documents for chunk in document]
    inside = [chunk for chunk in chunks if admits(chunk)]
    engine = MemoryEngine(inside, metadata=about.metadata, already_chunked=about.already_chunked)
    alone = Index(engine, LOCATION, vectors=vectors_of(inside))
    hidden = [n for n, document in enumerate(documents) if not admits(document[0])]
    doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
    return Part(
        whole.within(filter), alone, hidden, [chunk.id for chunk in chunks], doc_ids, offsets
    )


def check_random_parts(
    open_engine: Callable[[Sequence[Chunk], MemoryEngine], SearchEngine], seed: int, parts: int = 3
) -> None:
    """Check random parts of an index of random documents. ``open_engine`` indexes passages, as an
    engine in memory holds them. Its vectors may have passages that were deleted since."""
    random = Random(seed)
    corpus, deleted = guarded_corpus(random), random.choice((0, 2))
    already_chunked = random.random() < 0.3
    live = corpus[: len(corpus) - deleted]
    chunks = [chunk for document in live for chunk in document]
    memory = MemoryEngine(chunks, metadata=METADATA, already_chunked=already_chunked)
    every = [chunk for document in corpus for chunk in document]
    whole = Index(open_engine(chunks, memory), LOCATION, vectors=vectors_of(every))
    with whole:
        for _ in range(parts):
            part_of(whole, live, random, (0,) if deleted else (0, 2)).check(random)


def named(references: References, doc_id: str) -> str:
    """Return the reference of a document, which may have been shown at a time when it was there."""
    return references.of_document(doc_id, "A title", 0).id


def replace_scores(hit: Any) -> Any:
    """Return a hit without what statistics of the whole index go into."""
    explained = hit.explanation and tuple(
        (leaf.leaf, tuple(sorted(leaf.scores))) for leaf in hit.explanation
    )
    ranks = hit.ranks and tuple(rank is not None for rank in hit.ranks)
    return hit._replace(score=0.0, explanation=explained, ranks=ranks)


def _counts(result: ToolResult) -> object:
    pointers = {span.id for span in result.passages if span.kind == "pointer"}
    ids = sorted(set(result.ids) - pointers)
    return result.status, ids, result.total, result.total_is_exact


def _pointed(result: ToolResult) -> tuple[list[str], list[str]]:
    """Return the ids of the passages in whose sentences names are looked for, and the lines of
    those that have these names."""
    hits = [span for span in result.passages if span.kind == "hit"]
    shown = [span.id for span in hits if span.text_start < span.end]
    lines = result.text.split("\n")
    return shown[:PASSAGES], [line for line in lines if line.startswith(POINTED)]


def _heads(result: ToolResult) -> list[str]:
    """Return the lines before the first document of a reply."""
    return result.text.partition("\n[turn")[0].split("\n")


def _of_document(result: ToolResult, reference: str) -> object:
    return result.status, result.text.replace(reference, "it"), result.ids


def _answer(call: Callable[[Any], object], subject: object) -> object:
    try:
        return call(subject)
    except AragError as error:
        return type(error), str(error)
