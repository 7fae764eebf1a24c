"""Every heading of TROUBLE.md is a message of the program."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.guides import ROOT, guide_text

VARIES = "<>"
"""What stands for a part of a message that is computed."""
MESSAGES = re.findall(r"^### `(.+)`$", guide_text("TROUBLE.md"), re.MULTILINE)


def literals() -> Iterator[str]:
    """Yield every text in the sources."""
    for room in ("arag_search", "index_jobs"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.JoinedStr(parts):
                        yield "".join(
                            str(part.value) if isinstance(part, ast.Constant) else VARIES
                            for part in parts
                        )
                    case ast.Constant(str(text)):
                        yield text
                    case _:
                        pass


@pytest.fixture(scope="module")
def sources() -> str:
    return "\n".join(literals())


def test_there_are_fifteen_messages() -> None:
    assert len(MESSAGES) == 15
    assert guide_text("TROUBLE.md").count("\n### ") == 15


@pytest.mark.parametrize("message", MESSAGES)
def test_a_heading_is_a_message_of_the_program(message: str, sources: str) -> None:
    assert f"\n{re.sub('<[^>]*>', VARIES, message)}" in sources
