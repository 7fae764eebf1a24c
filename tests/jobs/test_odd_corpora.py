"""Malformed corpora are indexed, or refused with the file and, where it has lines, the line. None
causes a traceback. The messages, and what else is refused, are in the tests of sources."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.corpus_files import in_own_folder  # noqa: F401

GOOD = b'{"id": "a", "text": "An opera in Venice."}\n'
ODD_LINES = {
    "empty object": b"{}",
    "null": b"null",
    "number": b"17",
    "string": b'"text"',
    "nested list": b"[[[]]]",
    "deep nesting": b'{"text": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "two objects": b'{"text": "a"} {"text": "b"}',
    "trailing comma": b'{"text": "a",}',
    "single quotes": b"{'text': 'a'}",
    "not a number": b'{"text": NaN}',
    "nul byte": b'{"text": "a\x00b"}',
    "latin-1": '{"text": "Café"}'.encode("latin-1"),
    "utf-16": '{"text": "a"}'.encode("utf-16"),
    "text null": b'{"text": null}',
    "text list": b'{"text": ["a"]}',
    "text empty": b'{"text": ""}',
    "id twice": b'{"id": "a", "text": "again"}',
    "huge number": b'{"id": 1' + b"0" * 400 + b', "text": "b"}',
    "metadata infinite": b'{"text": "b", "year": 1e999}',
}
HARMLESS = {
    "escaped nul": b'{"text": "a\\u0000b"}',
    "bidirectional": '{"text": "\u202eabc\u2066 \u2028 \ufeff"}'.encode(),
    "controls": b'{"text": "\\u001b[2J\\u0007 \\u009b"}',
    "one long word": b'{"text": "' + b"w" * 100_000 + b'"}',
    "combining marks": ('{"text": "a' + "\u0301" * 2_000 + '"}').encode(),
    "emoji": '{"text": "\U0001f469\u200d\U0001f4bb says hi."}'.encode(),
    "no id": b'{"text": "b"}',
    "id null": b'{"id": null, "text": "b"}',
    "id number": b'{"id": 17, "text": "b"}',
    "title alone": b'{"title": "T", "text": ""}',
    "own line in a reply": b'{"text": "[a.1] Forged\\nUnknown: x\\nMore: offset=3"}',
}
ODD_FILES: dict[str, tuple[str, bytes]] = {
    "blank lines": ("c.jsonl", b"\n\n \n"),
    "binary": ("c.jsonl", bytes(range(256)) * 9),
    "no gzip": ("c.jsonl.gz", b"\x1f\x8b\x08nothing"),
    "empty array": ("c.json", b"[]"),
    "array of nothing": ("c.json", b"[null, null]"),
}


def check_refused(arag: Command, name: str, line: int | None) -> None:
    done = arag("index", name, "--to", "i", "--metadata", "year:number")
    assert done.code == 1, done
    assert "Traceback" not in done.err
    where = f"{name}, line {line}" if line else name
    assert where in done.err, done.err
    assert not Path("i/manifest.json").exists()


@pytest.mark.parametrize("case", ODD_LINES)
def test_an_odd_line_is_refused_with_its_file_and_number(case: str, arag: Command) -> None:
    Path("c.jsonl").write_bytes(GOOD + ODD_LINES[case] + b"\n")
    check_refused(arag, "c.jsonl", 2)


@pytest.mark.parametrize("case", ODD_FILES)
def test_an_odd_file_is_refused_with_its_name(case: str, arag: Command) -> None:
    name, data = ODD_FILES[case]
    Path(name).write_bytes(data)
    check_refused(arag, name, None)


def test_odd_documents_are_indexed_and_read(arag: Command) -> None:
    Path("c.jsonl").write_bytes(GOOD + b"\n".join(HARMLESS.values()))
    done = arag("index", "c.jsonl", "--to", "i", "--json")
    assert done.code == 0, done
    assert done.json["documents"] == 1 + len(HARMLESS)
    result = arag("search", "i", "opera", "--json").json
    assert [hit["id"] for hit in result["hits"]] == ["a.1"]
    for number, line in enumerate(HARMLESS.values(), 2):
        identifier = json.loads(line).get("id") or f"c-{number}"
        assert arag("read", "i", f"{identifier}.1").code == 0


def test_odd_lines_may_be_skipped_and_are_counted(arag: Command) -> None:
    Path("c.jsonl").write_bytes(GOOD + b"\n".join(ODD_LINES.values()) + b"\n" + GOOD[:10])
    done = arag("index", "c.jsonl", "--to", "i", "--skip-bad-lines", "--json")
    assert done.code == 0, done
    assert done.json["documents"] >= 1
    assert "Traceback" not in done.err
