"""Words that no passage of a rare name has: the line that says so, and the page beside it."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.search.index import Index
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset_files import load_preset
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, chunk, index_of

CHUNKS = (
    chunk(0, "korda", "Korda", "Alexander Korda was a director. ", "He lived here. ", lang="en"),
    chunk(1, "film", "Yamata", "A film of Alexander Korda. ", "He dies at its end. ", lang="xx"),
    *(chunk(n, f"d{n}", f"Man {n}", "He died. ", lang="en") for n in range(2, 30)),
    *(chunk(n, f"b{n}", f"Man {n}", "He was buried. ", lang="en") for n in range(30, 58)),
    chunk(58, "both", "Both", "He died and was buried. ", lang="en"),
)  # fmt: skip
RARE = '"alexander korda"'


def run(query: str, scope: str | None = None, **arguments: Any) -> str:
    tool = LogicalSearch(index_of(*CHUNKS, scope=scope), load_preset("logical_read"))
    return tool.run({"query": query, **arguments}).text


@pytest.mark.parametrize(
    ("query", "scope", "expected"),
    [
        (f"{RARE} OR died OR buried", None, f"{RARE}: 2 passages, buried in none."),
        (f"{RARE} OR died OR buried", "lang:en", f"{RARE}: 1 passage, died, buried in none."),
        (f"{RARE} AND buried", None, f"{RARE}: 2 passages, buried in none."),
        (f"{RARE} AND (bury OR burial)", None, f"{RARE}: 2 passages, bury, burial in none."),
        # A word that some passage has, or a rare one
        (f"{RARE} OR died", None, ""),
        (f"{RARE} OR yamata", None, ""),
        # A name that is not rare, or nowhere
        ('"he died" OR buried', None, ""),
        ('"sandor korda" OR buried', None, ""),
        # Several conditions, of which each may be met; a pattern; a corrected query
        (f"{RARE} AND here AND buried", None, ""),
        (f"{RARE} OR buried OR (film AND /kor.a/)", None, ""),
        (f"{RARE} OR buried?", None, ""),
    ],
)
def test_a_line_says_which_words_no_passage_of_a_rare_name_has(
    query: str, scope: str | None, expected: str
) -> None:
    lines = run(query, scope).split("\n")
    assert [line for line in lines if " in none." in line] == ([expected] if expected else [])
    assert not (expected and any(line.startswith("Alone: ") for line in lines))


def test_unrelated_passages_of_the_words_come_on_later_pages_and_each_match_once() -> None:
    first = run(f"{RARE} OR died OR buried", top_k=8)
    assert first.startswith("3 of 59 passages\n")
    assert [id in first for id in ("[korda.1]", "[film.1]", "[both.1]", "[d2.1]")] == [1, 1, 1, 0]
    assert first.index("[both.1]") > max(map(first.index, ("[korda.1]", "[film.1]")))
    ids, after = list[str](), "0"
    tool = LogicalSearch(index_of(*CHUNKS), load_preset("logical_read"))
    while after:
        reply = tool.run({"query": f"{RARE} OR died OR buried", "top_k": 8, "after": after})
        ids += reply.ids
        after = reply.text.partition("\nMore: after=")[2].rstrip(".")
    assert sorted(ids) == sorted(chunk.id for chunk in CHUNKS)


def test_it_takes_no_request_of_its_own() -> None:
    class Remote(MemoryEngine):
        is_remote = True
        calls = 0

        def counts_and_pages(self, *arguments: Any) -> Any:
            self.calls += 1
            return super().counts_and_pages(*arguments)

    def calls(query: str) -> int:
        engine = Remote(CHUNKS, metadata=SCHEMA.metadata)
        tool = LogicalSearch(Index(engine, "memory", None), load_preset("logical_read"))
        assert (" in none." in tool.run({"query": query}).text) == ("buried" in query)
        return engine.calls

    assert [calls(f"{RARE} {rest}") for rest in ("OR buried", "OR died")] == [1, 1]
    assert calls(f"{RARE} AND buried") == 2  # as before: the nearest passages
