"""A misspelt title is found in two calls, the second with words that the first reply suggests."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from arag_search.query import analysis
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from tests.support.commands import SAMPLE
from tests.support.shared_data import DATA

SHOWN = 3
"""How many hits a model looks at."""
VOWELS = str.maketrans("aeiouclnszAEIOU", "áéíóúçłñšžÁÉÍÓÚ")
SUGGESTED = re.compile(r'(?:title:)?("[^"]+"|\w[\w.-]*) (?:more than )?[\d,]+')
UNKNOWN = re.compile(
    r'(?:nearest to )?(?:title:)?("[^"]+"|\S+?)(?: occurs nowhere; nearest)?: (.*)'
)


def misspelt(title: str, random: Random) -> str:
    """Return the title with a mistake in a word of five letters or more."""
    words = [word for word in analysis.tokens(title) if len(word.term) >= 5 and word.term.isalpha()]
    _, start, end = random.choice(words)
    word = title[start:end]
    at = random.randrange(1, len(word) - 1)
    wrong = random.choice((
        word[:at] + word[at + 1 :],
        word[:at] + random.choice("aeinrst") + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at].translate(VOWELS) + word[at + 1 :],
        word[: at + 1] + "-" + word[at + 1 :],
        word.removesuffix("s") if word.endswith("s") else f"{word}s",
    ))  # fmt: skip
    return title[:start] + wrong + title[end:]


def is_found(index: Index, title: str, wrong: str) -> bool:
    query = " AND ".join(f'title:"{word}"' for word in wrong.split() if analysis.terms(word))
    result = index.logical_search(query, top_k=SHOWN)
    for note in filter(None, map(UNKNOWN.match, result.notes)):
        for piece in query.split(" AND "):
            if analysis.fold(note[1].strip('"')) in analysis.fold(piece):
                words = " OR ".join(SUGGESTED.findall(note[2]))
                query = query.replace(piece, f"title:({words})")
    hits = (*result.hits, *index.logical_search(query, top_k=SHOWN).hits)
    return any(hit.title == title for hit in hits)


def share_found(index: Index, count: int) -> float:
    random = Random(1741)
    titles = {chunk.title for chunk in index.scan()}
    wordy = sorted(
        title
        for title in titles
        if any(len(word) >= 5 and word.isalpha() for word in analysis.terms(title))
    )
    drawn = random.sample(wordy, min(count, len(wordy)))
    return sum(is_found(index, title, misspelt(title, random)) for title in drawn) / len(drawn)


def indexed(corpus: str, location: Path) -> Index:
    build_index([corpus], location)
    return open_index(location, search_timeout_s=None)


def test_misspelt_titles_of_the_sample_are_found(tmp_path: Path) -> None:
    with indexed(SAMPLE, tmp_path / "index") as index:
        assert share_found(index, 63) >= 0.95


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["2wikimultihopqa", "musique", "hotpotqa"])
def test_misspelt_titles_of_real_corpora_are_found(name: str, tmp_path: Path) -> None:
    with indexed(str(DATA / name / "corpus.jsonl"), tmp_path / "index") as index:
        assert share_found(index, 300) >= 0.95
