"""What a search finds: passages with the sentences to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from arag_search.corpus import NO_OUTLINE, MetadataValue, PassageOutline, split_at
from arag_search.engines.base import Hit, LeafScore

GAP = "..."
"""Stands in a snippet for sentences that are left out."""


class HybridRanks(NamedTuple):
    """The ranks (from 1) of a passage by BM25 of the words and by vectors; None if not among the
    first passages of a part."""

    words: int | None
    vectors: int | None


class SearchHit(NamedTuple):
    """A passage that a search returns.

    ``sentences`` are the numbers (0-based) of the sentences to show, ``snippet`` is their text;
    both are empty without snippets. ``content`` is the passage, empty without snippets; at sentence
    granularity it is only the sentences that matched, unless the full text was requested.
    ``score`` is BM25, the keywords' count times length, a cosine, or the sum of a rank fusion.
    ``lowered`` are the DEMOTEs of a logical query that lowered the score, as written, if the text
    was read. ``explanation`` is None unless requested; ``ranks`` are those of a hybrid search.
    ``matches`` is the number of all matches of the document, if the form of reply counts them.
    """

    id: str
    doc_id: str
    title: str
    part: int
    parts: int
    score: float
    metadata: dict[str, MetadataValue]
    content: str
    sentence_ends: tuple[int, ...]
    sentences: tuple[int, ...]
    explanation: tuple[LeafScore, ...] | None = None
    ranks: HybridRanks | None = None
    lowered: tuple[str, ...] = ()
    is_named: bool = False
    outline: PassageOutline = NO_OUTLINE
    matches: int | None = None

    @property
    def snippet(self) -> str:
        """The shown sentences in text order, with ``...`` for others that are left out."""
        return join_sentences(split_at(self.content, self.sentence_ends), self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the hit in types of JSON; ``matches``, ``ranks``, ``lowered`` and ``explanation``
        only if it has them.

        The keys are those that ``arag-search search --json`` prints. New keys may be added.
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
        if self.explanation is not None:
            values["explanation"] = [
                {"leaf": leaf.leaf, "scores": dict(leaf.scores)} for leaf in self.explanation
            ]
        return values


class HitBeside(NamedTuple):
    """A passage beside the hits: the best one of a ``branch`` of an OR that has none on the page,
    or one that meets all but some conditions of a query. ``lacks`` are those, as written; it is
    empty if the passage meets all, but no sentence of it does."""

    hit: SearchHit
    lacks: tuple[str, ...] = ()
    branch: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the passage in types of JSON."""
        why = {"branch": self.branch} if self.branch else {"lacks": list(self.lacks)}
        return {**self.hit.to_dict(), **why}


def outline_dict(outline: PassageOutline) -> dict[str, Any]:
    """Return the path and first line of a passage in types of JSON, those that it has."""
    return {
        name: value for name, value in (("path", outline.path), ("line", outline.line)) if value
    }


def metadata_dict(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    """Return metadata in types of JSON: several values of a field are a list."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in metadata.items()
    }


def hit_of(
    hit: Hit,
    sentences: Sequence[int],
    explanation: tuple[LeafScore, ...] | None,
    lowered: tuple[str, ...] = (),
    *,
    is_named: bool = False,
    matches: int | None = None,
) -> SearchHit:
    """Return an engine's hit with the sentences to show."""
    id_, doc_id, title, part, parts, _, metadata, score, content, ends, _, outline = hit
    place = (title, part, parts, score, dict(metadata), content or "", ends, tuple(sentences))
    # Calling the class takes half as long again.
    return SearchHit._make(
        (id_, doc_id, *place, explanation, None, lowered, is_named, outline, matches)
    )


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
