"""The language of a corpus, detected in a sample of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import regex

from arag_search.query import analysis
from arag_search.query.lemmas import NONE, languages
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.source import CorpusReader, Position, SeenIds, Source

AUTO = "auto"
_SAMPLED_SOURCES = 8
MARGIN = 0.75
"""The share of the sample that must be in one language for its lemmas to be used."""

_ASSUMED = "en"
"""The language of a corpus without running text."""

_LEAST_WORDS = 10
_SENTENCE_WORDS = 5
_MOST_CHARACTERS = 2_000
_OF_LEMMAS = {"no": "nb", "bs": "hbs", "hr": "hbs", "sr": "hbs"}
"""The languages that the detector calls otherwise than the lemmas do."""

_OTHER = "zxx"
"""The detector's word for a text in no language."""

# Names, words and numbers in rows or lists have the letters of any language, and no full stop.
_SENTENCES = regex.compile(r"^.*[\p{L}\p{M}]{2}[\p{P} ]*\p{STerm}(?![^\s\p{P}])", regex.MULTILINE)


@dataclass(frozen=True, slots=True)
class Detected:
    """The language that is used, and the languages of the running text in the sample with their
    shares. The commonest comes first; there are none if there was too little text."""

    language: str
    shares: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        shares = ", ".join(f"{language} {share:.0%}" for language, share in self.shares[:4])
        sample = f"{shares} of a sample" if shares else "too little running text to tell"
        used = "words match without lemmas" if self.language == NONE else f"{self.language} is used"
        return f"language: {sample}; {used} (`language` changes that)"


def detected(sources: Sequence[Source], metadata: MetadataReader) -> Detected:
    """Detect the language of the running text in the first batch of some sources, spread evenly
    over all. It is English if there are fewer than _LEAST_WORDS, and NONE below MARGIN and for a
    language without lemmas. Raises SourceError."""
    words: Counter[str] = Counter()
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
            _count_running(document.text, words)
    del words[_OTHER]
    total = words.total()
    if total < _LEAST_WORDS:
        return Detected(_ASSUMED)
    shares = tuple((language, count / total) for language, count in words.most_common())
    language, share = shares[0]
    return Detected(language if share >= MARGIN and language in languages() else NONE, shares)


def _count_running(text: str, words: Counter[str]) -> None:
    """Add the words in the sentences at the beginning of a text to the count of their language."""
    classify: Any = import_module("py3langid").classify
    sentences = [
        (sentence, count)
        for sentence in _SENTENCES.findall(text[:_MOST_CHARACTERS])
        if (count := sum(word[0].isalpha() for word in analysis.terms(sentence))) >= _SENTENCE_WORDS
    ]
    if sentences:
        language = str(classify("\n".join(sentence for sentence, _ in sentences))[0])
        words[_OF_LEMMAS.get(language, language)] += sum(count for _, count in sentences)
