"""Changes of settings at one key, on random files."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from arag_search.mcp_server.clients import json_settings, toml_settings

ENTRY = {"command": "/bin/arag-search", "args": ["mcp", 'a="b" \\ // c,}']}
BLANKS = st.sampled_from(["", " ", "\n  ", "\t", " // a, } comment\n", "/* {,: */", "\r\n"])
KEYS = st.text(st.sampled_from('ab"\\/{},é '), min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS


def values(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)


OBJECTS = st.dictionaries(KEYS, st.recursive(SCALARS, values, max_leaves=5), max_size=3)


def written(value: Any, draw: Any) -> str:
    """Return a value as JSON with blanks, comments and trailing commas where they may be."""

    def blank() -> str:
        return str(draw(BLANKS))

    if not isinstance(value, dict | list) or not value:
        return blank() + json.dumps(value, ensure_ascii=False) + blank()
    if isinstance(value, dict):
        items = [f"{blank()}{json.dumps(k)}{blank()}:{written(v, draw)}" for k, v in value.items()]
    else:
        items = [written(item, draw) for item in value]
    inner = ",".join(items) + ("," + blank() if draw(st.booleans()) else "")
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return blank() + opening + inner + closing + blank()


@given(st.data(), OBJECTS, OBJECTS)
def test_an_entry_is_added_and_removed_and_all_else_is_as_it_was(
    data: st.DataObject, root: dict[str, Any], servers: dict[str, Any]
) -> None:
    before = {**root, "servers": servers} if data.draw(st.booleans()) else root
    text = written(before, data.draw)
    assert json_settings.parse(text) == before
    added = json_settings.with_entry(text, "servers", "mine", ENTRY)
    expected = {**before.get("servers", {}), "mine": ENTRY}
    assert json_settings.parse(added) == {**before, "servers": expected}
    removed = json_settings.without_entry(added, "servers", "mine")
    assert json_settings.parse(removed) == {**before, "servers": before.get("servers", {})}
    if before.get("servers"):
        assert removed == text


@given(st.lists(st.sampled_from(["# x", "", "[a]", "[servers.b]", "[servers.b.env]", "k = 1"])))
def test_a_table_is_added_and_removed(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    try:
        before = toml_settings.parse(text)
    except ValueError:
        return
    added = toml_settings.with_entry(text, "servers", "mine", ENTRY)
    assert isinstance(before, dict)
    servers = before.get("servers", {})
    assert toml_settings.parse(added) == {**before, "servers": {**servers, "mine": ENTRY}}
    assert toml_settings.without_entry(added, "servers", "mine") == text
