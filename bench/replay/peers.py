"""Other libraries that search by BM25, as peers: bm25s in this process, Pyserini in one of its own.

They take words, tokenised as in our index, instead of Boolean queries. A missing peer raises an
error that says how to install it, and is a gap in the replay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from arag_search.system.extras import missing_extra
from bench import BenchError
from bench.report.rounds import Played

WORKER = Path(__file__).with_name("pyserini_worker.py")

Scored = list[tuple[str, float]]
"""Ids and scores of hits, best first."""


def check_bm25s() -> str:
    """Return the version of bm25s. Raises MissingExtraError."""
    try:
        import bm25s  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise missing_extra("bench", "bm25s") from error
    return version("bm25s")


class Bm25s:
    """bm25s over tokenised passages, in Lucene's variant of BM25."""

    def __init__(self, ids: Sequence[str], words: Sequence[Sequence[str]], k1: float, b: float):
        """Index the passages."""
        import bm25s

        self._ids = ids
        self._index: Any = bm25s.BM25(k1=k1, b=b, method="lucene")
        self._index.index([list(terms) for terms in words], show_progress=False)

    def search(self, words: Sequence[str], top_k: int) -> Scored:
        """Return the best passages with any of the words; the order of equal scores is
        undefined."""
        retrieved = self._index.retrieve([list(words)], k=top_k, show_progress=False)
        return [
            (self._ids[int(place)], float(score))
            for place, score in zip(retrieved.documents[0], retrieved.scores[0], strict=True)
            if score > 0
        ]


class Pyserini:
    """Pyserini's searcher in a process of its own; a context manager.

    ``python`` is an interpreter that has it. ``versions`` are of Pyserini and of its Java, the JDK
    of ``JAVA_HOME``: the runtime that comes with embedded Lucene lacks a module that Pyserini
    needs.
    """

    def __init__(self, python: str = sys.executable) -> None:
        """Start the process. Raises BenchError if it or Pyserini does not start."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        # Some releases make a client of a model as they are imported, and never use it.
        environment = {"OPENAI_API_KEY": "none", **os.environ}
        try:
            self._process = subprocess.Popen(
                [python, "-P", str(WORKER)],  # modules beside it are not those of Python
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                text=True,
            )
            self.versions: Mapping[str, str] = self._ask("hello")
        except (OSError, BenchError) as error:
            self.close()
            why = error.what if isinstance(error, BenchError) else error.strerror
            raise BenchError(
                f"Pyserini does not start ({str(why).rstrip('.')}).",
                where=python,
                allowed="Python 3.12 or later with the extra pyserini, and a JDK that has "
                "the module jdk.incubator.vector",
                do="Name the interpreter with --pyserini-python, and the JDK with JAVA_HOME.",
            ) from error

    def __enter__(self) -> Pyserini:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        process: subprocess.Popen[str] | None = getattr(self, "_process", None)
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._errors.close()

    def build(self, source: Path, folder: Path) -> dict[str, Any]:
        """Index JSON lines of id and contents; ``seconds``, ``bytes``, ``peak_bytes``."""
        return self._ask("build", source=str(source), folder=str(folder))

    def open(self, folder: Path, queries: Sequence[Sequence[str]], k1: float, b: float) -> int:
        """Open an index for queries of these words; how many documents it has."""
        words = [" ".join(words) for words in queries]
        return self._ask("open", folder=str(folder), queries=words, k1=k1, b=b)["documents"]

    def play(self, clients: int, top_k: int) -> Played:
        """Run all queries once, timed within the process."""
        timings = self._ask("play", clients=clients, top_k=top_k)
        return Played(timings["seconds"], timings["each"])

    def _ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises BenchError for an error, or if the process
        has ended."""
        to, answers = self._process.stdin, self._process.stdout
        if to is None or answers is None:
            raise BenchError("The process of Pyserini has no pipes.")
        try:
            to.write(json.dumps({"do": what, **arguments}) + "\n")
            to.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise BenchError(f"The process of Pyserini ended: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(f"Pyserini failed: {answer['error']}.")
        return answer

    def _last_words(self) -> str:
        self._process.wait(10)
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "without a word"
