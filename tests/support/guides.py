"""The guides of the project: their blocks of code, the commands they name, and their links."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bench.__main__
from arag_search.cli.app import run

ROOT = Path(__file__).parents[2]
GUIDES = (
    "README.md",
    "TROUBLE.md",
    "arag_search/README.md",
    "arag_search/mcp_server/README.md",
    "arag_search/query/README.md",
    "arag_search/search/README.md",
    "configs/README.md",
    "index_jobs/README.md",
    "index_jobs/VECTORS.md",
    "opensearch/README.md",
    "bench/README.md",
    *sorted(f"bench/studies/{path.name}" for path in (ROOT / "bench" / "studies").glob("*.md")),
)

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_LINKED = re.compile(r"\[([^\]\[]+)\]\([^)\s]+\)")
_COMMAND = re.compile(
    r"(?:^|&& )(?:[A-Z_]+=\S+ )*(?:uv run (?:--extra all )?)?"
    r"((?:arag-search|python -m bench)(?: |$))"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a guide. ``reason`` is that of a mark "not run", or empty."""

    guide: str
    line: int
    kind: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.guide}, line {self.line}"


def guide_text(guide: str) -> str:
    """Return the text of a guide, named by its path from the root of the project."""
    return (ROOT / guide).read_text("utf-8")


def plain_text(guide: str) -> str:
    """Return the text of a guide without the marks of code and links."""
    return _LINKED.sub(r"\1", guide_text(guide)).replace("`", "")


def blocks_of(guide: str) -> list[Block]:
    """Return the fenced blocks of a guide, in order."""
    text = guide_text(guide)
    return [
        Block(
            guide,
            text.count("\n", 0, match.start("kind")) + 1,
            match["kind"],
            match["text"],
            match["reason"] or "",
        )
        for match in _BLOCK.finditer(text)
    ]


def prose_of(guide: str) -> str:
    """Return the text of a guide without blocks and comments."""
    return _COMMENT.sub("", _BLOCK.sub("", guide_text(guide)))


def spans_of(guide: str) -> list[str]:
    """Return the text of the code spans in the prose of a guide."""
    return _CODE.findall(prose_of(guide))


def links_of(guide: str) -> list[str]:
    """Return the targets of the links and pictures of a guide."""
    return _LINK.findall(prose_of(guide))


def commands_of(source: str | Block) -> Iterator[list[str]]:
    """Give the words of every command of ours that a block or a guide (its path) names."""
    if isinstance(source, Block):
        texts = source.text.replace("\\\n", " ").splitlines()
    else:
        for block in blocks_of(source):
            yield from commands_of(block)
        texts = spans_of(source)
    for text in texts:
        for begin in _COMMAND.finditer(text):
            yield shlex.split(text[begin.start(1) :], comments=True)


def run_console(block: Block) -> None:
    """Run each line of a block in this process; it ends with the code the block names, or 0."""
    expected = int(block.kind.rpartition(" exit ")[2]) if " exit " in block.kind else 0
    commands = list(commands_of(block))
    assert len(commands) == len(block.text.replace("\\\n", " ").splitlines()), str(block)
    for words in commands:
        assert exit_code_of(words) == expected, (words, str(block))


def exit_code_of(words: list[str]) -> int:
    """Run a command of ours in this process and return its exit code."""
    if words[0] == "arag-search":
        return run(words[1:])
    return bench.__main__.main(words[3:])


def rows_of(guide: str, *heads: str) -> list[list[str]]:
    """Return the rows of the table with these heads: of each cell the code, or nothing.

    Raises ValueError unless there is exactly one such table.
    """
    head = re.escape(f"| {' | '.join(heads)} |")
    (table,) = re.findall(rf"^{head}\n\|[ |-]+\|\n((?:\|.*\|\n)+)", guide_text(guide), re.MULTILINE)
    return [
        [_code(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()
    ]


def _code(cell: str) -> str:
    (code,) = _CODE.findall(cell) or [""]
    return code.replace("\\|", "|")
