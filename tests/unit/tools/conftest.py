"""Every reply of a tool in these tests has only lines that text cannot imitate without a mark."""

from __future__ import annotations

import pytest

from arag_search.tools.tool import ReadSet, Tool, ToolResult
from tests.support.own_lines import has_our_form, own_lines

_OF_COUNTS = ("find", "open", "summarize")
"""Tools that show no text, or only behind the numbers of its lines."""


@pytest.fixture(autouse=True)
def _lines_have_our_form(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    run = Tool.run

    def checked(
        tool: Tool, arguments: object, read_set: ReadSet | None = None, **options: bool
    ) -> ToolResult:
        result = run(tool, arguments, read_set, **options)
        shows_text = tool.preset.explains and tool.output_schema is None
        if shows_text and tool.name not in _OF_COUNTS:
            unlike = [line for line in own_lines(result) if not has_our_form(line)]
            assert not unlike, unlike
        return result

    monkeypatch.setattr(Tool, "run", checked)
