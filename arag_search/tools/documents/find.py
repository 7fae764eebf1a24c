"""find: the tool of AgenticRAG that looks for patterns in one document (section 3.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from arag_search.query.fields import DOC_ID
from arag_search.query.lexer import REGEX
from arag_search.query.problems import ProblemKind
from arag_search.query.regexes import SlowPatternError, Stopwatch
from arag_search.query.tree import KeywordEquals, Regex
from arag_search.search.index import Index
from arag_search.search.reading.lines import DocumentLines
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.conversation import Reference
from arag_search.tools.documents.lines import (
    REFERENCE_ID,
    DocumentTool,
    ShownLines,
    cut_lines,
    line_spans,
    lines_result,
    numbered,
    reference_line,
    vector_units,
)
from arag_search.tools.preset import PLAIN, Preset
from arag_search.tools.replies.spans import NOT_SHOWN
from arag_search.tools.replies.writing import one_line
from arag_search.tools.tool import Arguments, ReadSet, ToolResult, not_run

MAX_PATTERNS = 10
MAX_PATTERN_CHARACTERS = 200
PASSAGES_A_PATTERN = 2
MAX_PLACES = 100
MAX_CONTEXT_LINES = 100
MAX_OTHER_LINES = 10
_MAX_PATTERN_TOKENS = 40

Lines = tuple[int, int]
"""A range of lines: the first and the last."""

Pattern = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_CHARACTERS)]

FIND_RESULT_TOKENS = 11_000
_CONTEXT_LINES = 2


class FindArguments(Arguments):
    """The arguments of find."""

    reference_id: str = Field(min_length=1, description=REFERENCE_ID)
    patterns: list[Pattern] = Field(
        min_length=1,
        max_length=MAX_PATTERNS,
        description="Texts to look for; case and line ends do not matter.",
    )
    mode: Literal["lexical", "semantic"] = Field(
        "lexical", description="lexical finds the text itself, semantic sentences of like meaning."
    )
    matches: int = Field(
        PASSAGES_A_PATTERN, ge=1, le=MAX_PLACES, description="Places to show of each pattern."
    )
    context: int = Field(
        _CONTEXT_LINES,
        ge=0,
        le=MAX_CONTEXT_LINES,
        description="Lines to show before and after a place.",
    )


@dataclass(slots=True)
class PatternMatches:
    """The matches of a pattern: the lines of each, in the order of the document, and the windows of
    lines to show. ``note`` is about the windows."""

    pattern: str
    matches: list[Lines]
    windows: list[Lines] = field(default_factory=list[Lines])
    note: str = ""


class Find(DocumentTool):
    """A tool that shows some places of a document for each pattern, two by default, and names the
    lines of others."""

    name = "find"
    arguments = FindArguments

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        self.takes_regexes = preset.reproduces is None
        self.can_compare = preset.semantic_find and "sentence" in vector_units(index)
        super().__init__(index, preset)
        self.max_result_tokens = min(preset.max_result_tokens, FIND_RESULT_TOKENS)

    def _hidden(self) -> list[str]:
        of_ours = [] if self.takes_regexes else ["matches", "context"]
        return of_ours if self.can_compare else ["mode", *of_ours]

    def _features(self) -> dict[str, bool]:
        return {"semantic": self.can_compare, "regexes": self.takes_regexes}

    def _call(self, arguments: FindArguments, read_set: ReadSet) -> ToolResult:
        reference, lines = self.document(arguments.reference_id, read_set.references)
        patterns = list(dict.fromkeys(arguments.patterns))
        places, context = arguments.matches, arguments.context
        if arguments.mode == "semantic":
            all_matches = [self._nearest(lines, pattern, places, context) for pattern in patterns]
        else:
            try:
                with Stopwatch():
                    occurrences = [self._occurrences(lines, pattern) for pattern in patterns]
            except SlowPatternError:
                return not_run([ProblemKind.SLOW_PATTERN.value])
            all_matches = matches_of(lines, patterns, occurrences, places, context)
        visible = read_set if self.is_guarded(read_set) else None
        reply = _Reply(lines, reference, self.max_result_tokens, visible)
        result = reply.of(all_matches)
        reference.note(result.ids)
        return result

    def _occurrences(self, lines: DocumentLines, pattern: str) -> list[tuple[int, int]]:
        match = REGEX.fullmatch(pattern) if self.takes_regexes and pattern[0] == "/" else None
        if match is None:
            return lines.occurrences(pattern)
        regex = Regex(match["pattern"], bool(match["flag"]))
        return lines.matches(regex.pattern, regex.ignore_case)

    def _nearest(
        self, lines: DocumentLines, pattern: str, places: int, context: int
    ) -> PatternMatches:
        within = str(KeywordEquals(DOC_ID, lines.doc_id))
        near = self.index.nearest_sentences(pattern, places, filter=within)
        matches: list[Lines] = []
        cosines: list[str] = []
        for sentence in near:
            at = lines.lines_of_sentences(sentence.chunk.id, [sentence.number])
            if at is not None:
                matches.append(at)
                cosines.append(f"line {lines.name(at[0])} (cosine {sentence.score:.2f})")
        windows = [_window(at, lines, context) for at in matches]
        note = f"nearest: {', '.join(cosines)}" if cosines else ""
        return PatternMatches(pattern, sorted(matches), windows, note)


def matches_of(
    lines: DocumentLines,
    patterns: Sequence[str],
    occurrences: Sequence[Sequence[tuple[int, int]]],
    places: int,
    context: int,
) -> list[PatternMatches]:
    """Return the matches of patterns, each with its windows to show. ``occurrences`` are each
    pattern's places. A pattern has at most ``places`` windows of different text, which share no
    line.

    Windows that hold matches of the most patterns come first, then the earlier ones. O(patterns x
    (length of the document + matches x patterns x log matches)).
    """
    all_matches = [
        PatternMatches(pattern, [lines.lines_between(*place) for place in places])
        for pattern, places in zip(patterns, occurrences, strict=True)
    ]
    starts = [[first for first, _ in matches.matches] for matches in all_matches]

    def holds(at: int, window: Lines) -> bool:
        place = bisect_left(starts[at], window[0])
        return place < len(starts[at]) and all_matches[at].matches[place][1] <= window[1]

    for matches in all_matches:
        windows = dict.fromkeys(_window(match, lines, context) for match in matches.matches)
        ranked = sorted(
            windows,
            key=lambda window: (-sum(holds(at, window) for at in range(len(all_matches))), window),
        )
        texts: set[tuple[str, ...]] = set()
        for window in ranked:
            if len(matches.windows) == places:
                break
            text = tuple(lines.line(number) for number in range(window[0], window[1] + 1))
            if text not in texts and not any(_overlap(window, own) for own in matches.windows):
                texts.add(text)
                matches.windows.append(window)
    return all_matches


def merged(windows: Sequence[Lines]) -> list[Lines]:
    """Return windows in order; windows that share a line are merged."""
    result: list[Lines] = []
    for first, last in sorted(windows):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def _window(match: Lines, lines: DocumentLines, context: int) -> Lines:
    return max(match[0] - context, 0), min(match[1] + context, len(lines) - 1)


class _Reply:
    """A reply on one document. Lines that are still ``visible`` in an opened window are named."""

    def __init__(
        self,
        lines: DocumentLines,
        reference: Reference,
        max_tokens: int,
        visible: ReadSet | None,
    ) -> None:
        self._lines = lines
        self._reference = reference
        self._max_tokens = max_tokens
        self._visible = visible
        self._texts: list[str] = []
        self._length = 0
        self._tokens = 0
        self._shown: list[ShownLines] = []
        self._left_out: list[str] = []
        self._retrieved = 0

    def of(self, all_matches: Sequence[PatternMatches]) -> ToolResult:
        """Return the lines about each pattern, each with its windows that are not shown yet."""
        count = counted(len(all_matches), "pattern")
        lines = counted(self._lines.count, "line")
        self._add(f"{reference_line(self._reference)}: {count} in {lines}.")
        left = merged([window for matches in all_matches for window in matches.windows])
        merges = tuple(left)
        for matches in all_matches:
            self._add(_about(self._lines, matches, merges))
            for window in merges:
                if window in left and any(_is_in(own, window) for own in matches.windows):
                    left.remove(window)
                    self._add_window(window, _others(matches, all_matches, window))
        if self._left_out:
            self._add(f"{NOT_SHOWN}{', '.join(self._left_out)}.")
        return lines_result(
            "\n".join(self._texts),
            "ok" if any(matches.matches for matches in all_matches) else "empty",
            self._reference,
            line_spans(self._lines, self._reference, self._shown),
            self._retrieved,
        )

    def _add_window(self, window: Lines, others: str) -> None:
        first, last = window
        name = f"line{'s' * (first != last)} {self._lines.name(first, last)}"
        above = self._visible and self._visible.window(self._reference.id, first, last)
        if above is not None:
            self._add(f"{name}{others}: above, in step {above.step}.")
            return
        texts = numbered(self._lines, first, last)
        tokens = count_tokens("\n".join(texts))
        room = self._max_tokens - self._tokens - 100
        if tokens > room:
            texts = [] if self._shown or room <= 0 else cut_lines(texts, room)
            if not texts or len(texts[0].removesuffix(" ...")) <= len(
                f"{self._lines.name(first)}: "
            ):
                self._left_out.append(name)
                return
        self._add(f"{name}{others}")
        self._retrieved += count_tokens("\n".join(texts))
        start = self._length
        self._add("\n".join(texts))
        self._shown.append(ShownLines.of(self._lines, texts, start, first))

    def _add(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text) + 1
        self._tokens += count_tokens(text) + 1


def _about(lines: DocumentLines, matches: PatternMatches, shown: Sequence[Lines]) -> str:
    name = f'"{cut_to(one_line(matches.pattern), _MAX_PATTERN_TOKENS)}"'
    if matches.note:
        return f"{name}: {matches.note}."
    if not matches.matches:
        return f"{name}: no match. Try a shorter pattern, or open."
    others = [match for match in matches.matches if not any(_is_in(match, at) for at in shown)]
    count = len(matches.matches)
    text = f"{name}: {counted(count, 'match', 'matches')}"
    if not others:
        return f"{text}."
    numbers = list(dict.fromkeys(lines.name(first) for first, _ in others))
    named = ", ".join(numbers[:MAX_OTHER_LINES])
    more = f" and {len(numbers) - MAX_OTHER_LINES:,} more" if numbers[MAX_OTHER_LINES:] else ""
    return f"{text}, shown {count - len(others)}; others at lines {named}{more}."


def _others(matches: PatternMatches, all_matches: Sequence[PatternMatches], window: Lines) -> str:
    names = [
        f'"{cut_to(one_line(other.pattern), _MAX_PATTERN_TOKENS)}"'
        for other in all_matches
        if other is not matches and any(_is_in(match, window) for match in other.matches)
    ]
    return f" (also {', '.join(names)})" if names else ""


def _overlap(first: Lines, second: Lines) -> bool:
    return first[0] <= second[1] and second[0] <= first[1]


def _is_in(inner: Lines, outer: Lines) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
