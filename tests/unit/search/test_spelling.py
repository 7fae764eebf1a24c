"""What a search says about words that nothing has."""

from __future__ import annotations

import pytest

from arag_search.engines.base import Deadline
from arag_search.errors import QueryTimeoutError
from arag_search.search.index import Index
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk, index_of

PASSAGES = [
    chunk(0, "vivaldi", "Antonio Vivaldi", "He wrote operas and the Four Seasons. "),
    chunk(1, "tekeze", "Tekezé", "A river; Terii Maevarua was a queen. "),
    chunk(2, "wales", "Wales", "A land of hills. "),
    chunk(
        3, "wale", "Corduroy", "Its wales are ridges. Its wale is wide. ", "Each wale is a rib. "
    ),
    chunk(4, "rib", "Ribs", "A wale, or a rib. "),
    chunk(5, "wale2", "Planks", "A wale strengthens a hull, in 1944. "),
]


def notes(query: str, **options: object) -> tuple[str, ...]:
    return index_of(*PASSAGES).logical_search(query, **options).notes  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "noted"),
    [
        ("vivladi", ("nearest to vivladi: vivaldi 1.",)),
        ("vivladi OR river", ("vivladi occurs nowhere; nearest: vivaldi 1.",)),
        ("tekezen", ()),
        ("teriimaevarua", ('nearest to teriimaevarua: "terii maevarua" 1.',)),
        ("title:vivladi", ("nearest to title:vivladi: title:vivaldi 1.",)),
        ("vivalid", ("nearest to vivalid: vivaldi 1.",)),
        ("vivaldo AND queen", ("nearest to vivaldo: vivaldi 1.",)),
        # Before: "vivladi occurs nowhere", below "antonio vivladi" occurs nowhere.
        ('"antonio vivladi"', ("nearest to vivladi: vivaldi 1.",)),
        ('"antonio zzzz" OR "zzzz queen"', ("no passage has zzzz.",)),
        ("title:hills", ("1 passage has hills in the text: [wales.1].",)),
        (
            "(title:rib AND queen) OR river OR title:hull",
            ("title:hull finds nothing; 1 passage has hull in the text: [wale2.1].",),
        ),
        ("title:hills OR hills OR title:wale", ()),
        # Before: "waled occurs nowhere; ...", which said nothing of the phrase that asks for it.
        (
            'title:wales OR "=waled land"',
            ('waled of "=waled land" occurs nowhere as written; nearest: wale 3, wales 2.',),
        ),
        ("hillz", ("nearest to hillz: hills 1.",)),
        ("strengthy", ()),
        ("strangthons OR river", ("strangthons occurs nowhere.",)),  # two edits, one passage
        ("1844 OR river", ("1844 occurs nowhere.",)),
        ("zzzz OR river", ("zzzz occurs nowhere.",)),
        ("river AND NOT vivladi", ()),
        ("river", ()),
        ("vivaldi*", ()),
    ],
)  # fmt: skip
def test_a_word_that_nothing_has_is_answered_with_the_nearest(
    query: str, noted: tuple[str, ...]
) -> None:
    assert notes(query) == noted


def test_only_words_in_scope_are_suggested() -> None:
    index = index_of(*PASSAGES)
    assert index.logical_search("vivladi", filter="doc_id:wales").notes == ()
    assert index.logical_search("walse OR hills", filter="doc_id:wales").notes == (
        "walse occurs nowhere; nearest: wales 1.",
    )


def test_what_takes_too_long_is_left_out() -> None:
    class Slow(MemoryEngine):
        def counts(self, *_: object, **__: object) -> list[int]:  # type: ignore[override]
            raise Deadline(1).exceeded()

    result = Index(Slow(PASSAGES), "").logical_search("vivladi OR river")
    assert result.notes == ()
    assert issubclass(QueryTimeoutError, Exception)


def test_an_index_without_forms_suggests_words_as_they_are_written() -> None:
    index = Index(MemoryEngine(PASSAGES, language=""), "")
    assert index.logical_search("opera").notes == ("nearest to opera: operas 1.",)
    assert index.logical_search("operas").notes == ()
