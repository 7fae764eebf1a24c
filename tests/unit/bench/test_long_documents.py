"""The bench of long documents: how they are put together, and four ways to their evidence."""

from __future__ import annotations

import pytest

from arag_search.agent.toolbox import tools_of
from arag_search.tokens import count_tokens
from bench.gold_chain import long_documents as bench
from bench.gold_chain.chain import Chain, Link
from bench.gold_chain.long_documents import HOP_BOUND, long_documents, measure, shows, walked, ways
from tests.support.long_documents import index_of_documents, long_document, report

PASSAGES = [(f"Title {number}", f"Text {number}. " * 40) for number in range(900)]
EVIDENCE = "Ann Lee was born in Oslo."
CHAIN = Chain(
    "q1",
    "Where was Ann Lee born?",
    (
        Link("Ann Lee", "place of birth", {"p1": (EVIDENCE,)}),
        Link("Nobody", "place of birth", {}),
    ),
)


def test_documents_hold_every_passage_once_and_have_lengths_within_the_bounds() -> None:
    documents = list(long_documents(PASSAGES, 1))
    assert documents == list(long_documents(PASSAGES, 1))
    assert documents != list(long_documents(PASSAGES, 2))
    lines = [line for document in documents for line in document["text"].split("\n")]
    assert sorted(line for line in lines if line.startswith("Title")) == sorted(
        title for title, _ in PASSAGES
    )
    sizes = [count_tokens(document["text"]) for document in documents[:-1]]
    assert sizes
    assert all(bench.LEAST_TOKENS * 0.95 < size < bench.MOST_TOKENS * 1.1 for size in sizes)


def test_evidence_is_recognised_across_numbered_lines() -> None:
    reply = "[turn0search0] Volume 1\n20: Ann Lee was\n21: born in Oslo. She sang."
    assert shows(reply, ["Nothing", EVIDENCE])
    assert not shows("20: Ann Lee was born in\n21: Rome.", [EVIDENCE])


@pytest.mark.parametrize("way", ways(), ids=lambda way: way.name)
def test_every_way_finds_the_evidence_or_pays_the_bound(way: bench.Way) -> None:
    text = report("Lee", 400, {300: f"Ann Lee sang. {EVIDENCE}", 20: "Ann Lee is a singer."})
    index = index_of_documents(
        long_document(0, "v0", "Volume 0", text), long_document(1, "v1", "Volume 1", report("X", 9))
    )
    tools = tools_of(way.preset, index)
    walk = walked(CHAIN, way, tools)
    assert walk.hops == 1
    assert 0 < walk.tokens < HOP_BOUND
    assert walk.calls >= 1
    lost = Chain("q2", "?", (Link("Zebra", "stripes", {"p": ("A zebra has stripes.",)}),))
    walk = walked(lost, way, tools)
    assert (walk.hops, walk.tokens) == (0, HOP_BOUND)


def test_figures_compare_every_way_with_ours() -> None:
    text = report("Lee", 60, {30: EVIDENCE})
    index = index_of_documents(long_document(0, "v0", "Volume 0", text))
    figures = measure(index, [("one", CHAIN), ("two", CHAIN)])
    names = [way.name for way in ways()]
    assert [figure.name for figure in figures] == [*names, "against documents"]
    assert [row.what for row in figures[-1].rows] == [
        f"tokens of {name} / documents" for name in names[1:]
    ]
    assert all(row.value == 1 for figure in figures[:-1] for row in figure.rows[:1])
