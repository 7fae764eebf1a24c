"""How commands open an index."""

from pathlib import Path

import pytest

from arag_search.cli.options import index
from arag_search.cli.options.index import Opening
from arag_search.engines.lucene import jvm


@pytest.mark.parametrize(
    ("is_long", "limit", "expected"),
    [(False, 256 << 20, [True]), (True, 256 << 20, []), (False, 5, [])],
)
def test_java_starts_without_its_second_compiler_for_few_searches_of_a_small_index(
    is_long: bool, limit: int, expected: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks" / "a").write_bytes(b"12345")
    expectations: list[bool] = []
    monkeypatch.setattr(index, "_SMALL_BYTES", limit)
    monkeypatch.setattr(jvm, "expect_little", lambda: expectations.append(True))
    Opening().opening(str(tmp_path), is_long)
    assert expectations == expected
