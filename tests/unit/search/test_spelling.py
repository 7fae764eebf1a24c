"""What a search says about words that nothing has."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.engines.base import MAX_TOTAL, Count, Deadline, Page
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


@pytest.mark.parametrize(
    ("language", "query", "noted"),
    [
        ("en", "US", ("US does not find U.S.; alone: U.S. 2.",)),
        ("en", "AD^2 OR army", ("AD does not find A.D.; alone: A.D. 1.",)),
        ("en", "USC OR title:US OR us OR IT", ()),  # found; in no title; no capitals; not there
        ("en", "army AND NOT US", ()),
        ("none", "US OR USC", ("US does not find U.S.; alone: U.S. 2.",
                               "USC does not find U.S.C.; alone: U.S.C. 1.",
                               "USC occurs nowhere.")),
        ("", "US OR army", ()),
    ],
)  # fmt: skip
def test_capitals_that_stand_with_dots_are_counted(
    language: str, query: str, noted: tuple[str, ...]
) -> None:
    texts = ("The U.S. Army met us in A.D. 5. ", "The U.S. and U.S.C. of it; an ad. ")
    passages = [chunk(at, f"d{at}", "Us", text) for at, text in enumerate(texts)]
    index = Index(MemoryEngine(passages, language=language), "")
    assert index.logical_search(query).notes == noted
    assert index.logical_search(query, feedback=False).notes == ()


def test_a_server_counts_a_word_exactly_beside_its_dotted_form() -> None:
    class Server(MemoryEngine):
        is_remote = True

        def counts_and_pages(self, *asked: Any, **options: Any) -> tuple[list[int], list[Page]]:
            counts, pages = super().counts_and_pages(*asked, **options)
            return counts, [Page(page.hits, Count(MAX_TOTAL + 1, False)) for page in pages]

    passages = [chunk(0, "us", "", "The U.S. and us. "), chunk(1, "we", "", "Tell us. ")]
    result = Index(Server(passages), "").logical_search("US")
    assert (result.total, result.notes) == (2, ("US does not find U.S.; alone: U.S. 1.",))


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


@pytest.mark.parametrize(("typed", "other"), [("Kroegh", "krögh"), ("Strömgar", "stroemgar")])
def test_a_name_that_the_dictionary_lacks_is_answered_with_its_other_digraphs(
    typed: str, other: str
) -> None:
    passages = [chunk(0, "names", "Namen", "Von Krögh und Stroemgar. ")]
    index = Index(MemoryEngine(passages, language="de"), "")
    assert index.logical_search(typed).notes == (f"nearest to {typed}: {other} 1.",)
