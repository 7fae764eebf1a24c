"""The hits of a search: passages with the sentences to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from arag_search.corpus import (
    NO_OUTLINE,
    Chunk,
    MetadataValue,
    PassageOutline,
    heading_of,
    split_at,
)

GAP = "..."
"""Stands in a snippet for sentences that are left out."""


@dataclass(frozen=True, slots=True)
class LeafScore:
    """The contribution of one leaf of a query to one hit: BM25 (for a prefix, its weight).

    ``scores`` maps "title" and "content" to the score in that field; a field that does not match
    is absent. The leaf counts with the greater score.
    """

    leaf: str
    scores: Mapping[str, float]


class HybridRanks(NamedTuple):
    """The ranks (from 1) of a passage by BM25 of the words and by vectors; None if not among the
    first passages of a part."""

    words: int | None
    vectors: int | None


class ScoreRule(NamedTuple):
    """A rule by which a score was multiplied by a factor, and what it ``says`` of the passage."""

    name: str
    factor: float
    says: str


class Hit(NamedTuple):
    """A passage that a search finds.

    An engine fills the fields up to ``matched_sentences``:

    - ``content``: the text of the passage, whole. If only matching sentences were asked for, it is
      their text, and all other sentences are empty. Without text, it and ``sentence_ends`` are
      empty.
    - ``score``: BM25, of code times the factors of ``rules``; the keywords' count times length, a
      cosine, or the sum of a rank fusion.
    - ``matched_sentences``: the numbers of the sentences that match (from 0, ascending), at
      sentence granularity only.

    The search fills the rest:

    - ``sentences``: the numbers of the sentences to show, whose text is ``snippet``. Empty: no
      snippets were asked for.
    - ``rules``: those for code that changed the score, in their order.
    - ``lowered``: the DEMOTEs that lowered the score, as written, if the text was read.
    - ``best``: the one of ``sentences`` to show if there is room for only one.
    - ``is_named``: whether the query names the title.
    - ``beside``: the texts of front matter that the query matches, which no reply shows otherwise.
    - ``explanation``: the score of each leaf. None: not requested.
    - ``ranks``: the ranks in both parts of a hybrid search. None: another search.
    - ``matches``: how many matches the document has. None: the form of reply does not count them.
    - ``branch``: the alternative of an OR that this passage is the best one of. Empty: the passage
      is a hit of the page, or nearest.
    - ``lacks``: the unmet conditions of a nearest passage, as written. Empty: it meets all, but in
      no single sentence.
    """

    id: str
    doc_id: str
    title: str
    part: int
    parts: int
    ordinal: int
    metadata: Mapping[str, MetadataValue]
    sentence_ends: tuple[int, ...] = ()
    content: str = ""
    outline: PassageOutline = NO_OUTLINE
    score: float = 0.0
    matched_sentences: tuple[int, ...] = ()
    sentences: tuple[int, ...] = ()
    best: int = 0
    rules: tuple[ScoreRule, ...] = ()
    lowered: tuple[str, ...] = ()
    is_named: bool = False
    beside: tuple[str, ...] = ()
    explanation: tuple[LeafScore, ...] | None = None
    ranks: HybridRanks | None = None
    matches: int | None = None
    branch: str = ""
    lacks: tuple[str, ...] = ()

    @classmethod
    def of(cls, chunk: Chunk, score: float, *, text: bool = True) -> Hit:
        """Return the hit of a chunk, with its whole text or none."""
        content, ends = (chunk.content, chunk.sentence_ends) if text else ("", ())
        place = (chunk.title, chunk.part, chunk.parts, chunk.ordinal, chunk.metadata)
        return cls(chunk.id, chunk.doc_id, *place, ends, content, chunk.outline, score)

    @property
    def heading(self) -> tuple[str, ...]:
        """The title, path and names as they are searched."""
        return heading_of(self.title, self.outline, self.matched_sentences)

    def with_sentences(self, texts: Mapping[int, str], count: int) -> Hit:
        """Return the hit with only these texts of its ``count`` sentences, by their numbers."""
        ends: list[int] = []
        end = 0
        for number in range(count):
            end += len(texts.get(number, ""))
            ends.append(end)
        content = "".join(texts[number] for number in sorted(texts))
        return self._replace(content=content, sentence_ends=tuple(ends))

    def with_matched_text(self) -> Hit:
        """Return the hit with the text of only the matched sentences."""
        texts = split_at(self.content, self.sentence_ends)
        matched = {number: texts[number] for number in self.matched_sentences if texts}
        return self.with_sentences(matched, len(texts))

    @property
    def snippet(self) -> str:
        """The shown sentences in text order, with ``...`` for others that are left out."""
        return join_sentences(split_at(self.content, self.sentence_ends), self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the hit in types of JSON; ``path``, ``line``, ``matches``, ``ranks``, ``lowered``,
        ``beside``, and ``explanation`` with ``rules`` only if it has them.

        ``arag-search search --json`` prints the same keys. New keys may be added.
        """
        values: dict[str, Any] = {
            "id": self.id,
            "doc_id": self.doc_id,
            "title": self.title,
            **outline_dict(self.outline),
            "part": self.part,
            "parts": self.parts,
            "score": self.score,
            "snippet": self.snippet,
            "metadata": metadata_dict(self.metadata),
        }
        if self.matches is not None:
            values["matches"] = self.matches
        if self.ranks is not None:
            values["ranks"] = self.ranks._asdict()
        if self.lowered:
            values["lowered"] = list(self.lowered)
        if self.beside:
            values["beside"] = list(self.beside)
        if self.explanation is not None:
            values["explanation"] = [
                {"leaf": leaf.leaf, "scores": dict(leaf.scores)} for leaf in self.explanation
            ]
            values["rules"] = [rule._asdict() for rule in self.rules]
        return values


def outline_dict(outline: PassageOutline) -> dict[str, Any]:
    """Return the path and the first line of a passage, if it has them, in types of JSON."""
    return {
        name: value for name, value in (("path", outline.path), ("line", outline.line)) if value
    }


def metadata_dict(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    """Return metadata in types of JSON: several values of a field are a list."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in metadata.items()
    }


def snippet_pieces(sentences: Sequence[str], shown: Sequence[int]) -> list[str]:
    """Return the shown sentences without white space at their ends, with GAP for others."""
    pieces: list[str] = []
    expected = 0
    for number in shown:
        if number != expected:
            pieces.append(GAP)
        pieces.append(sentences[number].strip())
        expected = number + 1
    if shown and expected != len(sentences):
        pieces.append(GAP)
    return list(filter(None, pieces))


def join_sentences(sentences: Sequence[str], shown: Sequence[int]) -> str:
    """Return the shown sentences joined by blanks, with GAP for others."""
    return " ".join(snippet_pieces(sentences, shown))
