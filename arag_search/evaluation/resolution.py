"""Resolve the evidence that a question names to the passages of an index that hold it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from arag_search.agent.wording import normalise
from arag_search.corpus import Chunk
from arag_search.evaluation.text_match import stands_in, whole_words, without_brackets
from arag_search.questions.question import GoldPassage, Hop, Question

Rule = Literal["text", "title", "normalised", "brackets", "subject and object"]
_TELLING_WORDS = 4
"""Sentences with fewer words occur in many passages."""


@dataclass(frozen=True, slots=True)
class EvidencePiece:
    """A piece of evidence that must have been shown. Any of its passages shows it; they are in
    corpus order. ``rule`` found them (None: unresolved). ``answer`` must be in the shown text of
    the passage. If it is None, any of the text counts."""

    name: str
    chunk_ids: tuple[str, ...]
    rule: Rule | None
    answer: str | None = None


class IndexedPassage:
    """A chunk prepared for lookups: ``text`` has only its words."""

    __slots__ = ("_sentences", "chunk", "text")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.text = whole_words(chunk.content)
        self._sentences: list[str] | None = None

    def has(self, text: str) -> bool:
        """Return whether the words of a text are in the passage."""
        return stands_in(text, self.text)

    def sentences_in(self, whole: str) -> list[str]:
        """Return the words of its sentences that are in a text (from ``whole_words``) and long
        enough to be distinctive."""
        if self._sentences is None:
            made = [whole_words(sentence) for sentence in self.chunk.sentences()]
            self._sentences = [text for text in made if text.count(" ") > _TELLING_WORDS]
        return [sentence for sentence in self._sentences if sentence in whole]


class Passages:
    """All passages of an index, for lookups by what questions name. It is built once and keeps
    all texts in memory.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._set(IndexedPassage(chunk) for chunk in chunks)

    def _set(self, passages: Iterable[IndexedPassage]) -> None:
        self.all = list(passages)
        self._by_id = {passage.chunk.id: passage for passage in self.all}
        self._by_title = _group((passage.chunk.title, passage) for passage in self.all)
        self._by_name = _group((normalise(passage.chunk.title), passage) for passage in self.all)
        self._by_bare_name = _group(
            (normalise(without_brackets(passage.chunk.title)), passage) for passage in self.all
        )
        self._by_text = _group((passage.text, passage) for passage in self.all)

    def of_documents(self, documents: Collection[str]) -> Passages:
        """Return the passages of these documents."""
        part = Passages(())
        part._set(passage for passage in self.all if passage.chunk.doc_id in documents)
        return part

    def of_ids(self, ids: Iterable[str]) -> list[IndexedPassage]:
        """Return the passages with these ids, all of which must exist."""
        return [self._by_id[id] for id in ids]

    def document_ids(self, chunk_ids: Iterable[str]) -> list[str]:
        """Return the documents of chunks, in the order of these; unknown chunks are left out."""
        known = (self._by_id.get(id) for id in chunk_ids)
        return [passage.chunk.doc_id for passage in known if passage is not None]

    def titled(self, title: str) -> Iterator[tuple[Rule, Sequence[IndexedPassage]]]:
        """Yield the passages with a title, by each rule that finds any. The title is compared as it
        is, then after normalisation, then after normalisation of titles without brackets at their
        end."""
        name = normalise(title)
        if passages := self._by_title.get(title):
            yield "title", passages
        if passages := self._by_name.get(name):
            yield "normalised", passages
        if passages := self._by_bare_name.get(name):
            yield "brackets", passages

    def with_texts(self, *texts: str) -> list[IndexedPassage]:
        """Return the passages that contain the words of all of these texts."""
        wanted = [whole_words(text) for text in texts]
        if not all(wanted):
            return []
        return [passage for passage in self.all if all(words in passage.text for words in wanted)]

    def of_text(self, title: str | None, text: str, answer: str | None) -> Sequence[IndexedPassage]:
        """Return the passages that hold a published text.

        They are the passages that equal or contain the text. If the text was split, they are the
        passages with one of its sentences that has the answer, else those with any of its
        sentences. Without an answer, they are the passages with at least half as much of the text
        as the passage with most of it.
        """
        whole = whole_words(text)
        same = self._by_text.get(whole, ())
        if (
            passages := [passage for passage in same if title in (None, passage.chunk.title)]
            or same
        ):
            return passages
        if passages := self.with_texts(text):
            return passages
        parts = {
            passage: sentences for passage in self.all if (sentences := passage.sentences_in(whole))
        }
        if answer is None:
            sizes = {passage: sum(map(len, sentences)) for passage, sentences in parts.items()}
            most = max(sizes.values(), default=0)
            return [passage for passage, size in sizes.items() if 2 * size >= most]
        telling = [
            passage
            for passage, sentences in parts.items()
            if any(stands_in(answer, s) for s in sentences)
        ]
        return telling or list(parts)


def resolve_hops(question: Question, passages: Passages) -> tuple[EvidencePiece, ...]:
    """Return the evidence of each hop. It is the passages with the answer, by the first rule that
    finds any. If no rule does (a date may be written differently), it is all passages of the first
    rule that found any. Such a piece has no answer."""
    return tuple(_resolve_hop(hop, passages) for hop in question.hops)


def resolve_evidence(
    question: Question, passages: Passages
) -> tuple[tuple[EvidencePiece, ...], ...]:
    """Return the evidence of a question as sets of pieces, any of which is enough; no set if the
    data names no evidence.

    Pieces are the hops, else the supporting titles, else the texts that support the answer, in
    the relevant documents if the data names them.
    """
    if question.hops:
        return (resolve_hops(question, passages),)
    if question.supporting_titles:
        sets = (question.supporting_titles, *question.alternative_titles)
        return tuple(tuple(_titled_piece(title, passages) for title in titles) for titles in sets)
    if question.supporting_passages:
        # Sentences of a report are in those of other years as well.
        relevant = question.relevant_ids
        searched = passages.of_documents(relevant) if relevant else passages
        return (tuple(_text_piece(passage, searched) for passage in question.supporting_passages),)
    return ()


@dataclass(frozen=True, slots=True)
class LocatedEvidence:
    """The evidence of questions in the passages of an index: sets of pieces by question id."""

    passages: Passages
    sets: Mapping[str, Sequence[Sequence[EvidencePiece]]]

    @staticmethod
    def of(questions: Iterable[Question], passages: Passages) -> LocatedEvidence:
        """Resolve the evidence of questions."""
        sets = {question.id: resolve_evidence(question, passages) for question in questions}
        return LocatedEvidence(passages, sets)


def _resolve_hop(hop: Hop, passages: Passages) -> EvidencePiece:
    name = hop.title or hop.subject or hop.question or hop.answer
    first = EvidencePiece(name, (), None)
    for rule, candidates in _matches_by_rule(hop, passages):
        telling = [passage for passage in candidates if passage.has(hop.answer)]
        ids = tuple(passage.chunk.id for passage in telling or candidates)
        if telling:
            return EvidencePiece(name, ids, rule, hop.answer)
        if first.rule is None:
            first = EvidencePiece(name, ids, rule)
    return first


def _matches_by_rule(
    hop: Hop, passages: Passages
) -> Iterator[tuple[Rule, Sequence[IndexedPassage]]]:
    """Yield the passages that each rule finds, in the order of the rules, without rules that find
    none."""
    if hop.text is not None and (matches := passages.of_text(hop.title, hop.text, hop.answer)):
        yield "text", matches
    for name in filter(None, (hop.title, hop.subject)):
        yield from passages.titled(name)
    if hop.subject is not None:
        matches = passages.with_texts(hop.subject, hop.answer)
        if len(matches) == 1:
            yield "subject and object", matches


def _titled_piece(title: str, passages: Passages) -> EvidencePiece:
    rule, matches = next(passages.titled(title), (None, ()))
    ids = tuple(dict.fromkeys(passage.chunk.id for passage in matches))
    return EvidencePiece(title, ids, rule if ids else None)


def _text_piece(passage: GoldPassage, passages: Passages) -> EvidencePiece:
    matches = passages.of_text(passage.title, passage.text, None)
    name = passage.title or passage.text
    return EvidencePiece(
        name, tuple(match.chunk.id for match in matches), "text" if matches else None
    )


def _group(pairs: Iterable[tuple[str, IndexedPassage]]) -> dict[str, list[IndexedPassage]]:
    groups: dict[str, list[IndexedPassage]] = defaultdict(list)
    for key, passage in pairs:
        if key.strip():
            groups[key].append(passage)
    return dict(groups)
