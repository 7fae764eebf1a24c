"""Cost of building each side of the replay: seconds, bytes on disk, peak memory.

    python -m bench.replay.build_cost SIDE CORPUS FOLDER OUT [ARGUMENT...]

Every build runs in a process of its own, so that its peak memory is its own and Java starts equally
cold for every side. The seconds are those of the build alone, without the start of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from arag_search.corpus import Chunk
from arag_search.engines.write import DEFAULT_B, DEFAULT_K1
from arag_search.query import analysis
from bench import BenchError
from bench.replay.pyserini_worker import peak_resident
from bench.report.rounds import timed
from bench.speed.indexing import size_of
from bench.workbench import last_lines

if TYPE_CHECKING:
    from bench.replay.peers import Bm25s

CHUNKS, WORDS = "chunks.jsonl", "words.jsonl"


@dataclass(frozen=True, slots=True)
class Sources:
    """The input of builds: the corpus file, and in ``folder`` its chunks and their words, prepared
    for sides that do no chunking."""

    corpus: Path
    folder: Path

    @property
    def chunks(self) -> Path:
        """JSON lines of id, doc_id, title and content."""
        return self.folder / CHUNKS

    @property
    def words(self) -> Path:
        """JSON lines of id and contents: title and text, with blanks between the words."""
        return self.folder / WORDS

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Write both files."""
        with self.chunks.open("wb") as passages, self.words.open("wb") as words:
            for chunk in chunks:
                names = {"id": chunk.id, "doc_id": chunk.doc_id}
                text = {"title": chunk.title, "content": chunk.content}
                passages.write(orjson.dumps({**names, **text}) + b"\n")
                contents = " ".join(searched_words(chunk))
                words.write(orjson.dumps({"id": chunk.id, "contents": contents}) + b"\n")


def searched_words(chunk: Chunk) -> list[str]:
    """Return all words of a passage, those of its title first."""
    return [*analysis.terms(chunk.title), *analysis.terms(chunk.content)]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one build. ``bytes`` is 0 if nothing is written, ``peak_bytes`` is None if the
    system does not report it."""

    seconds: float
    bytes: int
    peak_bytes: int | None


def cost(side: str, sources: Sources, out: str, extra: Sequence[str] = ()) -> Cost:
    """Build a side of ``BUILDS`` in a process of its own. Raises BenchError if it fails."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.replay.build_cost", side),
            *(str(sources.corpus), str(sources.folder), out, *extra),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = last_lines(done.stderr)
        raise BenchError(f"The build of {side} failed: {' '.join(lines)}", where=out)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


# What is built, in the process


def _embedded(sources: Sources, out: str) -> None:
    _build(sources, out, ())


def _without_sentences(sources: Sources, out: str) -> None:
    _build(sources, out, ("sentences",))


def _build(sources: Sources, out: str, without: tuple[str, ...]) -> None:
    from index_jobs.build.new_index import build_index
    from index_jobs.build.options import BuildOptions

    build_index([str(sources.corpus)], out, BuildOptions(without=without))


def _vectors(sources: Sources, out: str, index: str, encoder: str) -> None:
    from index_jobs.embedding.job import embed_index
    from index_jobs.embedding.plan import EmbedOptions

    embed_index(Path(index), encoder, EmbedOptions(vectors=out, units=("passage",)))


def _bare(sources: Sources, out: str) -> None:
    from bench.speed.bare import index_with_stored_names

    index_with_stored_names(_chunks(sources), Path(out), "en")


def _chunks(sources: Sources) -> Iterator[Chunk]:
    for number, line in enumerate(sources.chunks.read_bytes().splitlines()):
        made = orjson.loads(line)
        yield Chunk(**made, part=1, parts=1, ordinal=number, sentence_ends=(), metadata={})


def _bm25s(sources: Sources, out: str) -> None:
    indexed_words(sources, DEFAULT_K1, DEFAULT_B).save(Path(out))


def indexed_words(sources: Sources, k1: float, b: float) -> Bm25s:
    """Index the words of all passages with bm25s. Raise MissingExtraError."""
    from bench.replay.peers import Bm25s

    lines = [orjson.loads(line) for line in sources.words.read_bytes().splitlines()]
    words = [line["contents"].split(" ") for line in lines]
    return Bm25s([line["id"] for line in lines], words, k1, b)


def _scan(sources: Sources, out: str) -> None:
    texts = scanned_texts(_chunks(sources))
    if not texts:
        raise BenchError("There is nothing to scan.", where=str(sources.chunks))


def scanned_texts(chunks: Iterator[Chunk] | Sequence[Chunk]) -> list[str]:
    """Return what A-RAG's scan keeps in memory: titles and texts, lower-cased."""
    return [f"{chunk.title}\n{chunk.content}".lower() for chunk in chunks]


BUILDS: Mapping[str, Callable[..., None]] = {
    "embedded": _embedded,
    "embedded, no sentences": _without_sentences,
    "OpenSearch": _embedded,
    "vectors": _vectors,
    "bare Lucene": _bare,
    "bm25s": _bm25s,
    "scan": _scan,
}
"""The builds by name; each takes the sources, its target, and further arguments. That of Pyserini
runs in its own process (``bench.replay.peers``)."""


def main(arguments: Sequence[str]) -> int:
    """Build the side that is named, and print its cost as JSON."""
    side, corpus, folder, out, *extra = arguments
    sources = Sources(Path(corpus), Path(folder))
    seconds = timed(lambda: BUILDS[side](sources, out, *extra))
    written = 0 if "://" in out else size_of(Path(out))
    print(json.dumps(asdict(Cost(seconds, written, peak_resident()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
