"""The note on NOTs that remove more than half of what the rest of a query finds."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk

COMMON = [
    chunk(n, f"d{n}", "Opera", "The opera opera opera was long. ", "Venice is old.")
    for n in range(1_001)
]
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


def test_an_exclusion_of_more_than_half_says_so() -> None:
    assert exclusion_notes("dataclass NOT slot*") == (
        "NOT slot* removes 5 of 6 passages: DEMOTE instead of NOT keeps and lowers them.",
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
        "NOT venice removes all but 0 of more than 1,000 passages: DEMOTE instead of NOT keeps and "
        "lowers them.",
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
            assert f" {all_of_it - (kept.total or 0)} of {all_of_it} passage" in note
    assert noted
