"""Ripgrep and reads of lines as tools that a model calls, over a folder. Also ripgrep, and
logical_search over an index of the same files, in the hands of the scripted agent."""

from __future__ import annotations

import re
import subprocess
from abc import abstractmethod
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import Field

from arag_search.evaluation.interfaces import words_query
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset import Preset, plain_preset
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.tool import Arguments, ReadSet, Tool, ToolResult, error_result
from bench.ripgrep.policy import Reading, stem

HEAD_LINES = 100
"""Lines of output that are shown; tools of agents stop at 100 to 250."""
AROUND = 12
"""Lines that are read before and after a line."""
WHOLE = plain_preset(max_result_tokens=200_000)
_COLUMNS = 500
_BESIDE = 150
"""Bytes that are shown at least on each side of a match in a line longer than that."""
_SHOWN = re.compile(r"\[(.+?)\] \d+: (.*)")
_SIGNS = re.compile(r"([.^$*+?{}\[\]\\|()])")


class FileTool(Tool):
    """A tool over the files of a folder; ``says`` is its description. A file stands in brackets, as
    passages are cited, and counts as the passage of its name when it was shown."""

    says: str

    def __init__(self, index: Index, preset: Preset, folder: Path) -> None:
        super().__init__(index, preset)
        self.folder = folder.resolve()

    def _description(self) -> str:
        return self.says

    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        del read_set
        files = [_name(file[1:-1] if file[:1] == "[" else file) for file in arguments.files]
        for file in files:
            path = (self.folder / file).resolve()
            if not (path.is_relative_to(self.folder) and path.is_file()):
                return error_result(f'There is no file "{file}". Allowed: names that were shown.')
        return self._shown(arguments.model_copy(update={"files": files}))

    @abstractmethod
    def _shown(self, arguments: Any) -> ToolResult: ...


class RipgrepArguments(Arguments):
    """The arguments of ``ripgrep``."""

    pattern: str = Field(
        min_length=1, max_length=2_000, description="A regular expression of Rust; any capitals."
    )
    files: list[str] = Field(
        [], max_length=HEAD_LINES, description="Files to search; none for all."
    )
    around: int = Field(
        0, ge=0, le=50, description="With files: lines to show before and after, without names."
    )
    names_only: bool = Field(False, description="Whether to list only the names of files.")


class Line(NamedTuple):
    """A line of a file, with the text around its matches; none of lines around another."""

    file: str
    number: int
    text: str
    is_match: bool


class Ripgrep(FileTool):
    """The lines that match a pattern, with the names of files and the numbers of lines."""

    name = "ripgrep"
    arguments = RipgrepArguments
    says = (
        "Searches all files with ripgrep: lines that match a regular expression, as [file] line: "
        f"text, first lines (titles) first; at most {HEAD_LINES} lines, and of each {_COLUMNS} "
        "characters around the matches."
    )

    def _shown(self, arguments: RipgrepArguments) -> ToolResult:
        if arguments.around and not (arguments.files or arguments.names_only):
            return error_result("around needs files. Search without it, then in a file.")
        form = ["-l"] if arguments.names_only else ["--json", "-C", str(arguments.around)]
        command = ["rg", "-i", "--sort", "path", *form, "-e", arguments.pattern, "--",
                   *(arguments.files or ["."])]  # fmt: skip
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        if done.returncode > 1:
            return error_result(done.stderr.decode("utf-8", "replace").strip())
        output = done.stdout.splitlines()
        if arguments.names_only:
            files = [_name(file.decode("utf-8", "replace")) for file in output]
            texts, counts = [f"[{file}]" for file in files], f"{len(files)} files"
        else:
            lines = [line for text in output if (line := _line(orjson.loads(text)))]
            matches = [line for line in lines if line.is_match]
            counts = f"{len(matches)} lines in {len({line.file for line in matches})} files"
            if not arguments.around:
                lines.sort(key=lambda line: line.number > 1)
            files = [line.file for line in lines]
            texts = [
                line.text if arguments.around else f"[{line.file}] {line.number}: {line.text}"
                for line in lines
            ]
        if not texts:
            return ToolResult("No line matches.", "empty")
        cut = f", shown {HEAD_LINES}" if len(texts) > HEAD_LINES else ""
        return _found("\n".join([f"{counts}{cut}", *texts[:HEAD_LINES]]), files[:HEAD_LINES])


def _name(path: str) -> str:
    return path.removeprefix("./")


def _line(event: Mapping[str, Any]) -> Line | None:
    """Read a line of ripgrep's JSON; None for what is no line of a file."""
    if event["type"] not in ("match", "context"):
        return None
    of = event["data"]
    spans = [(match["start"], match["end"]) for match in of["submatches"]]
    text = _around(_bytes(of["lines"]).rstrip(b"\r\n"), spans)
    file = _name(_bytes(of["path"]).decode("utf-8", "replace"))
    return Line(file, of["line_number"], text, event["type"] == "match")


def _bytes(content: Mapping[str, str]) -> bytes:
    """Return what ripgrep gives as a text or, if it is not UTF-8, in base 64."""
    return content["text"].encode() if "text" in content else b64decode(content["bytes"])


def _around(line: bytes, matches: Sequence[tuple[int, int]]) -> str:
    """Return a line or, of a longer one than _COLUMNS, the parts around its first matches."""
    if len(line) <= _COLUMNS:
        return line.decode("utf-8", "replace")
    room, text, last = _COLUMNS, "", 0
    for start, end in matches or [(0, 0)]:
        begins = max(last, start - _BESIDE)
        ends = min(len(line), end + _BESIDE, begins + room)
        if ends > begins:
            text += "..." * (begins > last) + line[begins:ends].decode("utf-8", "ignore")
            room, last = room - (ends - begins), ends
    return f"{text}{'...' * (last < len(line))}"


class ReadArguments(Arguments):
    """The arguments of ``read_lines``."""

    files: list[str] = Field(min_length=1, max_length=20, description="Files to read.")
    first: int = Field(1, ge=1, description="The first line of each.")
    count: int = Field(HEAD_LINES, ge=1, le=1_000, description="How many lines of each.")


class ReadLines(FileTool):
    """Lines of files."""

    name = "read_lines"
    arguments = ReadArguments
    says = "Reads lines of files, each file under its name in brackets."

    def _shown(self, arguments: ReadArguments) -> ToolResult:
        texts: list[str] = []
        for file in arguments.files:
            lines = (self.folder / file).read_text("utf-8", "replace").splitlines()
            part = lines[arguments.first - 1 : arguments.first - 1 + arguments.count]
            texts.append("\n".join([f"[{file}]", *part]))
        return _found("\n\n".join(texts), arguments.files)


def _found(text: str, files: Sequence[str]) -> ToolResult:
    ids = tuple(dict.fromkeys(files))
    return ToolResult(text, "ok", ids, retrieved_tokens=count_tokens(text))


class RipgrepHands:
    """Lines, and the lines around them in the file of the best line or with most matches."""

    def __init__(self, index: Index, folder: Path) -> None:
        self._tool = Ripgrep(index, WHOLE, folder)
        self._read: set[tuple[str, str]] = set()

    def beside(self, name: str, words: Sequence[str], reading: Reading) -> str:
        """Grep lines with the name and a word."""
        either = "|".join(_literal(stem(word)) for word in words)
        pattern = rf"{_literal(name)}.*({either})|({either}).*{_literal(name)}"
        return self._lines(pattern, name, [stem(word) for word in words], reading)

    def alone(self, name: str, reading: Reading) -> str:
        """Grep lines with the name."""
        return self._lines(_literal(name), name, [], reading)

    def _lines(self, pattern: str, name: str, stems: Sequence[str], reading: Reading) -> str:
        """Grep lines, and read around the name in the file of the line with most of the words; of
        equals, that with most lines."""
        output = self._run(reading, pattern)
        lines: list[tuple[str, str]] = _SHOWN.findall(output)
        counts = Counter(file for file, _ in lines)

        def rank(line: tuple[str, str]) -> tuple[int, int]:
            return sum(of in line[1].casefold() for of in stems), counts[line[0]]

        best = max(lines, key=rank, default=None)
        if best is None:
            return ""
        return f"{best[1]}\n{self._around(_literal(name), best[0], reading)}"

    def about(self, words: Sequence[str], reading: Reading) -> str:
        """Narrow the files by one word after the other, the longest first. Read around the words in
        the first of the files that are left."""
        files: list[str] = []
        for word in sorted(words, key=len, reverse=True):
            listed = self._run(reading, _literal(stem(word)), names_only=True, files=files)
            files = listed.splitlines()[1:] or files
            if 0 < len(files) <= 2:
                break
        either = "|".join(_literal(stem(word)) for word in words)
        return "\n".join(self._around(either, file, reading) for file in files[:2])

    def _around(self, pattern: str, file: str, reading: Reading) -> str:
        if (pattern, file) in self._read:
            return ""
        self._read.add((pattern, file))
        return self._run(reading, pattern, around=AROUND, files=[file])

    def _run(self, reading: Reading, pattern: str, **arguments: Any) -> str:
        def run() -> str:
            given = {"pattern": pattern, **arguments}
            result = self._tool.run(given, tells_standing=False)
            return result.text if result.status == "ok" else ""

        return reading.call(run)


class SentenceSearch(LogicalSearch):
    """logical_search by sentences, which models cannot ask for."""

    def _options(self, arguments: Any) -> dict[str, Any]:
        return {**super()._options(arguments), "granularity": "sentence"}


class LogicalHands:
    """Replies of logical_search of preset logical_read, in one conversation."""

    def __init__(self, index: Index) -> None:
        self._passages = LogicalSearch(index, load_preset(DEFAULT_PRESET))
        self._sentences = SentenceSearch(index, self._passages.preset)
        self._shown = ReadSet()

    def beside(self, name: str, words: Sequence[str], reading: Reading) -> str:
        """Search for sentences with the name and a word, and if there is none for passages."""
        query = f'"{name}" AND ({" OR ".join(words)})'
        sentences = self._asked(self._sentences, query, reading)
        return sentences or self._asked(self._passages, query, reading)

    def alone(self, name: str, reading: Reading) -> str:
        """Search for sentences with the name."""
        return self._asked(self._sentences, f'"{name}"', reading, top_k=20)

    def about(self, words: Sequence[str], reading: Reading) -> str:
        """Search for all of the words, ranked."""
        return self._asked(self._passages, words_query(" ".join(words)), reading)

    def _asked(self, tool: Tool, query: str, reading: Reading, **arguments: Any) -> str:
        passages: list[str] = []

        def run() -> str:
            result = tool.run({"query": query, **arguments}, self._shown)
            spans = result.passages if result.status == "ok" else ()
            passages.extend(span.text_in(result.text) for span in spans)
            return result.text

        reading.call(run)
        return "\n".join(passages)


def _literal(text: str) -> str:
    """Escape the signs of a pattern. Ripgrep refuses other escapes, such as an escaped blank."""
    return _SIGNS.sub(r"\\\1", text)
