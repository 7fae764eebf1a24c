"""keyword_search against a scan of every text, at growing sizes of copies of the corpus."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import orjson

from arag_search.corpus import Chunk
from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.report.rounds import Side, interleaved, percentile, timed
from bench.report.rows import Figure, Row, Target
from bench.speed.bare import scan, without_query_cache
from bench.speed.queries import keyword_sets
from bench.workbench import BoundedProgress, Workbench, check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

SCALES = (1, 10, 100)
TARGETS = {100: Target("at least", 100)}
TOP_K = 5
SCANNED_SETS = 5
"""Sets of keywords that both sides search in one round; rounds share no sets."""
OWN_SETS = 300
"""Further sets for keyword_search alone, whose times are reported by percentile."""
MAX_BUILD_S = 900.0

_BYTES_PER_BYTE = 4
"""Disk space that is required: the JSON lines, the index, and the index during a merge."""

KeywordSets = Sequence[tuple[str, ...]]


def measure(
    bench: Workbench,
    rounds: int,
    *,
    scales: Sequence[int] = SCALES,
    max_build_s: float = MAX_BUILD_S,
    own_sets: int = OWN_SETS,
) -> Figure:
    """Measure the time of a search of both at each scale.

    The scan reads lower-cased texts in memory; keyword_search is called as users call it, snippets
    included. Raises BenchError if the two do not compute the same (see ``_check``) or the disk is
    too small, BuildError beyond ``max_build_s`` for one index.
    """
    own, *by_round = _sets(bench, rounds, own_sets)
    rows: list[Row] = []
    details: dict[str, object] = {"measured_on": "copies of the corpus, not a corpus"}
    for scale in sorted(scales):
        scale_rows, more = _at_scale(bench, scale, own, by_round, max_build_s)
        rows += scale_rows
        details[f"{scale}x"] = more
    details["examples"] = [list(keywords) for keywords in own[:10]]
    return Figure("keyword", tuple(rows), details)


def _sets(bench: Workbench, rounds: int, own_sets: int) -> list[KeywordSets]:
    """Draw the sets of keyword_search alone, of the warm-up, and of each round."""
    wanted = own_sets + (rounds + 1) * SCANNED_SETS
    drawn = iter(keyword_sets(bench.chunks, wanted))
    sizes = [own_sets, *[SCANNED_SETS] * (rounds + 1)]
    return [list(islice(drawn, size)) for size in sizes]


def _at_scale(
    bench: Workbench,
    scale: int,
    own: KeywordSets,
    by_round: Sequence[KeywordSets],
    max_build_s: float,
) -> tuple[list[Row], dict[str, object]]:
    with bench.room() as room, without_query_cache():
        build_s = build_copies(bench, scale, room, max_build_s)
        texts = [passage.searched.lower() for passage in copies(bench.chunks, scale)]
        with open_index(room / "index", search_timeout_s=None) as index:
            if scale == 1:
                _check(bench, index, texts, by_round[0])
            alone = [timed(lambda k=k: index.keyword_search(k, top_k=TOP_K)) for k in own]
            sides: dict[str, Side] = {
                "scan": _side(by_round, lambda k: scan(texts, k, TOP_K)),
                "ours": _side(by_round, lambda k: index.keyword_search(k, top_k=TOP_K)),
            }
            timings = interleaved(sides, len(by_round) - 1)
            title = f"{scale}x ({len(texts):,} passages)"
            ratio = timings.ratio("scan", "ours")
    rows = [
        Row.of_ratio(f"{title}: speed of ours to the scan", ratio, TARGETS.get(scale)),
        *(
            Row(f"{scale}x: {name}", timings.median_s(name) / SCANNED_SETS * 1000, "ms/search")
            for name in sides
        ),
    ]
    more: dict[str, object] = {
        "passages": len(texts),
        "build_seconds": round(build_s, 1),
        "seconds": timings.seconds,
        "ours_alone_ms": {
            "median": statistics.median(alone) * 1000,
            "95th percentile": percentile(alone, 0.95) * 1000,
            "searches": len(alone),
        },
    }
    return rows, more


def build_copies(bench: Workbench, scale: int, room: Path, max_build_s: float) -> float:
    """Build the index of the copies in ``room``, and return the seconds."""
    passages = scale * len(bench.chunks)
    say(f"keyword: {scale}x, an index of {passages:,} copied passages")
    check_room(room, _BYTES_PER_BYTE * scale * bench.corpus.stat().st_size)
    source = room / "copies.jsonl"
    write(copies(bench.chunks, scale), source)
    options = BuildOptions(format="documents", without=("sentences",))
    report = build_index([str(source)], room / "index", options, BoundedProgress(max_build_s))
    source.unlink()
    return report.seconds


def _side(by_round: Sequence[KeywordSets], search: Callable[[tuple[str, ...]], object]) -> Side:
    """Return a side whose calls search the sets of one round after another."""
    rounds: Iterator[KeywordSets] = iter(by_round)

    def run() -> float:
        wanted = next(rounds)
        return timed(lambda: [search(keywords) for keywords in wanted])

    return run


def _check(bench: Workbench, index: Index, texts: Sequence[str], sets: KeywordSets) -> None:
    """Raise BenchError unless the scan finds what keyword_search by substrings finds."""
    for keywords in sets:
        result = index.keyword_search(keywords, top_k=TOP_K, matching="substring", snippets=False)
        ours = [(hit.doc_id, hit.score) for hit in result.hits]
        scanned = [
            (f"{bench.chunks[-place].id}-0", score) for score, place in scan(texts, keywords, TOP_K)
        ]
        if ours != scanned:
            raise BenchError(
                "The scan finds other passages than keyword_search with substrings.",
                where=f"{keywords}: {ours} | {scanned}",
            )


# Copies of a corpus, for comparisons that only need more text to scan. They are no corpus: document
# frequencies grow with the number of copies, and no new words appear. Figures say that they are of
# copies.


SEED = 1741


@dataclass(frozen=True, slots=True)
class Copy:
    """A passage of a copy."""

    id: str
    title: str
    text: str

    @property
    def searched(self) -> str:
        """The text that a scan reads: title and text, because keyword_search counts both."""
        return f"{self.title}\n{self.text}"


def copies(chunks: Sequence[Chunk], times: int, seed: int = SEED) -> Iterator[Copy]:
    """Yield all chunks ``times`` times: first as they are, then with other ids and shuffled
    sentences. The copies are the same for the same seed."""
    random = Random(seed)
    for number in range(times):
        for chunk in chunks:
            text = chunk.content
            if number:
                sentences = [sentence.strip() for sentence in chunk.sentences()]
                random.shuffle(sentences)
                text = " ".join(sentences)
            yield Copy(f"{chunk.id}-{number}", chunk.title, text)


def write(passages: Iterator[Copy], path: Path) -> int:
    """Write passages as JSON lines of documents, and return their number."""
    count = 0
    with path.open("wb") as file:
        for passage in passages:
            line = {"id": passage.id, "title": passage.title, "text": passage.text}
            file.write(orjson.dumps(line) + b"\n")
            count += 1
    return count
