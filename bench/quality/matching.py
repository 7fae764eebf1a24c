"""Agreement of keyword_search by tokens with A-RAG's substring counts.

    python -m bench matching
    python -m bench matching --keywords 300 --json matching.json

Keywords are drawn with a seed from an A-RAG chunk file: single words and runs of two or three words
of the text. For each keyword the scores of all chunks by both ways of matching are compared, and
differences are counted by their reason.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from arag_search.corpus import Chunk
from arag_search.query import analysis
from arag_search.search.index import Index, open_index
from bench.arguments import BenchParser, positive
from bench.data import set_folder
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

Reason = Literal[
    "",
    "inside a longer word",
    "punctuation in the keyword",
    "punctuation between its words in the text",
    "no token in the keyword",
    "other",
]
_ALL = 1_000
"""A top_k that includes every chunk of the file (658)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One keyword. ``on_boundaries``: every substring match begins and ends where a token does."""

    keyword: str
    agree: bool
    on_boundaries: bool
    token_total: float
    substring_total: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class ScannedChunk:
    """A chunk in the form for scanning: lower-cased text, and where tokens begin and end."""

    id: str
    text: str
    starts: frozenset[int]
    ends: frozenset[int]


def scanned(chunks: Iterator[Chunk]) -> list[ScannedChunk]:
    """Prepare chunks for scanning. Lower-casing must not change lengths, so that offsets hold."""
    result: list[ScannedChunk] = []
    for chunk in chunks:
        tokens = analysis.tokens(chunk.content)
        result.append(
            ScannedChunk(
                chunk.id,
                chunk.content.lower(),
                frozenset(token.start for token in tokens),
                frozenset(token.end for token in tokens),
            )
        )
    return result


def reference_scores(chunks: Sequence[ScannedChunk], keyword: str) -> dict[str, float]:
    """Score one keyword by A-RAG's Eq. 1, substring count x length, without chunks that lack it."""
    wanted = keyword.lower()
    counts = ((chunk.id, chunk.text.count(wanted)) for chunk in chunks)
    return {chunk_id: float(count * len(keyword)) for chunk_id, count in counts if count}


def engine_scores(
    index: Index, keyword: str, matching: Literal["token", "substring"]
) -> dict[str, float]:
    """Score all chunks by keyword_search."""
    result = index.keyword_search([keyword], top_k=_ALL, matching=matching, snippets=False)
    return {hit.id: hit.score for hit in result.hits}


def draw_keywords(chunks: Sequence[ScannedChunk], number: int, seed: int = 1) -> list[str]:
    """Draw distinct words and runs of two or three words from the text."""
    rng = random.Random(seed)
    words = [chunk.text.split() for chunk in chunks]
    keywords: dict[str, None] = {}
    while len(keywords) < number:
        line = rng.choice(words)
        at, length = rng.randrange(len(line)), rng.choice((1, 1, 2, 3))
        keyword = " ".join(line[at : at + length])
        if 1 < len(keyword) <= 200:
            keywords[keyword] = None
    return list(keywords)


def compare(index: Index, chunks: Sequence[ScannedChunk], keyword: str) -> Comparison:
    """Compare both ways of matching for one keyword."""
    by_token = engine_scores(index, keyword, "token")
    by_substring = reference_scores(chunks, keyword)
    agree = by_token == by_substring
    on_boundaries = all(
        at in chunk.starts and at + len(keyword) in chunk.ends
        for chunk in chunks
        for at in _places(chunk.text, keyword.lower())
    )
    return Comparison(
        keyword,
        agree,
        on_boundaries,
        sum(by_token.values()),
        sum(by_substring.values()),
        "" if agree else _reason(keyword, on_boundaries, by_token, by_substring),
    )


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))


def _reason(
    keyword: str,
    on_boundaries: bool,
    by_token: dict[str, float],
    by_substring: dict[str, float],
) -> Reason:
    terms = analysis.terms(keyword)
    if not terms:
        return "no token in the keyword"
    if " ".join(terms) != keyword.lower():
        return "punctuation in the keyword"
    if not on_boundaries:
        return "inside a longer word"
    if sum(by_token.values()) > sum(by_substring.values()):
        return "punctuation between its words in the text"
    return "other"


def main(arguments: Sequence[str]) -> int:
    """Compare and return the exit code: 1 where fewer than 300 keywords on boundaries agree."""
    parser = BenchParser("matching", __doc__)
    parser.add_data()
    parser.add_default("--keywords", positive, 1_000, "number of keywords")
    parser.add_results()
    return parser.run(arguments, _compared)


def _compared(options: argparse.Namespace, command: str) -> int:
    source = set_folder(options.data, "2wikimultihopqa") / "arag_chunks.json"
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "index"
        build_index([str(source)], location, BuildOptions(without=("sentences",)))
        with open_index(location, search_timeout_s=None) as index:
            chunks = scanned(index.scan())
            keywords = draw_keywords(chunks, options.keywords)
            rows = [compare(index, chunks, keyword) for keyword in keywords]
            fingerprint = index.manifest.fingerprint
    eligible = [row for row in rows if row.on_boundaries]
    agreeing = [row for row in eligible if row.agree]
    reasons = Counter(row.reason for row in rows if not row.agree)
    print(f"{len(rows)} keywords of the chunk file, {sum(row.agree for row in rows)} agree")
    print(f"substring matches all on token boundaries: {len(eligible)}, {len(agreeing)} agree")
    for reason, count in reasons.most_common():
        examples = [row for row in rows if row.reason == reason][:3]
        shown = "; ".join(
            f'"{row.keyword}" {row.token_total:g} against {row.substring_total:g}'
            for row in examples
        )
        print(f"  differ, {reason}: {count}, such as {shown}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "command": command,
        "corpus_fingerprint": fingerprint,
        "keywords": len(rows),
        "agree": sum(row.agree for row in rows),
        "on_boundaries": len(eligible),
        "on_boundaries_agree": len(agreeing),
        "reasons": dict(reasons),
        "differing": [asdict(row) for row in rows if not row.agree],
    }
    options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0 if len(agreeing) >= 300 else 1
