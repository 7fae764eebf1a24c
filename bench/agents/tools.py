"""The two tools in the hands of the agent: ripgrep over files, and logical_search over an index of
them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.evaluation.interfaces import words_query
from arag_search.search.index import Index
from arag_search.tools.base import ReadSet
from bench.agents.policy import Reading, stem

HEAD_LINES = 100
"""Lines of output that are read; tools of agents stop at 100 to 250."""
AROUND = 12
"""Lines that are read before and after a line."""
_COLUMNS = 500
_SIGNS = re.compile(r"([.^$*+?{}\[\]\\|()])")


class Ripgrep:
    """Lines, and the lines around them in the file of the best line or with most matches."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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
        output = self._run(reading, "-n", "-H", "--no-heading", "-e", pattern)
        lines = [line.split(":", 2) for line in output.splitlines() if line.count(":") > 1]
        counts = Counter(file for file, *_ in lines)

        def rank(line: list[str]) -> tuple[int, int]:
            return sum(of in line[2].casefold() for of in stems), counts[line[0]]

        best = max(lines, key=rank, default=None)
        if best is None:
            return ""
        return f"{best[2]}\n{self._around(_literal(name), best[0], reading)}"

    def about(self, words: Sequence[str], reading: Reading) -> str:
        """Narrow the files by one word after the other, the longest first, and read around the
        words in the first of those that are left."""
        files: list[str] = []
        for word in sorted(words, key=len, reverse=True):
            listed = self._run(reading, "-l", "-F", "-e", stem(word), places=files)
            files = listed.splitlines() or files
            if 0 < len(files) <= 2:
                break
        either = "|".join(_literal(stem(word)) for word in words)
        return "\n".join(self._around(either, file, reading) for file in files[:2])

    def _around(self, pattern: str, file: str, reading: Reading) -> str:
        if (pattern, file) in self._read:
            return ""
        self._read.add((pattern, file))
        # Without the numbers of lines, which would stand between the words of a sentence.
        return self._run(reading, "-N", "-I", "-C", str(AROUND), "-e", pattern, places=[file])

    def _run(self, reading: Reading, *options: str, places: Sequence[str] = ()) -> str:
        command = ["rg", "-i", "--sort", "path", "--max-columns", str(_COLUMNS),
                   "--max-columns-preview", *options, *(places or ["."])]  # fmt: skip

        def run() -> str:
            done = subprocess.run(command, cwd=self._folder, capture_output=True, check=False)
            return "\n".join(done.stdout.decode("utf-8", "replace").splitlines()[:HEAD_LINES])

        return reading.call(run)


class LogicalSearch:
    """Replies of logical_search of preset logical_read, in one conversation."""

    def __init__(self, index: Index) -> None:
        self._tool = tools_of(load_preset(DEFAULT_PRESET), index)["logical_search"]
        self._shown = ReadSet()

    def beside(self, name: str, words: Sequence[str], reading: Reading) -> str:
        """Search for sentences with the name and a word, and if there is none for passages."""
        query = f'"{name}" AND ({" OR ".join(words)})'
        sentences = self._asked(query, reading, granularity="sentence")
        return sentences or self._asked(query, reading)

    def alone(self, name: str, reading: Reading) -> str:
        """Search for sentences with the name."""
        return self._asked(f'"{name}"', reading, granularity="sentence", top_k=20)

    def about(self, words: Sequence[str], reading: Reading) -> str:
        """Search for all of the words, ranked."""
        return self._asked(words_query(" ".join(words)), reading)

    def _asked(self, query: str, reading: Reading, **arguments: Any) -> str:
        passages: list[str] = []

        def run() -> str:
            result = self._tool.run({"query": query, **arguments}, self._shown)
            spans = result.passages if result.status == "ok" else ()
            passages.extend(span.text_in(result.text) for span in spans)
            return result.text

        reading.call(run)
        return "\n".join(passages)


def _literal(text: str) -> str:
    """Escape the signs of a pattern; ripgrep refuses other escapes, such as that of a blank."""
    return _SIGNS.sub(r"\\\1", text)
