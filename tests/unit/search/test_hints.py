"""Notes on rarer syntax: given where it would help, without a request of their own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import Deadline, Granularity, Page, SearchRequest
from arag_search.query.tree import Node, Scope
from arag_search.search.hints import BY_SENTENCE, MAX_LOOSENED
from arag_search.search.index import Index
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, chunk

COMMON = [
    chunk(n, f"d{n}", "Opera", "The opera opera opera was long. ", "Venice is old.")
    for n in range(1_001)
]
RARE = chunk(2_000, "rare", "A page", "Opera and " + "more of this " * 60 + "Miklos Rozsa.")


class CountingEngine(MemoryEngine):
    """An engine that counts its requests."""

    requests = 0

    def search(self, request: SearchRequest) -> Page:
        self.requests += 1
        return super().search(request)

    def counts(
        self,
        queries: Sequence[tuple[Node, Granularity]],
        scope: Scope | None,
        deadline: Deadline | None = None,
        exact: bool = False,
    ) -> list[int]:
        self.requests += 1
        return super().counts(queries, scope, deadline, exact)


@pytest.fixture(autouse=True)
def _without_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the notes on spelling, whose requests are not those that are counted here."""
    monkeypatch.setattr("arag_search.search.spelling.Spelling.notes", lambda *_, **__: [])


@pytest.fixture(scope="module")
def common() -> CountingEngine:
    return CountingEngine(COMMON)


def notes(
    query: str, chunks: Sequence[Chunk] | CountingEngine, **options: object
) -> tuple[str, ...]:
    """Return the notes that feedback adds, having checked that they take no request, or one with
    the counts of a query without a match."""
    engine = chunks if isinstance(chunks, CountingEngine) else CountingEngine(chunks)
    noted: list[tuple[str, ...]] = []
    requests: list[int] = []
    index = Index(engine, "memory")
    for feedback in (True, False):
        engine.requests = 0
        result = index.logical_search(query, feedback=feedback, **options)  # type: ignore[arg-type]
        noted.append(result.notes)
        requests.append(engine.requests)
    assert requests[0] == requests[1] or not noted[0] or "finds" in noted[0][0]
    return tuple(note for note in noted[0] if note not in noted[1])


def test_a_phrase_that_occurs_only_loosened_is_shown_with_a_slop() -> None:
    assert notes('"carlo venice"', VIVALDI) == ()
    assert notes('"goldoni carlo"', VIVALDI) == (
        '"goldoni carlo"~5 (words near each other) finds 1.',
    )
    assert notes('"antonio vivaldi" AND "opera antonio"', VIVALDI) == (
        '"opera antonio"~5 (words near each other) finds 1.',
    )
    # It occurs, or is loosened already, or is excluded, or is one word.
    for query in (
        '"antonio vivaldi" AND nowhere',
        '"opera by revised"~2',
        'nowhere NOT "opera antonio"',
        '"nowhere"',
    ):
        assert notes(query, VIVALDI) == (), query


def test_only_the_first_phrases_are_loosened() -> None:
    query = " AND ".join(f'"goldoni carlo {word}"' for word in ("the", "young", "by", "was", "in"))
    assert len(notes(query, VIVALDI)) <= MAX_LOOSENED


def test_too_many_matches_of_a_conjunction_suggest_single_sentences(
    common: CountingEngine,
) -> None:
    assert notes("opera AND venice", common) == (BY_SENTENCE,)
    assert notes("opera AND venice", COMMON[:50]) == ()
    assert notes("opera AND venice", common, offset=5) == ()
    assert notes("opera OR venice", common) == ()
    assert notes("opera AND long", common, granularity="sentence") == ()


def test_a_phrase_that_a_common_word_crowds_out_is_shown_with_a_weight() -> None:
    engine = CountingEngine([*COMMON, RARE])
    query = 'opera OR "was long" OR "this opera"'
    assert notes(query, engine) == (
        'no passage here has "this opera": "this opera"^3 would weigh more.',
    )
    for other in (
        'opera OR "was long"',  # it is there
        'opera OR "this opera"^2',  # the syntax is known
        '"the opera" OR "this opera"',  # no common word
    ):
        assert notes(other, engine) == (), other


SLOTS = [
    chunk(n, f"slot{n}", "Objects", "A class with slots saves memory. ", "A dataclass is a class.")
    for n in range(5)
] + [chunk(9, "plain", "Objects", "A dataclass has fields."), chunk(8, "no", "X", "Nothing.")]


def exclusion_notes(
    query: str, chunks: Sequence[Chunk] = SLOTS, **options: object
) -> tuple[str, ...]:
    """Return the notes of a search with its branches."""
    index = Index(MemoryEngine(chunks), "memory")
    return index.logical_search(query, branches=True, **options).notes  # type: ignore[arg-type]


def test_an_exclusion_of_more_than_half_says_what_would_remain() -> None:
    assert exclusion_notes("dataclass NOT slot*") == (
        'NOT slot* removes 5 of 6 passages: granularity "sentence" leaves 6 sentences; DEMOTE '
        "instead of NOT keeps and lowers them.",
    )
    assert exclusion_notes("dataclass NOT (object OR class) NOT title:zebra") == (
        "NOT (object OR class) removes 6 of 6 passages: DEMOTE instead of NOT keeps and lowers "
        "them.",
    )
    for query in ("dataclass NOT nothing", "class OR nothing NOT fields", "dataclass NOT /sl[o]t/"):
        assert exclusion_notes(query) == ()
    assert exclusion_notes("dataclass NOT title:objects") == ()
    assert exclusion_notes("dataclass NOT slot*", granularity="sentence") == ()
    assert exclusion_notes("dataclass NOT slot*", published=True) == ()
    assert exclusion_notes("opera NOT venice", COMMON) == (
        "NOT venice removes all but 0 of more than 1,000 passages: granularity "
        '"sentence" leaves more than 1,000 sentences; DEMOTE instead of NOT keeps and lowers them.',
    )


def test_exclusions_are_counted_in_the_request_of_the_search() -> None:
    class Searched(MemoryEngine):
        trips = 0

        def counts_and_pages(self, *arguments: Any, **options: Any) -> Any:
            self.trips += 1
            return super().counts_and_pages(*arguments, **options)

    engine = Searched(SLOTS)
    assert Index(engine, "memory").logical_search("dataclass -slots", branches=True).notes
    assert engine.trips == 1


def test_the_note_on_exclusions_is_there_exactly_where_they_remove_more_than_half() -> None:
    random = Random(7)
    noted = 0
    for _ in range(examples(150)):
        words = [random.choice("abcd") * 4 for _ in range(3)]
        chunks = [
            chunk(n, f"d{n}", "T", *(f"{random.choice('abcd') * 4} x. " for _ in range(3)))
            for n in range(random.randint(1, 12))
        ]
        index = Index(MemoryEngine(chunks), "memory")
        rest = f"({words[0]} OR x)"
        excluded = f"NOT {words[1]} NOT {words[2]}"
        all_of_it = index.logical_search(rest).total or 0
        kept = index.logical_search(f"{rest} {excluded}", branches=True)
        said = [note for note in kept.notes if " removes " in note]
        assert bool(said) == (2 * (kept.total or 0) < all_of_it)
        noted += len(said)
        for note in said:
            sentences = index.logical_search(f"{rest} {excluded}", granularity="sentence").total
            assert f" {all_of_it - (kept.total or 0)} of {all_of_it} passage" in note
            assert (f"leaves {sentences} sentence" in note) == bool(sentences)
    assert noted
