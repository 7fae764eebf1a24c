"""The language of a corpus, detected in a sample of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from arag_search.query.forms import NONE, languages
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import CorpusReader, Position, SeenIds, Source

AUTO = "auto"
_SAMPLED_SOURCES = 8
MARGIN = 0.75
"""The share of the sample that must be in one language for its lemmas to be used."""

_LEAST_CHARACTERS = 40
_MOST_CHARACTERS = 2_000
_OTHER = "zxx"
"""What the detector says of a text in no language."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The language that is used, and the languages of the documents in the sample with their
    shares, the commonest first."""

    language: str
    shares: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        shares = ", ".join(f"{language} {share:.0%}" for language, share in self.shares[:4])
        used = "words match without lemmas" if self.language == NONE else f"{self.language} is used"
        return f"language: {shares or 'none'} of a sample; {used} (--language changes that)"


def detected(sources: Sequence[Source], metadata: MetadataReader) -> Detected:
    """Detect the language in the first batch of some sources, spread evenly over all. Below MARGIN,
    and for a language without lemmas, it is NONE. Raises SourceError."""
    counts: Counter[str] = Counter()
    short = ""
    count = min(_SAMPLED_SOURCES, len(sources))
    for place in range(count):
        source = sources[place * len(sources) // count]
        reader = CorpusReader(
            [source.prose()],
            metadata,
            Position(),
            SeenIds(),
            lambda _: True,
            skip_bad_lines=True,
            skip_bad_files=True,
        )
        batch = next(reader.batches(), None)
        for _, _, document in () if batch is None else batch.documents:
            counts[_language_of(document.text)] += 1
            short += (
                f"{document.text[:_LEAST_CHARACTERS]} " if len(short) < _MOST_CHARACTERS else ""
            )
    del counts[_OTHER]
    if not counts and (language := _language_of(short)) != _OTHER:
        counts[language] = 1  # many short texts, such as notes, tell as much as a long one
    total = max(1, counts.total())
    shares = tuple((language, count / total) for language, count in counts.most_common())
    language, share = shares[0] if shares else (NONE, 0.0)
    return Detected(language if share >= MARGIN and language in languages() else NONE, shares)


def _language_of(text: str) -> str:
    classify: Any = import_module("py3langid").classify
    text = text[:_MOST_CHARACTERS].strip()
    return str(classify(text)[0]) if len(text) >= _LEAST_CHARACTERS else _OTHER
