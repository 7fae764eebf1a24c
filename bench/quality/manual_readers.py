"""Two scripted readers of manuals and code: one with ripgrep and sed, one with our tools.

Both get the same questions and follow a fixed policy. Neither knows the answer: a reader goes on
until the text it read shows the answer, as a judge outside says, or its calls are spent. A reply is
bounded alike for both. ripgrep has two policies: to look for the name first, or for the markup of
its definition, such as ``<dt``, which the script then knows beforehand. Where it lists settings, a
pipe to awk is part of one call.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, ToolResult
from arag_search.tools.references import Searches
from bench import BenchError
from bench.report.estimates import counted, mean, ratio_of_means
from bench.report.rows import Figure, Row, Target
from bench.workbench import say

CALLS = 4
"""The calls of a reader for a question."""
MAX_CHARACTERS = 16_000
"""The longest output of ripgrep or sed that is read, about as long as a reply of ours may be."""
MAX_COLUMNS = 400
_SHOWN_LINES = 40
_LINES_READ = 24
_HIT = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?P<text>.*)$", re.M)
_TAG = re.compile(r"<[^<>]*>")
_TERM = r'<dt[^>]*><span class="term"><code class="varname">[\w.]+'
"""The beginning of a setting in PostgreSQL's manual."""

Segments = Sequence[str]
"""Texts that were read: the passages of a reply, or an output as a whole."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to both readers.

    "define" asks for the text of the definition of ``names[0]``; "list" for the settings whose
    text has the phrase ``names[0]``; "exclude" for the settings whose text has the word
    ``names[0]`` and not ``names[1]``. ``definition`` is the regular expression of a line that
    defines the name. ``shown`` returns how much of the answer, 0 to 1, texts show.
    """

    kind: Literal["define", "list", "exclude"]
    names: tuple[str, ...]
    query: str
    shown: Callable[[Segments], float]
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader spent on a question, and how much of the answer it was shown."""

    calls: int
    tokens: int
    shown: float


def _read(question: Question, outputs: Iterator[tuple[Segments, int]]) -> Reading:
    """Read outputs, each with its tokens, until they show the answer or the calls are spent."""
    segments: list[str] = []
    tokens = shown = 0.0
    calls = 0
    for texts, count in outputs:
        calls, tokens = calls + 1, tokens + count
        segments += texts
        shown = question.shown(segments)
        if shown == 1 or calls == CALLS:
            break
    return Reading(calls, int(tokens), shown)


# Our tools


class Tools:
    """The tools of preset ``logical_read`` over an index, called in conversations of their own."""

    def __init__(self, index: Index) -> None:
        self._tools = tools_of(load_preset(DEFAULT_PRESET), index)

    def search(self, read_set: ReadSet | None = None, **arguments: Any) -> ToolResult:
        """Call ``logical_search``; without a set of what was read, as the first call."""
        return self._call("logical_search", read_set or ReadSet(searches=Searches()), arguments)

    def _call(self, name: str, read_set: ReadSet, arguments: Mapping[str, Any]) -> ToolResult:
        result = self._tools[name].run(arguments, read_set)
        if result.status == "error":
            raise BenchError(f"{name} failed: {result.text}", where=str(arguments))
        return result

    def read(self, question: Question) -> Reading:
        """Answer a question: a search for the name, then its hits in full, first those that show a
        line that begins like its definition; for a list, pages."""
        return _read(question, self._outputs(question))

    def _outputs(self, question: Question) -> Iterator[tuple[Segments, int]]:
        read_set = ReadSet(searches=Searches())
        if question.kind != "define":
            yield from self._pages(question, read_set)
            return
        result = self.search(read_set, query=question.query)
        texts = passages_of(result)
        yield texts, result.result_tokens
        name = re.escape(question.names[0].rpartition(".")[2])
        line = re.compile(rf"(?:^|left out\) )\s*(?:def |class |\S*\.)?{name}(?: ?\(|$)", re.M)
        hits = zip(result.passages, texts, strict=False)
        defining = {span.id: line.search(text) is not None for span, text in hits}
        for id in sorted(defining, key=lambda id: not defining[id]):
            reply = self._call("chunk_read", read_set, {"chunk_ids": [id]})
            # Of what was shown before, the reply has only the number of its sentences. The judge
            # reads them where they belong, as the reader can.
            whole = self._call("chunk_read", ReadSet(), {"chunk_ids": [id]})
            yield passages_of(whole), reply.result_tokens

    def _pages(self, question: Question, read_set: ReadSet) -> Iterator[tuple[Segments, int]]:
        granularity = "sentence" if question.kind == "list" else "chunk"
        offset: int | None = 0
        while offset is not None:
            result = self.search(
                read_set,
                query=question.query,
                granularity=granularity,
                show="lines",
                offset=offset,
            )
            yield passages_of(result), result.result_tokens
            more = re.search(r"offset=(\d+)", result.text.rpartition("\n")[2])
            offset = None if more is None else int(more[1])


def passages_of(result: ToolResult) -> Segments:
    """Return the texts of the passages of a reply, with their headers; all of it without any."""
    return [result.text[span.start : span.end] for span in result.passages] or [result.text]


# ripgrep and sed


class Grep:
    """ripgrep over a folder of pages or modules, and sed on what it finds; with
    ``definition_first``, it looks for the markup of a definition before it looks for a name."""

    def __init__(
        self, command: Path, folder: Path, files: str, *, definition_first: bool = False
    ) -> None:
        self._command, self._folder, self._files = command, folder, files
        self._definition_first = definition_first

    def read(self, question: Question) -> Reading:
        """Answer a question: the lines with the name, then the lines at its definition, until the
        calls are spent; for a list, a look at the lines and one pipe."""
        outputs = (
            ([html.unescape(_TAG.sub(" ", text))], count_tokens(text))
            for text in self._outputs(question)
        )
        return _read(question, outputs)

    def _outputs(self, question: Question) -> Iterator[str]:
        by_name = ("-w", "-F", "-m", "5", "--", question.names[0])
        if question.kind != "define":
            yield self._lines(*by_name)
            yield self._settings(*question.names)
            return
        searches = [by_name, ("--", question.definition)]
        if self._definition_first:
            searches.reverse()
        places: list[tuple[str, int, str]] = []
        for search in searches:
            output = self._lines(*search)
            yield output
            places += [
                (hit["file"], int(hit["line"]), hit["text"]) for hit in _HIT.finditer(output)
            ]
            if any(re.search(question.definition, text) for _, _, text in places):
                break
        places.sort(key=lambda place: not re.search(question.definition, place[2]))
        for file, line, _ in places:
            lines = (self._folder / file).read_text("utf-8", "replace").split("\n")
            yield "\n".join(lines[line - 1 : line + _LINES_READ])[:MAX_CHARACTERS]

    def _lines(self, *search: str) -> str:
        """Return the first lines that a search prints, long ones cut."""
        output = self._run(
            "-n", "--max-columns", str(MAX_COLUMNS), "--max-columns-preview", *search
        )
        return "\n".join(output.split("\n")[:_SHOWN_LINES])[:MAX_CHARACTERS]

    def _settings(self, phrase: str, without: str | None = None) -> str:
        """Return the settings after whose term the phrase occurs and the other word does not, as a
        pipe of ``rg -o`` to awk prints them."""
        words = [rf"\b{word}\b".replace(" ", r"\s+") for word in (phrase, without) if word]
        output = self._run("-o", "-I", "-N", "-U", "-i", "--", "|".join([_TERM, *words]))
        names: list[str] = []
        for group in re.split(f"(?={_TERM})", output):
            term, *matches = group.split("\n")
            text = " ".join(" ".join(matches).lower().split())
            if phrase.lower() in text and not (without and without.lower() in text):
                names.append(term.rpartition(">")[2])
        return "\n".join(names)[:MAX_CHARACTERS]

    def _run(self, *options: str) -> str:
        command = (str(self._command), "--no-heading", "--sort=path", "-g", self._files)
        done = subprocess.run(
            (*command, *options, "."),
            cwd=self._folder,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode > 1:  # 1: no match
            raise BenchError(f"ripgrep failed: {done.stderr.strip()}", where=str(self._command))
        return done.stdout


def names_in(segments: Segments, names: Collection[str]) -> set[str]:
    """Return those of the names of settings that texts have as words."""
    return {word for text in segments for word in re.findall(r"[\w.]*\w", text) if word in names}


# Both readers


def readers(
    tools: Tools,
    ripgrep: Path,
    folder: Path,
    files: str,
    groups: Mapping[str, Sequence[Question]],
) -> list[Figure]:
    """Measure what our tools and ripgrep spend on the questions of each group, and what they
    find."""
    sides: dict[str, Callable[[Question], Reading]] = {
        "ours": tools.read,
        "ripgrep by name": Grep(ripgrep, folder, files).read,
        "ripgrep by definition": Grep(ripgrep, folder, files, definition_first=True).read,
    }
    figures: list[Figure] = []
    for group, questions in groups.items():
        say(f"readers: {group}")
        readings = {
            side: [read(question) for question in questions]
            for side, read in sides.items()
            if questions[0].kind == "define" or side != "ripgrep by definition"
        }
        rows = [row for side, of in readings.items() for row in _reading_rows(side, of)]
        for side in list(readings)[1:]:
            rows += _compared(side, readings["ours"], readings[side])
        figures.append(Figure(f"readers: {group}", tuple(rows), {"questions": len(questions)}))
    return figures


def _reading_rows(side: str, readings: Sequence[Reading]) -> list[Row]:
    rows = [
        mean(f"{side}: calls", [reading.calls for reading in readings]),
        mean(f"{side}: tokens", [reading.tokens for reading in readings]),
    ]
    shares = [reading.shown for reading in readings]
    if len(shares) > 1 and set(shares) <= {0, 1}:
        return [*rows, counted(f"{side}: found", [share == 1 for share in shares])]
    return [*rows, mean(f"{side}: share found", shares)]


def _compared(side: str, ours: Sequence[Reading], theirs: Sequence[Reading]) -> list[Row]:
    """Compare us with a side. Fewer tokens are worth something only where no less is found."""
    tokens = [[reading.tokens for reading in of] for of in (ours, theirs)]
    more = [own.shown - other.shown for own, other in zip(ours, theirs, strict=True)]
    return [
        ratio_of_means(f"tokens, ours over {side}", *tokens, Target("at most", 1)),
        mean(f"share found, ours less {side}", more, Target("at least", 0)),
    ]
