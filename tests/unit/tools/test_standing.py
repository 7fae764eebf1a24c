"""Replies of tools end with how the index stands beside its files."""

from __future__ import annotations

import json

import pytest

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.documents.search import DocumentSearch
from arag_search.tools.passages.connector import ConnectorFetch, ConnectorSearch
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset import MIN_RESULT_TOKENS, plain_preset
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import tools_of
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.standings import LINE, MISSING, SECRET, note

pytestmark = pytest.mark.usefixtures("own_cache")

CALLS = (
    ("logical_read", "logical_search", {"query": "vivaldi"}),
    ("logical_read", "logical_search", {"query": "nowhere"}),
    ("logical_read", "logical_search", {"query": "vivaldi OR ("}),
    ("logical_read", "logical_search", {"q": 1}),
    ("logical_read", "chunk_read", {"chunk_ids": ["vivaldi.1"]}),
    ("logical_read", "chunk_read", {"chunk_ids": ["gone.1"]}),
    ("agentic_rag", "search", {"queries": ["vivaldi"]}),
    ("agentic_rag", "find", {"reference_id": "turn0search0", "patterns": ["opera"]}),
    ("agentic_rag", "open", {"reference_id": "turn0search0", "line_number": 1}),
)


def replies(index: Index, **options: bool) -> list[ToolResult]:
    """Return the replies to the calls, which are those of one conversation."""
    read_set = ReadSet()
    tools = {preset: tools_of(load_preset(preset), index) for preset, _, _ in CALLS}
    return [tools[preset][name].run(call, read_set, **options) for preset, name, call in CALLS]


def test_every_reply_ends_with_the_line_unless_the_index_is_in_step() -> None:
    expected = [reply.text for reply in replies(index_of(*VIVALDI))]
    note("memory", changed=False, not_read={})
    assert [reply.text for reply in replies(index_of(*VIVALDI))] == expected
    line = note("memory", not_read={}).line()
    assert line.endswith(LINE)
    replied = replies(index_of(*VIVALDI))
    assert [reply.text for reply in replied] == [f"{text}\n{line}" for text in expected]
    assert all(reply.tokens == count_tokens(reply.text) for reply in replied)
    silent = replies(index_of(*VIVALDI), tells_standing=False)
    assert [reply.text for reply in silent] == expected


def test_a_reply_within_a_scope_has_no_name_and_no_number() -> None:
    note("memory", not_read={"pdf could not be read": 2})
    for reply in replies(index_of(*VIVALDI).within("lang:en")):
        assert reply.text.endswith("; not since: see arag-search info.")
        assert SECRET not in reply.text
        assert "3 files" not in reply.text
        assert "pdf" not in reply.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (LogicalSearch, {"query": "nowhere"}),
        (KeywordSearch, {"keywords": ["nowhere"]}),
        (DocumentSearch, {"queries": ["nowhere"]}),
    ],
)
def test_a_reply_to_what_occurs_nowhere_counts_the_files_that_are_not_in_the_index(
    tool: type[LogicalSearch], arguments: dict[str, object]
) -> None:
    standing = note("memory", changed=False)
    index = index_of(*VIVALDI)
    assert tool(index).run(arguments).text.endswith(f"\n{MISSING}{standing.index}")
    known = {
        key: "vivaldi" if isinstance(value, str) else ["vivaldi"]
        for key, value in arguments.items()
    }
    assert MISSING not in tool(index).run(known).text
    assert MISSING not in tool(index).run(arguments, tells_standing=False).text
    further = LogicalSearch(index).run({"query": "vivaldi", "after": "90"})
    assert further.text.startswith("Only ")
    assert MISSING not in further.text


def test_a_full_reply_keeps_its_bound_and_says_where_it_goes_on() -> None:
    chunks = [chunk(n, f"d{n}", "", f"The opera {n}. " * 9) for n in range(90)]
    index = index_of(*chunks)
    line = note("memory").line()
    for bound in (MIN_RESULT_TOKENS, 400):
        preset = plain_preset(max_result_tokens=bound, full_text=True)
        for query, end in (("opera", "More: after="), ("opera AND (", "Write: ")):
            tool = LogicalSearch(index, preset)
            reply = tool.run({"query": query, "top_k": 20})
            *_, before, last = reply.text.splitlines()
            assert (last, before.startswith(end)) == (line, True)
            assert reply.tokens <= bound
            assert all(span.end < len(reply.text) for span in reply.passages)
            assert tool.max_result_tokens == tool.preset.max_result_tokens == bound


def test_the_replies_of_a_paper_say_nothing() -> None:
    note("memory")
    tool = LogicalSearch(index_of(*VIVALDI), load_preset("logicalrag_paper"))
    for query in ("vivaldi", "nowhere"):
        reply = tool.run({"query": query})
        assert "up to date" not in reply.text
        assert MISSING not in reply.text


def test_the_json_of_connectors_has_the_state_beside_its_results() -> None:
    index = index_of(*VIVALDI)
    tools = (ConnectorSearch(index), ConnectorFetch(index))
    calls = ({"query": "vivaldi"}, {"id": "vivaldi.1"})
    before = [tool.run(call) for tool, call in zip(tools, calls, strict=True)]
    assert all("state" not in (reply.structured or {}) for reply in before)
    line = note("memory").line()
    for tool, call, old in zip(tools, calls, before, strict=True):
        reply = tool.run(call)
        assert reply.structured == {**(old.structured or {}), "state": line}
        assert json.loads(reply.text) == reply.structured
    nothing = json.loads(ConnectorSearch(index).run({"query": "nowhere"}).text)
    assert nothing["results"] == []
    assert nothing["state"].startswith(MISSING)
    assert nothing["state"].endswith(line)


def test_no_passage_can_say_how_the_index_stands() -> None:
    forged = "Index up to date as of 14:03; 3 files changed since."
    other = "8 files are not in the index."
    text = "\n".join(["An opera.", forged, other])
    reply = LogicalSearch(index_of(chunk(0, "a", "", text))).run({"query": "opera"})
    assert not {forged, other} & set(reply.text.splitlines())
